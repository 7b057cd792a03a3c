"""What every calibration of cosines has in common: fitted on texts, it compares others, in pairs or all with all."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.wording import counted

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Texts:
    """n texts as a method compares them: unit `vectors`, (n, d), and `own`, (n, k) numbers of each text alone."""

    vectors: Vectors
    own: Floats

    def __len__(self) -> int:
        """Texts."""
        return len(self.vectors)

    def __getitem__(self, rows: Any) -> "Texts":
        """Some of the texts, by a slice, indices or a mask."""
        return Texts(self.vectors[rows], self.own[rows])


class Method(ABC):
    """A calibration, fitted. Subclasses are dataclasses whose fields are arrays: what is kept of the texts.

    A method is a map of the vectors (`transform`), or a correction of the cosine by numbers that belong to each of the
    two texts alone (`texts`, `correct`): both let it compare blocks of texts at the cost of their cosines.
    """

    name: ClassVar[str]
    maps: ClassVar[bool] = False  # whether cosines of `transform` are all there is to it

    @classmethod
    @abstractmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """Fit to n texts: (n, d) unit rows, and each one's length (n,) in tokens, 1 or more."""

    def transform(self, vectors: Vectors, lengths: Ints) -> Vectors:
        """The vectors as this method sees them: (n, d), unit rows."""
        return vectors

    def texts(self, vectors: Vectors, lengths: Ints) -> Texts:
        """n texts, ready to be compared."""
        return Texts(self.transform(vectors, lengths), np.zeros((len(vectors), 0)))

    def correct(self, cosines: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Similarities of the shape of `cosines`; left, right: (..., k) `own` of the texts, broadcast against it."""
        return cosines

    def similarity(self, left: Vectors, left_lengths: Ints, right: Vectors, right_lengths: Ints) -> Floats:
        """Of each row of `left`, (n, d), with the same row of `right`: (n,), the higher the more alike."""
        one, two = self.texts(left, left_lengths), self.texts(right, right_lengths)
        cosines = np.einsum("ij,ij->i", one.vectors, two.vectors, dtype=np.float64)
        return np.asarray(self.correct(cosines, one.own, two.own), dtype=np.float64)

    def block(self, left: Texts, right: Texts) -> Vectors:
        """Of each of m texts with each of n others: (m, n) float32."""
        own = (left.own[:, None].astype(np.float32), right.own[None].astype(np.float32))
        return np.asarray(self.correct(left.vectors @ right.vectors.T, *own), dtype=np.float32)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was fitted, by name: `type(self)(**arrays)` is this method again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


def checked(vectors: Vectors, lengths: Ints) -> tuple[Vectors, Ints]:
    """The same, held to what a fit needs. InputError names the first text that is wrong."""
    if vectors.ndim != 2 or len(vectors) != len(lengths):
        raise InputError(
            f"Vectors {vectors.shape} and {len(lengths)} lengths: give a vector and a length for each text."
        )
    if len(vectors) < 2:
        raise InputError(f"{counted(len(vectors), 'text')} to fit a calibration to: it needs two at the least.")
    norms = np.linalg.norm(vectors, axis=1)
    broken = np.flatnonzero(~(np.abs(norms - 1) < 1e-3))
    if broken.size:
        raise InputError(f"The vector of text {broken[0]} has the length {norms[broken[0]]:g}: give unit vectors.")
    if np.min(lengths) < 1:
        raise InputError(f"Text {np.argmin(lengths)} has {np.min(lengths)} tokens: leave empty texts out.")
    return vectors, lengths


def unit(vectors: NDArray[Any]) -> Vectors:
    """Each row over its norm, as float32; a row of zeros stays: it is like nothing."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)
