"""Whitening: every direction varies as much as any other."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from stscurate.methods.calibration.all_but_the_top import spread
from stscurate.methods.calibration.base import Floats, Ints, Method, Vectors, unit

_MOST = 256  # directions


@dataclass(frozen=True)
class Whitening(Method):
    """f(x) = (x - m) W over its norm, W = U_k diag(1 / sqrt(lambda_k)), the k first principal directions.

    Su et al., arXiv 2103.15316, whitening-k with their k = 256; fewer where there are fewer than twice as many texts,
    since the variance along the last directions of few texts is noise. mean: (d,); weights: (d, k).
    """

    mean: Floats
    weights: Floats

    name = "whitening"
    maps = True

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """Mean, directions and variances."""
        mean = vectors.mean(axis=0, dtype=np.float64)
        values, directions = spread(vectors, mean)
        kept = min(_MOST, max(1, len(vectors) // 2), int((values > 1e-9 * values[0]).sum()))
        return cls(mean, directions[:kept].T / np.sqrt(values[:kept]))

    def transform(self, vectors: Vectors, lengths: Ints) -> Vectors:
        """(n, k)."""
        return unit((vectors - self.mean) @ self.weights)
