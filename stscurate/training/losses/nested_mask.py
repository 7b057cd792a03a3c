"""ArcCSE's triplets: the more of a text is masked, the farther from it its vector shall lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from stscurate.training.losses.features import Features, columns_of, dropout_off, embed, pair_cosine

COLUMNS = ("anchor", "positive", "negative")


def triplet_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: float) -> Tensor:
    """Give the mean over rows of max(0, cos(h, h'') - cos(h, h') + margin), a scalar; inputs (n, d)."""
    excess = pair_cosine(anchor, negative) - pair_cosine(anchor, positive) + margin
    return excess.relu().mean()


class NestedMaskTripletLoss(nn.Module):
    """The triplet loss of ArcCSE (Zhang et al., ACL 2022) over nested masks of one text.

    ``features``: the columns anchor h, positive h' (one span of 20 % of the tokens masked), negative h''
    (that span enlarged to 40 %), n texts each, as ``stscurate triplets`` makes them. ``labels`` are
    ignored. The texts are encoded with dropout off, since its noise is as large as what the masks change;
    each module's training flag is put back afterwards.
    """

    def __init__(self, model: nn.Module, margin: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.margin = margin

    def forward(self, features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Give the loss of a batch, a scalar."""
        columns = columns_of(features, COLUMNS)
        with dropout_off(self.model):
            anchor, positive, negative = embed(self.model, columns)
        return triplet_loss(anchor, positive, negative, margin=self.margin)

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for sentence-transformers' model card."""
        return {"margin": self.margin}
