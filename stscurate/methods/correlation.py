"""Agreement of two rankings, with an interval, and average precision for binary gold."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

_BLOCK = 1_000_000  # numbers in one block of resamples: bounds the memory at some hundred megabytes

Floats = NDArray[np.float64]


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho of two sequences of n numbers, ties by mid-ranks; nan where either is constant."""
    return float(_row_correlations(_ranks(_rows(x)), _ranks(_rows(y)))[0])


def bootstrap_interval(x: ArrayLike, y: ArrayLike, *, resamples: int = 1000, seed: int) -> tuple[float, float]:
    """95 % percentile interval of Spearman's rho over pairs (x_i, y_i) drawn anew with replacement.

    Ranks are taken inside each resample, where repeated pairs are ties. Resamples in which either side is constant
    have no rho and are left out; (nan, nan) where all are.
    """
    left, right = _rows(x)[0], _rows(y)[0]
    n = len(left)
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // n)
    found: list[Floats] = []
    for start in range(0, resamples, block):
        drawn = generator.integers(n, size=(min(block, resamples - start), n))
        found.append(_row_correlations(_ranks(left[drawn]), _ranks(right[drawn])))
    values = np.concatenate(found)
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), float("nan")
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def average_precision(label: ArrayLike, score: ArrayLike) -> float:
    """Mean precision over the positives, ranked by falling score; equal scores share the precision at their end.

    label: n numbers 0 or 1; nan without a positive. The same as scikit-learn's average_precision_score.
    """
    positive, ranked = _rows(label)[0], _rows(score)[0]
    order = np.argsort(-ranked, kind="stable")
    positive, ranked = positive[order], ranked[order]
    last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)  # the end of each run of equal scores
    hits = np.cumsum(positive)[last]
    if not hits[-1]:
        return float("nan")
    return float(np.sum(np.diff(hits, prepend=0.0) * hits / (last + 1)) / hits[-1])


def _rows(values: ArrayLike) -> Floats:
    return np.atleast_2d(np.asarray(values, dtype=np.float64))


def _ranks(values: Floats) -> Floats:
    """Mid-ranks within each row of (m, n); a row with a nan is all nan."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=1), dtype=np.float64)


def _row_correlations(x: Floats, y: Floats) -> Floats:
    """Pearson's r of each row of x with the same row of y; nan where a row is constant."""
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the nan that is meant
        return np.asarray((x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1)))
