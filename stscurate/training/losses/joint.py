"""AnglE's whole objective: cosine, in-batch negatives and angle, summed over one encoding of the batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from stscurate.errors import InputError
from stscurate.training.losses.angle import DEFAULT_TAU, SIMILARITIES, Variant, check_variant
from stscurate.training.losses.features import (
    Features,
    check_labels,
    check_tau,
    columns_of,
    embed,
    pair_cosine,
    split_labels,
)
from stscurate.training.losses.in_batch import in_batch_loss, is_positive, text_keys
from stscurate.training.losses.processes import global_rank_loss


class JointAngleLoss(nn.Module):
    """L = w1 cosine + w2 in-batch negatives + w3 angle (AnglE, arXiv 2309.12871); a weight of 0 skips a term.

    ``features``: the columns sentence1, sentence2, n texts each, encoded once. ``labels``: scores (n,),
    or (n, 2) [score, weight]. The terms are those of CosineRankLoss, InBatchNegativesLoss (``threshold``,
    here 0.8 of a score from 0 to 1 unless told; it wants no scores above 1) and AngleLoss (``variant``;
    ``tau_angle`` 0.05 for ``code``, 1.0 for ``symmetric`` unless given); ``min_gap`` is of the two rank terms, which
    compare the pairs of all processes, while in-batch negatives are those of each process. ``terms`` holds the
    unweighted values of the last batch, by the names cosine, in_batch, angle.
    """

    def __init__(
        self,
        model: nn.Module,
        w1: float = 1.0,
        w2: float = 1.0,
        w3: float = 1.0,
        tau_cosine: float = 0.05,
        tau_in_batch: float = 0.05,
        tau_angle: float | None = None,
        variant: Variant = "code",
        threshold: float | None = 0.8,
        min_gap: float = 0.0,
    ) -> None:
        super().__init__()
        if min(w1, w2, w3) < 0 or not w1 + w2 + w3 > 0:
            raise InputError(f"The weights are {w1}, {w2}, {w3}; none may be negative, and one must be above 0.")
        self.model = model
        self.w1, self.w2, self.w3 = w1, w2, w3
        self.tau_cosine, self.tau_in_batch = check_tau(tau_cosine), check_tau(tau_in_batch)
        self.variant = check_variant(variant)
        self.tau_angle = check_tau(DEFAULT_TAU[variant] if tau_angle is None else tau_angle)
        self.threshold = threshold
        self.min_gap = min_gap
        self.terms: dict[str, float] = {}

    def forward(self, features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Give the loss of a batch, a scalar."""
        columns = columns_of(features, ["sentence1", "sentence2"])
        u, v = embed(self.model, columns)
        score, weight = split_labels(labels, len(u))
        terms: dict[str, Tensor] = {}
        if self.w1:
            x = pair_cosine(u, v)
            terms["cosine"] = global_rank_loss(x, score, tau=self.tau_cosine, weight=weight, min_gap=self.min_gap)
        if self.w2:
            check_labels(score, weight)
            terms["in_batch"] = in_batch_loss(
                u,
                v,
                is_positive(score, self.threshold),
                tau=self.tau_in_batch,
                texts=[key for column in columns for key in text_keys(column, len(u))],
                weight=weight,
                component=columns[0].get("component"),
            )
        if self.w3:
            x = SIMILARITIES[self.variant](u, v)
            terms["angle"] = global_rank_loss(x, score, tau=self.tau_angle, weight=weight, min_gap=self.min_gap)
        self.terms = {name: float(term.detach()) for name, term in terms.items()}
        share = {"cosine": self.w1, "in_batch": self.w2, "angle": self.w3}
        return torch.stack([share[name] * term for name, term in terms.items()]).sum()

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for sentence-transformers' model card."""
        names = ("w1", "w2", "w3", "tau_cosine", "tau_in_batch", "tau_angle", "variant", "threshold", "min_gap")
        return {name: getattr(self, name) for name in names}
