"""All-but-the-top: without the mean and the few directions that vary most."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from stscurate.methods.calibration.base import Floats, Ints, Method, Vectors, unit


@dataclass(frozen=True)
class AllButTheTop(Method):
    """y = x - m; f(x) = y - sum_i (e_i.y) e_i, over its norm; e_i the D first principal directions.

    Mu and Viswanath, arXiv 1702.01417, algorithm 1; D = d / 100, as they advise, one at the least. mean: (d,);
    directions: (D, d). The norm is ours: they leave it to the cosine.
    """

    mean: Floats
    directions: Floats

    name = "all-but-the-top"
    maps = True

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """Mean and first principal directions."""
        mean = vectors.mean(axis=0, dtype=np.float64)
        _, directions = spread(vectors, mean)
        return cls(mean, directions[: max(1, vectors.shape[1] // 100)])

    def transform(self, vectors: Vectors, lengths: Ints) -> Vectors:
        """The vectors without mean and top."""
        centred = vectors - self.mean
        return unit(centred - centred @ self.directions.T @ self.directions)


def spread(vectors: Vectors, mean: Floats) -> tuple[Floats, Floats]:
    """Variances, falling, (d,), and the principal directions they are along, (d, d), a row each."""
    centred = vectors - mean
    values, columns = np.linalg.eigh(centred.T @ centred / len(vectors))
    directions = columns.T[::-1]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1, keepdims=True), axis=1)
    return values[::-1], directions * np.sign(largest)  # a direction's sign is the library's whim
