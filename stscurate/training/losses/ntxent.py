"""NT-Xent: a text finds its own twin among the twins of the batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from stscurate.training.losses.arccon import arccon_loss
from stscurate.training.losses.features import Features, check_tau, embed_twins


class NTXentLoss(nn.Module):
    """Cross-entropy over cosines / tau, as SimCSE uses it (Gao et al. 2021, arXiv 2104.08821).

    ``features``: one column of texts (encoded twice, so that dropout makes the twins: unsupervised
    SimCSE), or two columns whose rows belong together (anchor, positive: supervised, without hard
    negatives). ``labels`` are ignored. One direction: anchor i against all second texts, as in SimCSE.
    It is ArcConLoss with a margin of 0. Duplicate texts in a batch count as negatives: drop them before.
    """

    def __init__(self, model: nn.Module, tau: float = 0.05) -> None:
        super().__init__()
        self.model = model
        self.tau = check_tau(tau)

    def forward(self, features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Give the loss of a batch, a scalar."""
        first, second = embed_twins(self.model, features)
        return arccon_loss(first, second, margin_degrees=0.0, tau=self.tau)

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for sentence-transformers' model card."""
        return {"tau": self.tau}
