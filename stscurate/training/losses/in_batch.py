"""In-batch negatives that never push apart texts which are known to belong together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from stscurate.errors import InputError
from stscurate.training.losses.blocks import by_blocks, cosines
from stscurate.training.losses.features import (
    Features,
    check_labels,
    check_tau,
    columns_of,
    embed,
    split_labels,
    unit,
)


class InBatchNegativesLoss(nn.Module):
    """Cross-entropy over cosines / tau of all 2n texts of a batch (AnglE's in-batch term, arXiv 2309.12871).

    ``features``: the columns sentence1, sentence2, n texts each. ``labels``: scores (n,), or (n, 2)
    [score, weight] on the scale of ``threshold``. A pair whose score reaches the threshold is positive;
    without a threshold the labels must be 0 and 1 (a score of 3 out of 5 isn't a yes).

    Each text of either column is an anchor against all others of both (both directions, and within a
    column). Its positives are its partner in a positive pair, and, as the paper says, all texts
    identical to itself or to that partner. The other text of a pair below the threshold is a negative.
    With p a positive of text t: l(t, p) = -log[e^(c_tp / tau) / (e^(c_tp / tau) + sum over negatives r of
    e^(c_tr / tau))]; the mean over the positives of a text, then over the texts that have any (weighted by
    their pair's weight, if given). No positive stands in another's denominator (a departure where a text
    has several: a plain cross-entropy would have them push each other away). No positive, no loss: 0.

    Where ``features[0]["component"]`` (n,) is given, texts of positive pairs of one component are
    positives too, and no other two texts of one component are negatives (save the two of a pair that was
    itself scored below the threshold). Over several processes, each contrasts the texts of its own part.
    """

    def __init__(self, model: nn.Module, tau: float = 0.05, threshold: float | None = None) -> None:
        super().__init__()
        self.model = model
        self.tau = check_tau(tau)
        self.threshold = threshold

    def forward(self, features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Give the loss of a batch, a scalar."""
        columns = columns_of(features, ["sentence1", "sentence2"])
        u, v = embed(self.model, columns)
        score, weight = split_labels(labels, len(u))
        check_labels(score, weight)
        positive = is_positive(score, self.threshold)
        return in_batch_loss(
            u,
            v,
            positive,
            tau=self.tau,
            texts=[key for column in columns for key in text_keys(column, len(u))],
            weight=weight,
            component=columns[0].get("component"),
        )

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for sentence-transformers' model card."""
        return {"tau": self.tau, "threshold": self.threshold}


def in_batch_loss(
    u: Tensor,
    v: Tensor,
    positive: Tensor,
    *,
    tau: float,
    texts: Sequence[object] | None = None,
    weight: Tensor | None = None,
    component: Tensor | None = None,
) -> Tensor:
    """Give the loss that InBatchNegativesLoss describes.

    u, v (n, d); ``positive`` (n,) bool; ``texts`` 2n keys, those of u first, equal where the texts are
    (all different if left out); ``weight`` (n,); ``component`` (n,).
    """
    loss, share = in_batch_texts(u, v, positive, tau=tau, texts=texts, weight=weight, component=component)
    if weight is not None:
        share = share * weight.repeat(2).to(loss.dtype)
    total = share.sum()
    return (loss * share).sum() / torch.where(total > 0, total, 1.0)


def in_batch_texts(
    u: Tensor,
    v: Tensor,
    positive: Tensor,
    *,
    tau: float,
    texts: Sequence[object] | None = None,
    weight: Tensor | None = None,
    component: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Give the loss of each of the 2n texts, and 1 where it has a positive, else 0; (2n,) both, those of u first."""
    vectors = unit(torch.cat([u, v]))
    known = Relations(positive, texts=texts, weight=weight, component=component)
    # A text without negatives has nothing to lose: its log-sum-exp is a finite lowest number, since -inf
    # would make NaN gradients.
    lowest = torch.finfo(vectors.dtype).min / 4

    def row_loss(start: int, stop: int) -> Tensor:
        together, negative = known.rows(start, stop)
        logits = cosines(vectors[start:stop], vectors) / tau
        against = torch.logsumexp(logits.masked_fill(~negative, lowest), dim=1)
        anchor, partner = together.nonzero(as_tuple=True)
        margin = against[anchor] - logits[anchor, partner]
        term = torch.logaddexp(margin, torch.zeros_like(margin))
        count = together.sum(dim=1)
        mean = term.new_zeros(len(count)).index_add(0, anchor, term) / count.clamp_min(1)
        return torch.stack([mean, (count > 0).to(mean.dtype)], dim=1)

    loss, share = by_blocks(row_loss, len(vectors)).unbind(dim=1)
    return loss, share


class Relations:
    """Who is whose positive and who is whose negative among the 2n texts of n pairs, a block of rows at a time."""

    def __init__(
        self,
        positive: Tensor,
        *,
        texts: Sequence[object] | None = None,
        weight: Tensor | None = None,
        component: Tensor | None = None,
    ) -> None:
        n, device = len(positive), positive.device
        number: dict[object, int] = {}
        keys = range(2 * n) if texts is None else texts
        self.group = torch.tensor(
            [number.setdefault(key, len(number)) for key in keys], device=device, dtype=torch.long
        )
        taught = positive if weight is None else positive & (weight > 0)
        first, second = self.group[:n][taught], self.group[n:][taught]
        # groups that a positive pair links, each way round
        self.start, self.end = torch.cat([first, second]), torch.cat([second, first])
        self.linked = torch.zeros(len(number), dtype=torch.bool, device=device).index_fill(0, self.start, True)
        self.positive = positive.repeat(2)
        self.component = None if component is None else component.repeat(2)

    def rows(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Positives and negatives of texts start to stop: two (stop - start, 2n) bool tensors; none is its own."""
        group, device = self.group, self.group.device
        own = torch.arange(start, stop, device=device)
        row = torch.arange(stop - start, device=device)
        partners = torch.zeros(len(own), len(self.linked), dtype=torch.bool, device=device)
        at, edge = (group[own][:, None] == self.start[None, :]).nonzero(as_tuple=True)
        partners[at, self.end[edge]] = True
        together = (group[own][:, None] == group[None, :]) | partners[:, group]
        left_out = torch.zeros_like(together)
        if self.component is not None:
            related = self.component[own][:, None] == self.component[None, :]
            # the two texts of a pair that was itself scored apart aren't held together by their component
            related[row, (own + len(group) // 2) % len(group)] &= self.positive[own]
            sure = self.linked[group]
            together |= related & sure[own][:, None] & sure[None, :]
            left_out = related
        negative = ~(together | left_out)
        together[row, own] = False
        negative[row, own] = False
        return together, negative


def is_positive(score: Tensor, threshold: float | None) -> Tensor:
    """Read scores (n,) as positive or not, bool (n,); InputError where that would be a guess."""
    if threshold is None:
        if not bool(((score == 0) | (score == 1)).all()):
            raise InputError(
                "In-batch negatives need labels of 0 and 1, or the score from which on a pair counts as "
                "positive: give a threshold, such as 0.8 for scores from 0 to 1."
            )
        return score == 1
    if threshold <= 1 and bool((score > 1).any()):
        raise InputError(
            f"A score of {float(score.max()):g} stands against a threshold of {threshold:g}. Divide the scores "
            "by the end of their scale, or give the threshold on their scale."
        )
    return score >= threshold


def text_keys(column: Features, count: int) -> list[object]:
    """Give a key for each of the ``count`` texts of a column, equal for equal texts.

    Taken from ``input_ids`` without what ``attention_mask`` hides, so padding makes no difference. Where a
    model reads no ``input_ids`` (images), nothing is known to be equal.
    """
    ids = column.get("input_ids")
    if not isinstance(ids, Tensor):
        return [object() for _ in range(count)]
    ids = ids.detach().cpu()
    if ids.ndim == 1 and isinstance(column.get("offsets"), Tensor):  # StaticEmbedding: one flat stream
        return [tuple(part.tolist()) for part in ids.tensor_split(column["offsets"].cpu()[1:])]
    mask = column.get("attention_mask")
    kept = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.detach().cpu().bool()
    return [tuple(row[keep].tolist()) for row, keep in zip(ids, kept, strict=True)]
