"""The cosine as it is, to compare with."""

from dataclasses import dataclass
from typing import Self

from stscurate.methods.calibration.base import Ints, Method, Vectors


@dataclass(frozen=True)
class Cosine(Method):
    """No calibration."""

    name = "cosine"
    maps = True

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """Nothing is fitted."""
        return cls()
