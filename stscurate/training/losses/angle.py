"""AnglE's angle objective (Li and Li, arXiv 2309.12871), in two variants.

A vector of d dimensions, d even, is read as d/2 complex numbers: u = (a, b) as z_k = a_k + i b_k, and
v = (c, d) as w_k = c_k + i d_k. z_k / w_k over the ratio of the moduli has the real part
(a_k c_k + b_k d_k) / |z_k||w_k| and the imaginary part (b_k c_k - a_k d_k) / |z_k||w_k|.

Departure: the paper prints exp((dtheta_ij - dtheta_mn) / tau) for s_ij > s_mn, and takes the modulus of
the normalised quotient, which is 1 for every coordinate: read literally it teaches nothing, so no
variant does that. ``code`` is what the authors ship, ``symmetric`` what the text describes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from stscurate.errors import InputError
from stscurate.training.losses.features import Features, check_tau, columns_of, embed, split_labels, unit
from stscurate.training.losses.processes import global_rank_loss

Variant = Literal["code", "symmetric"]


def angle_similarity_code(u: Tensor, v: Tensor) -> Tensor:
    """Give |sum_k (a_k c_k + b_k d_k) + (b_k c_k - a_k d_k)| / (|u||v|): (n, d), (n, d) to (n,) in [0, sqrt 2].

    What angle_emb and sentence-transformers compute. Its oddities: x(u, v) isn't x(v, u), x(u, -v) is
    x(u, v), and u = v (where it is 1) isn't its maximum. InputError if d is odd.
    """
    real, imaginary = _quotients(u, v)
    return (real + imaginary).sum(dim=-1).abs()


def angle_similarity_symmetric(u: Tensor, v: Tensor) -> Tensor:
    """Give minus the mean angle over pi: (n, d), (n, d) to (n,) in [-1, 0]; 0 where all phases agree.

    phi_k = atan2(b_k c_k - a_k d_k, a_k c_k + b_k d_k), averaged as |phi_k| with the weights
    m_k = |z_k||w_k|. Symmetric, and its gradient doesn't fade towards either end. Coordinates of m_k = 0
    have no angle: they give no value and no gradient. A zero vector gives 0. InputError if d is odd.
    """
    real, imaginary = _quotients(u, v)
    square = real.square() + imaginary.square()  # = (|z||w|)^2, by Lagrange's identity
    # Below the smallest normal number the gradients of atan2 and sqrt are inf or NaN. The vectors are of
    # unit length, so what is left out here weighs less than 1e-19 of the mean.
    live = square > torch.finfo(square.dtype).tiny
    angle = torch.atan2(torch.where(live, imaginary, 0.0), torch.where(live, real, 1.0)).abs()
    modulus = torch.where(live, torch.where(live, square, 1.0).sqrt(), 0.0)
    total = modulus.sum(dim=-1)
    return -(modulus * angle).sum(dim=-1) / (total + torch.finfo(total.dtype).tiny) / math.pi


SIMILARITIES: dict[Variant, Callable[[Tensor, Tensor], Tensor]] = {
    "code": angle_similarity_code,
    "symmetric": angle_similarity_symmetric,
}
DEFAULT_TAU: dict[Variant, float] = {"code": 0.05, "symmetric": 1.0}


class AngleLoss(nn.Module):
    """The pairwise rank loss with x the angle similarity of the two texts (AnglE, arXiv 2309.12871).

    ``features``: the columns sentence1, sentence2, n texts each. ``labels``: scores (n,), or (n, 2)
    [score, weight]. ``variant="code"``, the default, equals sentence-transformers'
    ``AnglELoss(model, scale=1 / tau)``; ``"symmetric"`` is the angle that the paper describes. tau is
    0.05 for ``code`` (their scale of 20) and 1.0 for ``symmetric`` (the paper's) unless given; random
    pairs of 384 dimensions lie at -0.5 with a spread of 0.026 in ``symmetric``, so 1.0 is very soft.
    ``min_gap`` and several processes: as CosineRankLoss.
    """

    def __init__(
        self, model: nn.Module, variant: Variant = "code", tau: float | None = None, min_gap: float = 0.0
    ) -> None:
        super().__init__()
        self.model = model
        self.variant = check_variant(variant)
        self.tau = check_tau(DEFAULT_TAU[variant] if tau is None else tau)
        self.min_gap = min_gap

    def forward(self, features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Give the loss of a batch, a scalar."""
        u, v = embed(self.model, columns_of(features, ["sentence1", "sentence2"]))
        score, weight = split_labels(labels, len(u))
        x = SIMILARITIES[self.variant](u, v)
        return global_rank_loss(x, score, tau=self.tau, weight=weight, min_gap=self.min_gap)

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for sentence-transformers' model card."""
        return {"variant": self.variant, "tau": self.tau, "min_gap": self.min_gap}


def check_variant(variant: Variant) -> Variant:
    """Give the variant back if there is one of that name, InputError otherwise."""
    if variant not in SIMILARITIES:
        raise InputError(f"There is no angle variant {variant!r}; choose one of {', '.join(get_args(Variant))}.")
    return variant


def _quotients(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Give the real and imaginary parts of z_k times the conjugate of w_k, for unit u and v: (n, d/2) each."""
    if u.shape != v.shape or u.ndim != 2:
        raise InputError(f"The angle needs vectors of shape (n, d) twice, not {tuple(u.shape)}, {tuple(v.shape)}.")
    if u.shape[-1] % 2:
        raise InputError(
            f"The angle halves each vector, and {u.shape[-1]} dimensions are odd. Load the model with "
            f"truncate_dim={u.shape[-1] - 1}, or train with another loss."
        )
    u, v = (unit(x.to(torch.promote_types(x.dtype, torch.float32))) for x in (u, v))
    (a, b), (c, d) = u.chunk(2, dim=-1), v.chunk(2, dim=-1)
    return a * c + b * d, b * c - a * d
