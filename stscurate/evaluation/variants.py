"""What is made of a model's vectors before they are compared, side by side with the vectors as they are."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.calibration.base import unit
from stscurate.methods.calibration.whitening import Whitening

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Variants:
    """whiten: whitening (Su et al., arXiv 2103.15316). dimensions: the first so many of the vectors' numbers alone.

    Truncation is what Matryoshka models (Kusupati et al., NeurIPS 2022) are trained for; the rest shows what they lose.
    """

    whiten: bool = False
    dimensions: tuple[int, ...] = ()

    def of(self, vectors: Vectors, model: str, fitted: Whitening | None = None) -> Iterator[tuple[str, Vectors]]:
        """Name and unit vectors of each variant, "" first: the vectors as they are, (n, d).

        fitted: whitening of other texts; without it, it is fitted to these very vectors. Rows of zeros stay, and
        nothing is fitted to them. InputError where there aren't more numbers than are to be kept.
        """
        yield "", vectors
        there = vectors.any(axis=1)
        if self.whiten:
            method = fitted or fit_whitening(vectors)
            found = method.transform(vectors, np.zeros(0, np.int64))
            found[~there] = 0
            yield f"whitened on {'training' if fitted else 'its own'} texts", found
        self.check(vectors.shape[1], model)
        for kept in self.dimensions:
            yield f"{kept} dimensions", unit(vectors[:, :kept])

    def check(self, numbers: int, model: str) -> None:
        """InputError where a model's vectors don't have more numbers than are to be kept."""
        for kept in self.dimensions:
            if kept >= numbers:
                raise InputError(f"--dimensions {kept}: the vectors of {model} have {numbers} numbers: keep fewer.")


def fit_whitening(vectors: Vectors) -> Whitening:
    """Whitening of these vectors, (n, d), rows of zeros left out. InputError where fewer than two are left."""
    there = vectors[vectors.any(axis=1)]
    if len(there) < 2:
        raise InputError(
            f"--whiten: {len(there)} of {len(vectors)} texts have a vector, and it takes two at the least."
        )
    return Whitening.fit(there, np.zeros(0, np.int64))


def parse_dimensions(text: str | None) -> tuple[int, ...]:
    """The numbers of "64,128,256". InputError for anything else."""
    parts = [part.strip() for part in (text or "").split(",")] if text is not None else []
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f"--dimensions {text}: give whole numbers with commas, as in 64,128,256.")
    return tuple(dict.fromkeys(map(int, parts)))
