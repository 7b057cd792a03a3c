"""Agreement of two rankings, with an interval, and average precision for binary gold."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stscurate.methods.resampling import AveragePrecision, Spearman, bootstrap, interval, value

Floats = NDArray[np.float64]


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho of two sequences of n numbers, ties by mid-ranks; nan where either is constant."""
    return value(Spearman(x, y), len(np.asarray(x)))


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's r of two sequences of n numbers; nan where either is constant."""
    left, right = (np.asarray(side, np.float64) for side in (x, y))
    if left.min() == left.max() or right.min() == right.max():
        return float("nan")
    left, right = left - left.mean(), right - right.mean()
    return float(left @ right / np.sqrt((left @ left) * (right @ right)))


def bootstrap_interval(x: ArrayLike, y: ArrayLike, *, resamples: int = 1000, seed: int) -> tuple[float, float]:
    """95 % percentile interval of Spearman's rho over pairs (x_i, y_i) drawn anew with replacement.

    Ranks are taken inside each resample, where repeated pairs are ties. Resamples in which either side is constant
    have no rho and are left out; (nan, nan) where all are.
    """
    return interval(bootstrap([Spearman(x, y)], len(np.asarray(x)), resamples=resamples, seed=seed)[0])


def average_precision(label: ArrayLike, score: ArrayLike) -> float:
    """Mean precision over the positives, ranked by falling score; equal scores share the precision at their end.

    label: n numbers 0 or 1; nan without a positive. The same as scikit-learn's average_precision_score.
    """
    return value(AveragePrecision(label, score), len(np.asarray(label)))
