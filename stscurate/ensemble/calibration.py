"""Annotators' numbers calibrated to gold, each number by a curve that hasn't seen its own pair's gold."""

from collections.abc import Collection
from typing import Literal, NamedTuple

import numpy as np

from stscurate.errors import InputError
from stscurate.methods.numbers import Floats, Ints, Numbers, mid_ranks
from stscurate.wording import counted

Curve = Literal["isotonic", "linear"]
CURVES: tuple[Curve, ...] = ("linear", "isotonic")
FOLDS = 5
_TIE = 1e-6  # share of the raw order in a calibrated number: nothing in value, enough to keep equal levels in order


class Calibrated(NamedTuple):
    """value: (m,) one a number, 0..1. error: (annotators, annotators) means of the products of their errors on gold,
    by the folds left out, over the pairs that both have voted on; 0 where there is none, nan for one without gold.
    gold: (annotators,) how many of each's numbers had gold.

    Where dear annotators were asked about a part, which is the harder one, all errors are of that part, if it holds
    gold of each: else the dear would look worse than who saw the easy pairs too.
    """

    value: Floats
    error: Floats
    gold: Ints


def calibrate(
    numbers: Numbers,
    gold: Floats,
    *,
    curve: Curve,
    folds: int = FOLDS,
    seed: int = 0,
    dear: Collection[str] = (),
) -> Calibrated:
    """Map each annotator's raw numbers to gold's scale by a rising curve, cross-fitted.

    gold: (pairs,) 0..1, nan where a pair has none. The pairs with gold are dealt into `folds` by the seed; a number
    with gold is mapped by the curve fitted on the other folds, one without by the curve of all. isotonic: the
    best rising step function; its plateaus would make ties that the annotator didn't, so a millionth of the value is
    the raw number's mid-rank. linear: least squares, cut to 0..1, its slope never negative.

    InputError where an annotator has fewer pairs with gold than two a fold.
    """
    fold = np.full(len(gold), -1)
    known = np.flatnonzero(np.isfinite(gold))
    fold[known] = np.random.default_rng(seed).permutation(len(known)) % folds
    value, wrong = np.empty(len(numbers.raw)), np.full(len(numbers.raw), np.nan)
    counts = np.zeros(len(numbers.names), dtype=np.int64)
    for number, name in enumerate(numbers.names):
        own = numbers.own(number)
        x, at = numbers.raw[own], numbers.pair[own]
        if not len(x):
            continue
        with_gold = np.isfinite(gold[at])
        counts[number] = int(with_gold.sum())
        if counts[number] < 2 * folds:
            raise InputError(
                f"Only {counted(counts[number], 'pair with gold has', 'pairs with gold have')} a vote of {name}: "
                f"calibration takes {2 * folds} at least. Give more gold, or leave it out (the scores are then "
                "gold-free)."
            )
        mapped = _fitted(curve, x[with_gold], gold[at][with_gold], x)
        for part in range(folds):
            out = fold[at] == part
            if out.any():
                mapped[out] = _fitted(curve, x[with_gold & ~out], gold[at][with_gold & ~out], x[out])
        wrong[own] = mapped - gold[at]
        value[own] = (1 - _TIE) * mapped + _TIE * mid_ranks(x)
    return Calibrated(value, _errors(numbers, wrong, dear), counts)


def _errors(numbers: Numbers, wrong: Floats, dear: Collection[str]) -> Floats:
    """The products of errors, of the part that dear ones have voted on where that says it of all."""
    late = np.array([name in dear for name in numbers.names], dtype=np.bool_)
    part = np.zeros(len(numbers.pair_ids), dtype=np.bool_)
    part[numbers.pair[late[numbers.annotator]]] = True
    table = numbers.matrix(wrong)
    of_all = _products(table)
    of_part = _products(table[part])
    return of_part if np.isfinite(np.diag(of_part)[np.isfinite(np.diag(of_all))]).all() else of_all


def _products(table: Floats) -> Floats:
    """(annotators, annotators) means of products over the rows that both have, from (pairs, annotators) with nan."""
    there = np.isfinite(table).astype(np.float64)
    filled = np.where(there > 0, table, 0.0)
    count = there.T @ there
    found = np.divide(filled.T @ filled, count, out=np.zeros_like(count), where=count > 0)
    found[np.diag_indices_from(found)] = np.where(np.diag(count) > 0, np.diag(found), np.nan)
    return np.asarray(found)


def error_weights(error: Floats) -> Floats:
    """The weights of least error variance, 0 at the least and 1 in all (Bates and Granger 1969); 0 without gold.

    error: as `Calibrated` has it. Errors that annotators share count: of two that are wrong together one is enough.
    That no weight is negative keeps few pairs of gold from being overfitted (Jagannathan and Ma 2003).
    """
    from scipy.optimize import nnls

    known = np.isfinite(np.diag(error))
    weight = np.zeros(len(error))
    if not known.any():
        return weight
    own = error[np.ix_(known, known)]
    size, axes = np.linalg.eigh(own / max(float(np.diag(own).mean()), 1e-12))
    # |root w|^2 is the variance; the last row holds the sum to 1.
    root = np.sqrt(np.maximum(size, 1e-6))[:, None] * axes.T
    found, _ = nnls(np.vstack([root, np.full((1, len(own)), 1e3)]), np.append(np.zeros(len(own)), 1e3))
    weight[known] = found / found.sum()
    return weight


def _fitted(curve: Curve, x: Floats, y: Floats, at: Floats) -> Floats:
    """The curve of y over x, read off at `at`."""
    if curve == "isotonic":
        from sklearn.isotonic import IsotonicRegression

        fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(x, y)
        return np.asarray(fitted.predict(at), dtype=np.float64)
    off = x - x.mean()
    slope = max(float(off @ y) / max(float(off @ off), 1e-300), 0.0) if len(x) else 0.0
    return np.asarray(np.clip(y.mean() + slope * (at - x.mean()), 0.0, 1.0))
