"""Hubs: vectors that are among the nearest neighbours of far more others than their share."""

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.cosines import blocks

_ROWS = 256


def k_occurrence(vectors: NDArray[np.float32], k: int, left_out: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Of each of n unit rows, among how many others' k nearest by cosine it is, (n,) integers that sum to n k.

    left_out: (m, 2) pairs of rows that aren't neighbours whatever their cosine. k below n. O(n^2 d) time, in blocks.
    """
    found = np.zeros(len(vectors), dtype=np.int64)
    pairs = np.zeros((0, 2), dtype=np.int64) if left_out is None else np.concatenate([left_out, left_out[:, ::-1]])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    starts = np.searchsorted(pairs[:, 0], np.arange(len(vectors) + 1))
    for rows in blocks(len(vectors), _ROWS):
        cosines = vectors[rows] @ vectors.T
        own = pairs[starts[rows.start] : starts[rows.stop]]
        cosines[own[:, 0] - rows.start, own[:, 1]] = -2.0
        cosines[np.arange(len(cosines)), np.arange(rows.start, rows.stop)] = -2.0
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        found += np.bincount(nearest.ravel(), minlength=len(vectors))
    return found


def skewness(values: NDArray[np.int64]) -> float:
    """Third standardised moment, the measure of hubness of Radovanovic et al. (JMLR 2010); 0 where all are equal."""
    deviation = values - values.mean()
    spread = float(np.mean(deviation**2))
    return float(np.mean(deviation**3) / spread**1.5) if spread > 0 else 0.0
