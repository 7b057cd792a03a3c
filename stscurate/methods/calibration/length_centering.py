"""Length centering: what all texts of a length have in common is taken out of their vectors."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from stscurate.methods.calibration.base import Floats, Ints, Method, Vectors, unit
from stscurate.methods.calibration.lengths import bin_of, length_edges, log_lengths


@dataclass(frozen=True)
class LengthCentering(Method):
    """f(x, l) = (x - m(l)) / |x - m(l)|, m(l) the mean vector of texts of length l.

    m runs straight, in log l, between the means of half-octave bins, each placed at the mean of its own log lengths,
    and is constant beyond the first and the last. places: (b,) log2 of tokens, rising; means: (b, d). With one bin it
    is global centering. Ours; centering as such is Mu and Viswanath's (arXiv 1702.01417) and older.
    """

    places: Floats
    means: Floats

    name = "length-centering"
    maps = True

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """The mean of each bin."""
        bins, places = bin_of(lengths, length_edges(lengths)), log_lengths(lengths)
        counts = np.bincount(bins)
        means = np.zeros((len(counts), vectors.shape[1]))
        np.add.at(means, bins, vectors.astype(np.float64))
        return cls(np.bincount(bins, weights=places) / counts, means / counts[:, None])

    def transform(self, vectors: Vectors, lengths: Ints) -> Vectors:
        """The vectors without the mean at their length."""
        places = np.clip(log_lengths(lengths), self.places[0], self.places[-1])
        low = np.clip(np.searchsorted(self.places, places, side="right") - 1, 0, max(len(self.places) - 2, 0))
        high = np.minimum(low + 1, len(self.places) - 1)
        width = np.where(high > low, self.places[high] - self.places[low], 1)
        share = ((places - self.places[low]) / width)[:, None]
        return unit(vectors - ((1 - share) * self.means[low] + share * self.means[high]))
