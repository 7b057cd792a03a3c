"""Global centering: the mean of all vectors is taken out of each."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from stscurate.methods.calibration.base import Floats, Ints, Method, Vectors, unit


@dataclass(frozen=True)
class Centering(Method):
    """f(x) = (x - m) / |x - m|, m (d,) the mean of the texts fitted to."""

    mean: Floats

    name = "global-centering"
    maps = True

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """The mean."""
        return cls(vectors.mean(axis=0, dtype=np.float64))

    def transform(self, vectors: Vectors, lengths: Ints) -> Vectors:
        """The vectors without the mean."""
        return unit(vectors - self.mean)
