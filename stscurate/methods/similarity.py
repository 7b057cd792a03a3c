"""Cosines of vectors that have unit length already."""

import numpy as np
from numpy.typing import NDArray

_POSITIVE = 0.8  # 4 of 5


def pair_cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosine of each row of `left` with the same row of `right`, both (n, d) of unit rows: (n,) within -1 and 1."""
    return np.asarray(np.clip(np.einsum("ij,ij->i", left, right, dtype=np.float64), -1.0, 1.0))


def alignment(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """Mean squared distance of the n positive pairs, both (n, d) of unit rows (Wang and Isola, arXiv 2005.10242)."""
    return float(np.mean(2.0 - 2.0 * pair_cosines(left, right)))


def positives(gold: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which pairs, (n,), `alignment` is of: gold, (n,) within 0 and 1, above 0.8.

    SimCSE (Gao et al., arXiv 2104.08821) takes "STS-B pairs with a score higher than 4" of 5.
    """
    return np.asarray(gold > _POSITIVE + 1e-9)  # 4 of 5 itself isn't above it, however it was rounded


def uniformity(vectors: NDArray[np.float32]) -> float:
    """Log of the mean of exp(-2 |f(x) - f(y)|^2) over all pairs x != y of n unit rows, (n, d); as `alignment`.

    In blocks of rows: O(n^2 d) time, O(n) memory.
    """
    total, n = 0.0, len(vectors)
    for start in range(0, n, 512):
        cosines = vectors[start : start + 512].astype(np.float64) @ vectors.T.astype(np.float64)
        total += float(np.exp(4.0 * np.clip(cosines, -1.0, 1.0) - 4.0).sum())
    own = float(np.exp(4.0 * np.clip(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64), -1, 1) - 4.0).sum())
    return float(np.log((total - own) / (n * (n - 1))))
