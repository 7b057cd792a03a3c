"""Mutual proximity: how likely it is that a text of the cohort is less like either of the two."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration.base import Floats, Ints, Method, Texts, Vectors
from stscurate.methods.calibration.s_norm import SNorm, against


@dataclass(frozen=True)
class MutualProximity(Method):
    """log F((c - mu_u) / sd_u) + log F((c - mu_v) / sd_v), F the normal distribution function; mu, sd as in s-norm.

    Schnitzer et al., JMLR 13 (2012), their independent Gaussian form; the logarithm is ours: the product is 1 to
    rounding for all that are very near. mean: (d,); second: (d, d).
    """

    mean: Floats
    second: Floats

    name = "mutual-proximity"

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """The cohort's two moments."""
        found = SNorm.fit(vectors, lengths)
        return cls(found.mean, found.second)

    def texts(self, vectors: Vectors, lengths: Ints) -> Texts:
        """`own`: mu and sd."""
        return Texts(vectors, np.stack(against(vectors, self.mean, self.second), axis=1))

    def correct(self, cosines: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """The sum of the two logarithms, 0 at most."""
        from scipy.special import log_ndtr

        one, two = ((cosines - own[..., 0]) / own[..., 1] for own in (left, right))
        return np.asarray(log_ndtr(one) + log_ndtr(two))
