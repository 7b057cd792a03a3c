"""The pairwise rank loss: of two pairs, the one with the higher score shall be the more similar.

CoSENT's objective (Huang et al. 2024, doi:10.1109/TASLP.2024.3402087; Su 2022), which the cosine and
the angle term of AnglE (arXiv 2309.12871) share. The published form compares all pairs with all pairs
in an n x n matrix. It separates: with the pairs sorted by score, what stands below pair i is a prefix,
so a running log-sum-exp gives the same number in O(n log n) time and O(n) memory.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from stscurate.errors import InputError

# Up to this many pairs the matrix is as fast as sorting (one thread, forward and backward).
MATRIX_UP_TO = 80


def pairwise_rank_loss(
    similarity: Tensor,
    score: Tensor,
    *,
    tau: float,
    weight: Tensor | None = None,
    min_gap: float = 0.0,
) -> Tensor:
    """Give log(1 + sum of w_i w_j exp((x_j - x_i) / tau) over all i, j with s_i - s_j > min_gap), a scalar.

    ``similarity`` x, ``score`` s and ``weight`` w (ones if left out) have shape (n,), n >= 0. Scores are
    on any scale and of any dtype; only their order counts, and tied pairs are not compared. A pair of
    weight 0 takes no part. Where nothing is comparable the loss is 0 with gradient 0. It is computed in
    float32 at least (float64 where ``similarity`` is). A batch spread over processes needs only x, s and
    w gathered before the call.

    A score is compared with s_i - min_gap in float64: for scores on a grid choose a gap between its
    steps (0.1 for steps of 0.2), not on one.

    >>> round(pairwise_rank_loss(torch.tensor([0.9, 0.2]), torch.tensor([1, 0]), tau=1.0).item(), 4)
    0.4032

    (log(1 + exp(0.2 - 0.9)).) InputError: shapes differ, tau isn't above 0, a score isn't finite, a
    weight or the gap is negative.
    """
    _check(similarity, score, tau, weight, min_gap)
    exponent = similarity.to(torch.promote_types(similarity.dtype, torch.float32)) / tau
    score = score.to(_exact(score))
    log_weight = torch.zeros_like(exponent)
    if weight is not None:
        # A log weight of -inf would make NaN gradients; such pairs leave instead.
        kept = weight > 0
        exponent, score = exponent[kept], score[kept]
        log_weight = weight[kept].to(exponent.dtype).log()
    form = matrix_form if len(score) <= MATRIX_UP_TO else sorted_form
    return form(exponent + log_weight, exponent - log_weight, score, min_gap)


def matrix_form(lower: Tensor, higher: Tensor, score: Tensor, min_gap: float) -> Tensor:
    """Sum exp(lower_j - higher_i) over the comparable (i, j) of the n x n matrix; log(1 + the sum)."""
    comparable = score[None, :] < score[:, None] - min_gap
    terms = (lower[None, :] - higher[:, None])[comparable]
    return torch.logsumexp(torch.cat([terms.new_zeros(1), terms]), dim=0)


def sorted_form(lower: Tensor, higher: Tensor, score: Tensor, min_gap: float) -> Tensor:
    """Give what matrix_form gives, from a running log-sum-exp over ascending scores."""
    score, order = score.sort(stable=True)
    below = torch.searchsorted(score, score - min_gap)
    beaten = below > 0
    running = torch.logcumsumexp(lower[order], dim=0)
    terms = running[below[beaten] - 1] - higher[order[beaten]]
    return torch.logsumexp(torch.cat([terms.new_zeros(1), terms]), dim=0)


def _exact(score: Tensor) -> torch.dtype:
    """Give a dtype in which scores of any dtype keep their order (Apple's GPUs have no float64)."""
    return torch.float32 if score.device.type == "mps" else torch.float64


def _check(similarity: Tensor, score: Tensor, tau: float, weight: Tensor | None, min_gap: float) -> None:
    for name, given in (("score", score), ("weight", weight)):
        if given is not None and given.shape != similarity.shape:
            raise InputError(
                f"The rank loss needs one {name} a pair: {name} has shape {tuple(given.shape)}, "
                f"similarity {tuple(similarity.shape)}."
            )
    if similarity.ndim != 1:
        raise InputError(f"The rank loss needs similarities of shape (n,), not {tuple(similarity.shape)}.")
    if not (tau > 0 and math.isfinite(tau)):
        raise InputError(f"tau is {tau}; the rank loss needs a number above 0, such as 0.05.")
    if not (min_gap >= 0 and math.isfinite(min_gap)):
        raise InputError(f"min_gap is {min_gap}; the rank loss needs 0 or more.")
    if not bool(torch.isfinite(score).all()):
        raise InputError("A score is NaN or infinite. Drop the rows without a score before training.")
    if weight is not None and not bool((torch.isfinite(weight) & (weight >= 0)).all()):
        raise InputError("A weight is negative, NaN or infinite. Weights are 0 (leave out) or more.")
