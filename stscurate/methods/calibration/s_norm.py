"""s-norm: a cosine seen from both texts, against what each has with a cohort of others."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration.base import Floats, Ints, Method, Texts, Vectors


@dataclass(frozen=True)
class SNorm(Method):
    """s(u, v) = ((c - mu_u) / sd_u + (c - mu_v) / sd_v) / 2, c the cosine, mu and sd of a text's cosines with a cohort.

    No cosine with the cohort is computed: mu_u = u.m and sd_u^2 = u'Su - mu_u^2, with m (d,) the mean of the cohort's
    vectors and S (d, d) of their outer products. Symmetric score normalisation by impostors, from speaker verification
    (Shum et al., Odyssey 2010; Kenny, Odyssey 2010). A text of the cohort counts itself, which is 1/n of it.
    """

    mean: Floats
    second: Floats

    name = "s-norm"

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """The cohort's two moments."""
        cohort = vectors.astype(np.float64)
        return cls(cohort.mean(axis=0), cohort.T @ cohort / len(cohort))

    def texts(self, vectors: Vectors, lengths: Ints) -> Texts:
        """`own`: 1 / sd and mu / sd."""
        mu, sd = against(vectors, self.mean, self.second)
        return Texts(vectors, np.stack([1 / sd, mu / sd], axis=1))

    def correct(self, cosines: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """(c / sd_u - mu_u / sd_u + c / sd_v - mu_v / sd_v) / 2."""
        scale, shift = (left + right)[..., 0] / 2, (left + right)[..., 1] / 2
        return np.asarray(cosines * scale - shift)


def against(vectors: Vectors, mean: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each text's cosines with a cohort of these moments: (n,), (n,)."""
    found = vectors.astype(np.float64)
    mu = found @ mean
    # A cohort of one text many times has no spread; rounding could make it negative.
    return mu, np.sqrt(np.maximum(np.einsum("ij,ij->i", found @ second, found) - mu**2, 1e-12))
