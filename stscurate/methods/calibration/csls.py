"""CSLS: a cosine against those that both texts have with their nearest neighbours."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration.base import Ints, Method, Texts, Vectors

_COHORT = 10_000  # texts kept, evenly over all
_NEAREST = 10
_BLOCK = 4_000_000  # cosines at a time
_SAME = 1 - 1e-5


@dataclass(frozen=True)
class Csls(Method):
    """s(u, v) = 2 c - r(u) - r(v), r the mean cosine of a text with its ten nearest of the cohort.

    Conneau et al., arXiv 1710.04087, section 2.3; they have two languages, we one: what is equal to a text isn't a
    neighbour of it. cohort: (n, d), 10,000 texts at most, evenly over all.
    """

    cohort: Vectors

    name = "csls"

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """The cohort itself."""
        rows = np.linspace(0, len(vectors) - 1, min(len(vectors), _COHORT)).astype(np.int64)
        return cls(vectors[rows])

    def texts(self, vectors: Vectors, lengths: Ints) -> Texts:
        """`own`: r."""
        near = min(_NEAREST, len(self.cohort) - 1)
        step = max(1, _BLOCK // len(self.cohort))
        found = np.empty((len(vectors), 1))
        for start in range(0, len(vectors), step):
            cosines = vectors[start : start + step] @ self.cohort.T
            cosines[cosines > _SAME] = -2.0
            nearest = np.partition(cosines, -near, axis=1)[:, -near:]
            there = nearest > -2.0
            found[start : start + step, 0] = np.where(there, nearest, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        return Texts(vectors, found)

    def correct(self, cosines: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """2 c - r(u) - r(v)."""
        return np.asarray(2 * cosines - left[..., 0] - right[..., 0])
