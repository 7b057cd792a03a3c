"""CoSENT: the rank loss over cosines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from stscurate.training.losses.features import (
    Features,
    check_tau,
    columns_of,
    embed,
    pair_cosine,
    split_labels,
)
from stscurate.training.losses.processes import global_rank_loss


class CosineRankLoss(nn.Module):
    """The pairwise rank loss with x the cosine of the two texts (CoSENT, doi:10.1109/TASLP.2024.3402087).

    ``features``: the columns sentence1, sentence2, n texts each. ``labels``: scores (n,), or (n, 2)
    [score, weight]. Equal to sentence-transformers' ``CoSENTLoss(model, scale=1 / tau)``; ``min_gap``
    and weights are additions (see ``pairwise_rank_loss``). Over several processes all pairs of the step are
    compared, where theirs compares those of each process alone (see losses.processes).
    """

    def __init__(self, model: nn.Module, tau: float = 0.05, min_gap: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.tau = check_tau(tau)
        self.min_gap = min_gap

    def forward(self, features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Give the loss of a batch, a scalar."""
        u, v = embed(self.model, columns_of(features, ["sentence1", "sentence2"]))
        score, weight = split_labels(labels, len(u))
        return global_rank_loss(pair_cosine(u, v), score, tau=self.tau, weight=weight, min_gap=self.min_gap)

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for sentence-transformers' model card."""
        return {"tau": self.tau, "min_gap": self.min_gap}
