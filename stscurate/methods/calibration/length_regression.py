"""Regression on log lengths: what is left of a cosine when the two lengths have explained their part."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration.base import Floats, Ints, Method, Texts, Vectors
from stscurate.methods.calibration.lengths import log_lengths


@dataclass(frozen=True)
class LengthRegression(Method):
    """s(u, v) = c - b0 - b1 (x_u + x_v) - b2 x_u x_v, x = log2 of the length; least squares over all pairs of texts.

    No pair is formed: all sums over i != j come from sum_i x_i^p and sum_i x_i^p u_i. weights: (3,) b0, b1, b2.
    """

    weights: Floats

    name = "length-regression"

    @classmethod
    def fit(cls, vectors: Vectors, lengths: Ints) -> Self:
        """The normal equations, in x less its mean, solved by the least of all solutions where x doesn't vary."""
        x = log_lengths(lengths)
        centre, n = x.mean(), len(x)
        x = x - centre
        s1, s2, s3, s4 = (float((x**power).sum()) for power in (1, 2, 3, 4))
        pairs = n * (n - 1)
        sums, products = 2 * (n - 1) * s1, s1 * s1 - s2  # of x_i + x_j, and of x_i x_j
        squares = 2 * (n - 1) * s2 + 2 * products  # of (x_i + x_j)^2
        mixed = 2 * (s2 * s1 - s3)  # of (x_i + x_j) x_i x_j
        left = np.array([[pairs, sums, products], [sums, squares, mixed], [products, mixed, s2 * s2 - s4]])
        found = vectors.astype(np.float64)
        whole, weighed = found.sum(axis=0), x @ found
        own = np.einsum("ij,ij->i", found, found)
        right = np.array(
            [whole @ whole - own.sum(), 2 * (weighed @ whole - x @ own), weighed @ weighed - (x * x) @ own]
        )
        b0, b1, b2 = np.linalg.lstsq(left, right, rcond=1e-12)[0]
        # (x_u - m) + (x_v - m) and (x_u - m)(x_v - m), multiplied out
        return cls(np.array([b0 - 2 * b1 * centre + b2 * centre**2, b1 - b2 * centre, b2]))

    def texts(self, vectors: Vectors, lengths: Ints) -> Texts:
        """`own`: x."""
        return Texts(vectors, log_lengths(lengths)[:, None])

    def correct(self, cosines: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """The residual."""
        b0, b1, b2 = self.weights.tolist()
        one, two = left[..., 0], right[..., 0]
        return np.asarray(cosines - (b0 + b1 * (one + two) + b2 * one * two))
