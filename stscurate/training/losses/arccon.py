"""ArcCon: NT-Xent with an angular margin between a text and its twin."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from stscurate.errors import InputError
from stscurate.training.losses.blocks import by_blocks, cosines
from stscurate.training.losses.features import Features, check_tau, embed_twins, unit


def with_margin(cosine: Tensor, margin: float) -> Tensor:
    """Give cos(theta + m) from cos(theta), m in radians; any shape.

    Where theta + m passes pi, the cosine would rise again; there it is cos(theta) - m sin(m), as ArcFace
    does (Deng et al. 2019, arXiv 1801.07698), so that it keeps falling. At cos(theta) = 1 the sine has no
    finite slope; its square is held at 1e-12 and gets no gradient there.
    """
    sine = ((1 - cosine) * (1 + cosine)).clamp_min(1e-12).sqrt()
    turned = cosine * math.cos(margin) - sine * math.sin(margin)
    return torch.where(cosine > -math.cos(margin), turned, cosine - margin * math.sin(margin))


def arccon_loss(first: Tensor, twin: Tensor, *, margin_degrees: float, tau: float) -> Tensor:
    """Give the mean over i of the cross-entropy of text i finding twin i, a scalar; inputs (n, d).

    -log[e^(cos(theta_ii + m) / tau) / (e^(cos(theta_ii + m) / tau) + sum over j != i of
    e^(cos(theta_ij) / tau))], theta_ij the angle between text i and the twin of text j.
    """
    first, twin = unit(first), unit(twin)

    def row_loss(start: int, stop: int) -> Tensor:
        cosine = cosines(first[start:stop], twin)
        own = cosine.diagonal(start)
        moved = with_margin(own, math.radians(margin_degrees)) if margin_degrees else own
        logits = cosine.diagonal_scatter(moved, start) / tau
        return functional.cross_entropy(logits, torch.arange(start, stop, device=logits.device), reduction="none")

    return by_blocks(row_loss, len(first)).mean()


class ArcConLoss(nn.Module):
    """The additive angular margin contrastive loss of ArcCSE (Zhang et al., ACL 2022).

    ``features``: one column of texts, encoded twice so that dropout makes the twins, or the same texts in
    two columns. ``labels`` are ignored. The margin m is in degrees, below 90. With a margin of 0 it is
    NTXentLoss.
    """

    def __init__(self, model: nn.Module, margin_degrees: float = 10.0, tau: float = 0.05) -> None:
        super().__init__()
        self.model = model
        self.margin_degrees = check_margin(margin_degrees)
        self.tau = check_tau(tau)

    def forward(self, features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Give the loss of a batch, a scalar."""
        first, twin = embed_twins(self.model, features)
        return arccon_loss(first, twin, margin_degrees=self.margin_degrees, tau=self.tau)

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for sentence-transformers' model card."""
        return {"margin_degrees": self.margin_degrees, "tau": self.tau}


def check_margin(degrees: float) -> float:
    """Give the margin back if it is from 0 to below 90 degrees, InputError otherwise."""
    if not 0 <= degrees < 90:
        raise InputError(f"The margin is {degrees} degrees; it must be from 0 to below 90, such as 10.")
    return float(degrees)
