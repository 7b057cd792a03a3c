"""z by bins: a cosine against those of all pairs of texts of these two lengths."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration.base import Floats, Ints, Method, Texts, Vectors
from stscurate.methods.calibration.lengths import bin_of, length_edges


@dataclass(frozen=True)
class LengthBins(Method):
    """s(u, v) = (c - mean_ab) / sd_ab, over all pairs of one text of bin a and another of bin b, u in a, v in b.

    No pair is formed: with s_a the sum of a bin's vectors and G_a = X_a' X_a, the sum of the cosines is s_a.s_b and
    that of their squares <G_a, G_b>; within a bin each text's 1 with itself is taken off. edges: (b,) lower ends in
    tokens; mean, sd: (b, b).
    """

    edges: Floats
    mean: Floats
    sd: Floats

    name = "length-bins"

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """Mean and standard deviation of each pair of bins."""
        edges = length_edges(lengths)
        bins = bin_of(lengths, edges)
        parts = [vectors[bins == number].astype(np.float64) for number in range(len(edges))]
        sizes = np.array([len(part) for part in parts])
        whole = np.stack([part.sum(axis=0) for part in parts])
        second = np.stack([(part.T @ part).ravel() for part in parts])
        own = [np.einsum("ij,ij->i", part, part) for part in parts]
        pairs = np.outer(sizes, sizes) - np.diag(sizes)
        mean = (whole @ whole.T - np.diag([value.sum() for value in own])) / pairs
        square = (second @ second.T - np.diag([(value**2).sum() for value in own])) / pairs
        return cls(edges, mean, np.sqrt(np.maximum(square - mean**2, 1e-12)))

    def texts(self, vectors: Vectors, lengths: Ints) -> Texts:
        """`own`: the text's bin."""
        return Texts(vectors, bin_of(lengths, self.edges)[:, None].astype(np.float64))

    def correct(self, cosines: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """(c - mean_ab) / sd_ab."""
        place = left[..., 0].astype(np.int64), right[..., 0].astype(np.int64)
        return np.asarray((cosines - self.mean[place]) / self.sd[place])
