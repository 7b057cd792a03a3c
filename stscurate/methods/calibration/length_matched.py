"""s-norm with a cohort of the other text's length, so that one threshold means the same for all lengths."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration.base import Floats, Ints, Method, Texts, Vectors
from stscurate.methods.calibration.lengths import bin_of, length_edges
from stscurate.methods.calibration.s_norm import against


@dataclass(frozen=True)
class LengthMatchedSNorm(Method):
    """s(u, v) = ((c - mu_u,b(v)) / sd_u,b(v) + (c - mu_v,b(u)) / sd_v,b(u)) / 2, b the bin of a text's length.

    mu_u,b and sd_u,b are those of u's cosines with the cohort's texts in bin b; all else as in s-norm. What u has with
    texts as long as v is what c is held against. edges: (b,) lower ends in tokens; means: (b, d); seconds: (b, d, d).
    """

    edges: Floats
    means: Floats
    seconds: NDArray[np.float32]  # for a tenth of the spread of cosines, float32 is a hundred thousand times too exact

    name = "length-matched-s-norm"

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """The two moments of each bin's texts."""
        edges = length_edges(lengths)
        bins = bin_of(lengths, edges)
        cohorts = [vectors[bins == number].astype(np.float64) for number in range(len(edges))]
        means = np.stack([cohort.mean(axis=0) for cohort in cohorts])
        seconds = np.stack([(cohort.T @ cohort / len(cohort)).astype(np.float32) for cohort in cohorts])
        return cls(edges, means, seconds)

    def texts(self, vectors: Vectors, lengths: Ints) -> Texts:
        """`own`: 1 / sd for each bin, mu / sd for each bin, and the bin of the text itself."""
        found = [against(vectors, *moments) for moments in zip(self.means, self.seconds, strict=True)]
        scales = np.stack([1 / sd for _, sd in found], axis=1)
        shifts = np.stack([mu / sd for mu, sd in found], axis=1)
        return Texts(vectors, np.concatenate([scales, shifts, bin_of(lengths, self.edges)[:, None]], axis=1))

    def correct(self, cosines: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """The numbers of each text at the other's bin."""
        bins = len(self.edges)

        def at(own: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            place = other[..., -1:].astype(np.int64)
            shape = np.broadcast_shapes(own.shape[:-1], place.shape[:-1])
            own, place = np.broadcast_to(own, (*shape, own.shape[-1])), np.broadcast_to(place, (*shape, 1))
            return np.take_along_axis(own, place, -1)[..., 0], np.take_along_axis(own, place + bins, -1)[..., 0]

        (scale_u, shift_u), (scale_v, shift_v) = at(left, right), at(right, left)
        return np.asarray((cosines * (scale_u + scale_v) - (shift_u + shift_v)) / 2)
