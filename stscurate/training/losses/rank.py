"""The pairwise rank loss: of two pairs, the one with the higher score shall be the more similar.

CoSENT's objective (Huang et al. 2024, doi:10.1109/TASLP.2024.3402087; Su 2022), which the cosine and
the angle term of AnglE (arXiv 2309.12871) share. The published form compares all pairs with all pairs
in an n x n matrix. It separates: with the pairs sorted by score, what stands below pair i is a prefix,
so a running log-sum-exp gives the same number in O(n log n) time and O(n) memory.

Value and gradient are written out in NumPy, on any device: of n pairs only 2n or 3n numbers come over, and even a
batch of 8 is done sooner than the smallest matrix, so that there is no second form for small ones
(benchmarks/rank_loss.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from stscurate.errors import InputError
from stscurate.training.losses.features import check_labels, check_tau

Array = NDArray[np.float64]

_FEW = 256  # pairs; below it two searches are done sooner than runs of equal scores are found


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
    float64 and given in float32 (float64 where ``similarity`` is). It has no second derivative. A batch
    spread over processes needs only x, s and w gathered before the call (losses.processes).

    A score is compared with s_i - min_gap in float64: for scores on a grid choose a gap between its
    steps (0.1 for steps of 0.2), not on one.

    >>> round(pairwise_rank_loss(torch.tensor([0.9, 0.2]), torch.tensor([1, 0]), tau=1.0).item(), 4)
    0.4032

    (log(1 + exp(0.2 - 0.9)).) InputError: shapes differ, tau isn't above 0, a score isn't finite, a
    weight or the gap is negative.
    """
    _check(similarity, score, tau, weight, min_gap)
    loss: Tensor = _RankLoss.apply(similarity, score, tau, weight, min_gap)  # type: ignore[no-untyped-call]
    return loss


class _RankLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, similarity: Tensor, score: Tensor, tau: float, weight: Tensor | None, min_gap: float
    ) -> Tensor:
        lower = higher = _array(similarity) / tau
        s = _array(score)
        w = None if weight is None else _array(weight)
        check_labels(torch.from_numpy(s), None if w is None else torch.from_numpy(w))
        kept = None
        if w is not None:
            # A log weight of -inf would make NaN gradients; such pairs leave instead.
            kept = w > 0
            log_weight = np.log(w[kept])
            lower, higher, s = lower[kept] + log_weight, higher[kept] - log_weight, s[kept]
        with np.errstate(all="ignore"):  # similarities that aren't finite give such a loss, as torch would
            loss, gradient = sorted_form(lower, higher, s, min_gap)
        if ctx.needs_input_grad[0]:
            if kept is not None:
                whole = np.zeros(len(kept))
                whole[kept] = gradient
                gradient = whole
            # the dtype first: Apple's GPUs have no float64
            ctx.save_for_backward(torch.from_numpy(gradient / tau).to(similarity.dtype).to(similarity.device))
        dtype = torch.promote_types(similarity.dtype, torch.float32)
        return torch.tensor(loss, dtype=dtype, device=similarity.device)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * of_loss, None, None, None, None


def sorted_form(lower: Array, higher: Array, score: Array, min_gap: float) -> tuple[float, Array]:
    """Give log(1 + sum of exp(lower_j - higher_i) over s_i - s_j > min_gap) and its gradient: (n,) to (), (n,).

    The gradient is that by x / tau, which moves lower_j and higher_j alike. By ascending score, pair i beats the
    first below_i pairs, and pair j is beaten by all from the first i on with below_i > j. With P_i the log-sum-exp
    of lower over those that i beats, and R_j that of -higher over those that beat j (both run along), the gradient
    is exp(lower_j + R_j - loss) - exp(P_i - higher_i - loss).
    """
    n = len(score)
    order = np.argsort(score, kind="stable")
    score, lower, higher = score[order], lower[order], higher[order]
    below, above = _bounds(score, min_gap)
    prefix, suffix = np.full(n + 1, -np.inf), np.full(n + 1, -np.inf)
    np.logaddexp.accumulate(lower, out=prefix[1:])
    np.logaddexp.accumulate(-higher[::-1], out=suffix[-2::-1])
    terms = prefix[below] - higher
    most = max(terms.max(), 0.0) if n else 0.0
    loss = most + math.log(np.exp(terms - most).sum() + math.exp(-most))
    gradient = np.empty(n)
    gradient[order] = np.exp(lower + suffix[above] - loss) - np.exp(terms - loss)
    return loss, gradient


def _bounds(score: Array, min_gap: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Of each pair, by ascending score: how many it beats, and the first that beats it; (n,) both."""
    n = len(score)
    if min_gap or n < _FEW:
        below = np.searchsorted(score, score - min_gap)
        return below, np.searchsorted(below, np.arange(n), side="right")
    # the ends of its run of equal scores
    ends = np.concatenate(([0], np.flatnonzero(score[1:] != score[:-1]) + 1, [n]))
    lengths = np.diff(ends)
    return np.repeat(ends[:-1], lengths), np.repeat(ends[1:], lengths)


def _array(values: Tensor) -> Array:
    """In float64, in which scores of any dtype keep their order."""
    array: Array = values.detach().cpu().double().numpy()
    return array


def _check(similarity: Tensor, score: Tensor, tau: float, weight: Tensor | None, min_gap: float) -> None:
    for name, given in (("score", score), ("weight", weight)):
        if given is not None and given.shape != similarity.shape:
            raise InputError(
                f"The rank loss needs one {name} a pair: {name} has shape {tuple(given.shape)}, "
                f"similarity {tuple(similarity.shape)}."
            )
    if similarity.ndim != 1:
        raise InputError(f"The rank loss needs similarities of shape (n,), not {tuple(similarity.shape)}.")
    check_tau(tau)
    if not (min_gap >= 0 and math.isfinite(min_gap)):
        raise InputError(f"min_gap is {min_gap}; the rank loss needs 0 or more.")
