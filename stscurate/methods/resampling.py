"""The bootstrap: statistics of pairs that are drawn anew with replacement, without sorting any resample.

A resample is told by how often each row was drawn. Ranks within it, precision and thresholds then come from running
sums of these counts in an order that is found once: O(n) a resample where ranking it anew costs O(n log n).
"""

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

_BLOCK = 100_000  # numbers in one block of resamples: few enough for the processor's cache

Floats = NDArray[np.float64]


class Statistic(Protocol):
    """A number of n rows, of each of b resamples at once."""

    def __call__(self, counts: Floats) -> Floats:
        """(b, n) how often each row was drawn -> (b,) the statistic, nan where it has none."""


class Spearman:
    """Spearman's rho of x and y, n numbers each; ties, which repeated rows are too, by mid-ranks."""

    def __init__(self, x: ArrayLike, y: ArrayLike):
        self._x, self._y = _Order(x), _Order(y)

    def __call__(self, counts: Floats) -> Floats:
        """As Statistic; nan where either side is constant."""
        middle = (counts.sum(axis=1, keepdims=True) + 1) / 2  # the mean of mid-ranks
        return _weighted_correlation(counts, self._x.ranks(counts) - middle, self._y.ranks(counts) - middle)


class AveragePrecision:
    """Mean precision over the positives, ranked by falling score; equal scores share the precision at their end.

    label: n numbers 0 or 1, score: n numbers. The same as scikit-learn's average_precision_score.
    """

    def __init__(self, label: ArrayLike, score: ArrayLike):
        self._label = np.asarray(label, np.float64)
        self._order = _Order(-np.asarray(score, np.float64))

    def __call__(self, counts: Floats) -> Floats:
        """As Statistic; nan without a positive."""
        drawn = np.cumsum(self._order.sums(counts), axis=1)
        hits = np.cumsum(self._order.sums(counts * self._label), axis=1)
        gained = np.diff(hits, axis=1, prepend=0.0)
        with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: no positive, or nothing drawn yet
            precision = np.where(drawn > 0, hits / drawn, 0.0)
            return np.asarray((gained * precision).sum(axis=1) / hits[:, -1])


class Ratio:
    """The sum of n numbers over the sum of n sizes: the mean over all rows where what is drawn are groups of rows."""

    def __init__(self, sums: ArrayLike, sizes: ArrayLike):
        self._sums, self._sizes = np.asarray(sums, np.float64), np.asarray(sizes, np.float64)

    def __call__(self, counts: Floats) -> Floats:
        """As Statistic; nan where nothing was drawn."""
        with np.errstate(invalid="ignore"):
            return np.asarray((counts @ self._sums) / (counts @ self._sizes))


def value(statistic: Statistic, n: int) -> float:
    """The statistic of the n rows as they are."""
    return float(statistic(np.ones((1, n)))[0])


def bootstrap(statistics: Sequence[Statistic], n: int, *, resamples: int, seed: int) -> Floats:
    """Each statistic in the same resamples of n rows, (len(statistics), resamples); nan where it has no value."""
    found = [np.stack([statistic(counts) for statistic in statistics]) for counts in drawn(n, resamples, seed)]
    return np.concatenate(found, axis=1)


def drawn(n: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each of n rows stands in each resample of n, in blocks of (b, n)."""
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // n)
    for start in range(0, resamples, block):
        rows = generator.integers(n, size=(min(block, resamples - start), n))
        places = rows + n * np.arange(len(rows))[:, None]
        yield np.bincount(places.ravel(), minlength=rows.size).reshape(rows.shape).astype(np.float64)


def interval(values: Floats) -> tuple[float, float]:
    """The middle 95 % of the values that are finite; (nan, nan) without any."""
    values = values[np.isfinite(values)]
    if not values.size:
        return math.nan, math.nan
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def two_sided_p(differences: Floats) -> float:
    """Twice the smaller share of resampled differences on either side of 0, which counts to both; at most 1.

    One is added to the numbers of both, so that no p is below 2 / (resamples + 1) (Davison and Hinkley, Bootstrap
    Methods and their Application, 1997, section 4.2). nan without a difference that is finite.
    """
    differences = differences[np.isfinite(differences)]
    if not differences.size:
        return math.nan
    sides = (int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * (1 + min(sides)) / (1 + differences.size))


class _Order:
    """n numbers in order, and where runs of equal ones begin."""

    def __init__(self, values: ArrayLike):
        numbers = np.asarray(values, np.float64)
        self._order = np.argsort(numbers, kind="stable")
        ordered = numbers[self._order]
        self._starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        runs = np.zeros(len(numbers), np.int64)
        runs[self._starts[1:]] = 1
        self._run_of = np.empty(len(numbers), np.int64)
        self._run_of[self._order] = np.cumsum(runs)
        self._broken = bool(np.isnan(numbers).any())

    def sums(self, counts: Floats) -> Floats:
        """The counts of each run of equal numbers, (b, runs), in rising order of the numbers."""
        return np.asarray(np.add.reduceat(counts[:, self._order], self._starts, axis=1))

    def ranks(self, counts: Floats) -> Floats:
        """The mid-rank that each row has in each resample, (b, n); all nan where a number is."""
        if self._broken:
            return np.full(counts.shape, np.nan)
        sums = self.sums(counts)
        return np.asarray((np.cumsum(sums, axis=1) - (sums - 1) / 2)[:, self._run_of])


def _weighted_correlation(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Pearson's r of each row of the centred x with the same row of the centred y."""
    weighted = weights * x
    weighted_y = weights * y
    with np.errstate(invalid="ignore"):  # 0 / 0 is the nan that is meant
        return np.asarray(_dots(weighted, y) / np.sqrt(_dots(weighted, x) * _dots(weighted_y, y)))


def _dots(x: Floats, y: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", x, y))
