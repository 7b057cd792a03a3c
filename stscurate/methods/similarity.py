"""Cosines of vectors that have unit length already."""

import numpy as np
from numpy.typing import NDArray


def pair_cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosine of each row of `left` with the same row of `right`, both (n, d) of unit rows: (n,) within -1 and 1."""
    return np.asarray(np.clip(np.einsum("ij,ij->i", left, right, dtype=np.float64), -1.0, 1.0))
