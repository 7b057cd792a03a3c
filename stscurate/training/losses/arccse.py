"""ArcCSE's whole objective: ArcCon on the anchors, and their nested-mask triplets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from stscurate.errors import InputError
from stscurate.training.losses.arccon import arccon_loss, check_margin
from stscurate.training.losses.features import Features, check_tau, columns_of, dropout_off, embed, embed_twins
from stscurate.training.losses.nested_mask import COLUMNS, triplet_loss


class ArcCSELoss(nn.Module):
    """L = L_arc + lambda L_tri (ArcCSE, Zhang et al., ACL 2022), lambda being ``triplet_weight``.

    ``features``: the columns anchor, positive, negative as in NestedMaskTripletLoss. L_arc (see ArcConLoss)
    encodes the anchors twice under dropout, L_tri all three columns with dropout off. ``labels`` are
    ignored. ``terms`` holds the unweighted values of the last batch, by the names arc and triplet.
    """

    def __init__(
        self,
        model: nn.Module,
        margin_degrees: float = 10.0,
        tau: float = 0.05,
        triplet_weight: float = 0.1,
        triplet_margin: float = 0.0,
    ) -> None:
        super().__init__()
        if triplet_weight < 0:
            raise InputError(f"triplet_weight is {triplet_weight}; it must be 0 or more.")
        self.model = model
        self.margin_degrees = check_margin(margin_degrees)
        self.tau = check_tau(tau)
        self.triplet_weight = triplet_weight
        self.triplet_margin = triplet_margin
        self.terms: dict[str, float] = {}

    def forward(self, features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Give the loss of a batch, a scalar."""
        columns = columns_of(features, COLUMNS)
        first, twin = embed_twins(self.model, columns[:1])
        arc = arccon_loss(first, twin, margin_degrees=self.margin_degrees, tau=self.tau)
        self.terms = {"arc": float(arc.detach())}
        if not self.triplet_weight:
            return arc
        with dropout_off(self.model):
            anchor, positive, negative = embed(self.model, columns)
        triplet = triplet_loss(anchor, positive, negative, margin=self.triplet_margin)
        self.terms["triplet"] = float(triplet.detach())
        return arc + self.triplet_weight * triplet

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for sentence-transformers' model card."""
        names = ("margin_degrees", "tau", "triplet_weight", "triplet_margin")
        return {name: getattr(self, name) for name in names}
