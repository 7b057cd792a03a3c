"""How far several raters of the same units agree: Krippendorff's alpha, intraclass correlations.

Votes come in long form, as three arrays of one length: which unit, which rater, what value. Nobody has to have rated
everything.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Level = Literal["interval", "ordinal", "nominal"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def krippendorff_alpha(unit: ArrayLike, value: ArrayLike, *, level: Level) -> float:
    """Krippendorff's alpha: 1 - observed / expected disagreement, 1 for perfect agreement and 0 for chance.

    unit: (n,) integers; value: (n,) numbers, at most one a unit and rater. Units with one value say nothing about
    agreement and are left out. nan where no unit has two values, or all values are equal (Krippendorff 2011,
    "Computing Krippendorff's Alpha-Reliability").

    No matrix of values is built. The squared differences of level "interval" are variances; the ordinal metric
    (sum of the counts between two values, the half of each of both taken off) is the difference of their mid-ranks,
    so "ordinal" is "interval" over mid-ranks; "nominal" counts equal pairs. O(n log n) time, O(n) memory.
    """
    units, values = _pairable(np.asarray(unit, dtype=np.int64), np.asarray(value, dtype=np.float64))
    n = len(values)
    if n == 0:
        return float("nan")
    size = np.bincount(units)
    if level == "nominal":
        kinds = np.unique(values, return_inverse=True)[1]
        cells, counts = np.unique(units * (kinds.max() + 1) + kinds, return_counts=True)
        equal = np.bincount(cells // (kinds.max() + 1), weights=counts**2)
        observed = float(np.sum((size**2 - equal) / (size - 1)))
        expected = (n**2 - float(np.sum(np.bincount(kinds) ** 2))) / (n - 1)
    else:
        if level == "ordinal":
            from scipy.stats import rankdata

            values = rankdata(values)
        off = values - values.mean()
        within = off - (np.bincount(units, weights=off) / size)[units]
        # Over ordered pairs of m values, the squared differences sum up to 2 m times the squared deviations.
        observed = float(np.sum(2 * size / (size - 1) * np.bincount(units, weights=within**2)))
        expected = 2 * n * float(np.sum(off**2)) / (n - 1)
    return 1 - observed / expected if expected > 0 else float("nan")


class Intraclass(NamedTuple):
    """Intraclass correlations of a single rater and of the mean of all, by Shrout and Fleiss (1979).

    agreement: ICC(2,1) and ICC(2,k), raters' levels count; consistency: ICC(3,1) and ICC(3,k), they don't.
    units: that all raters have rated, and by which this was computed.
    """

    agreement: float
    mean_agreement: float
    consistency: float
    mean_consistency: float
    units: int


def intraclass_correlation(ratings: ArrayLike) -> Intraclass:
    """Two-way intraclass correlations of (n units, k raters); rows with a nan are left out.

    nan where fewer than two units or raters remain, or where nothing varies.
    """
    table = np.asarray(ratings, dtype=np.float64)
    table = table[np.isfinite(table).all(axis=1)]
    n, k = table.shape
    nan = float("nan")
    nothing = Intraclass(nan, nan, nan, nan, n)
    if n < 2 or k < 2:
        return nothing
    off = table - table.mean()
    rows, columns = off.mean(axis=1), off.mean(axis=0)
    between = k * float(np.sum(rows**2)) / (n - 1)
    raters = n * float(np.sum(columns**2)) / (k - 1)
    error = float(np.sum((off - rows[:, None] - columns) ** 2)) / ((n - 1) * (k - 1))
    if between == 0:
        return nothing
    shift = (raters - error) / n
    return Intraclass(
        agreement=(between - error) / (between + (k - 1) * error + k * shift),
        mean_agreement=(between - error) / (between + shift),
        consistency=(between - error) / (between + (k - 1) * error),
        mean_consistency=(between - error) / between,
        units=n,
    )


def _pairable(unit: Ints, value: Floats) -> tuple[Ints, Floats]:
    """The values that are finite and not alone in their unit; units numbered anew."""
    finite = np.isfinite(value)
    unit, value = unit[finite], value[finite]
    if not len(unit):
        return unit, value
    unit = np.unique(unit, return_inverse=True)[1]
    kept = np.bincount(unit)[unit] > 1
    return np.unique(unit[kept], return_inverse=True)[1], value[kept]
