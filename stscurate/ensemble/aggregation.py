"""One score a pair from the votes of all annotators, by the method of choice."""

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from stscurate.ensemble.calibration import FOLDS, Curve, calibrate, error_weights
from stscurate.ensemble.categorical import BINS, Votes, binned, dawid_skene, expected, mace
from stscurate.ensemble.factor import factor_weights
from stscurate.errors import InputError
from stscurate.methods.numbers import Floats, Ints, Numbers, numbers_of, placed
from stscurate.records import SCORES, check

METHODS = ("mean", "median", "weighted", "dawid-skene", "mace")


def aggregate(
    votes: pa.Table,
    *,
    method: str = "weighted",
    gold: Mapping[str, float] | None = None,
    curve: Curve = "linear",
    folds: int = FOLDS,
    bins: int = BINS,
    seed: int = 0,
    dear: Collection[str] = (),
    overlap: Mapping[str, float] | None = None,
) -> pa.Table:
    """One score a pair, 0..1, from a table of votes; a table of schema SCORES, pairs in the order of the votes.

    An annotator's number for a pair is the mean of its valid votes (orders, samples). Without gold, absolute scales
    are divided by their range; where any annotator is relative, all go by their mid-ranks (see `numbers.placed`).
    With gold (pair_id -> 0..1, for some of the pairs), each annotator is calibrated to it by a cross-fitted `curve`.

    mean, median: over the annotators. weighted: with gold for the least error variance, without it by what the
    annotators have in common (`factor`; of fewer than three, or on fewer
    than 30 pairs, the mean) beyond the `overlap` of each pair's
    wording (pair_id -> 0..1), where that is given. dawid-skene, mace: the numbers cut into
    `bins` classes, the expected class (`categorical`).

    dear: annotators that a cascade asked about the doubtful pairs only, the others having voted on all: their level,
    what they have in common with the others, and their errors are taken as they would be over all pairs (`placed`,
    `factor`, `calibration`).

    `spread` is the annotators' population standard deviation around the mean, with their weights where there are
    any. Pairs without a valid vote have no row. The column `method` says how: "mean of ranks", "weighted, linear".

    InputError for another method, too little gold, or an annotator that votes on two scales; SchemaError for a
    number off its scale.
    """
    if method not in METHODS:
        raise InputError(
            f"There is no method {method} of aggregation: take {', '.join(METHODS[:-1])} or {METHODS[-1]}."
        )
    numbers = numbers_of(votes)
    value, error = _valued(numbers, gold, curve=curve, folds=folds, seed=seed, dear=dear)
    named = f"{method}, {curve}" if gold is not None else method + (" of ranks" if numbers.relative else "")
    weight = _weights(numbers, value, error, dear, overlap) if method == "weighted" else np.ones(len(numbers.names))
    score = None
    if method in ("dawid-skene", "mace"):
        score = _by_classes(numbers, value, method, bins)
    return _scores(numbers, value, weight, score, median=method == "median", named=named)


def weights(
    votes: pa.Table,
    *,
    gold: Mapping[str, float] | None = None,
    curve: Curve = "linear",
    folds: int = FOLDS,
    seed: int = 0,
    dear: Collection[str] = (),
    overlap: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Annotator -> the weight that `aggregate` by "weighted" with the same arguments gives it; 1 in all."""
    numbers = numbers_of(votes)
    value, error = _valued(numbers, gold, curve=curve, folds=folds, seed=seed, dear=dear)
    return dict(zip(numbers.names, _weights(numbers, value, error, dear, overlap).tolist(), strict=True))


def _valued(
    numbers: Numbers,
    gold: Mapping[str, float] | None,
    *,
    curve: Curve,
    folds: int,
    seed: int,
    dear: Collection[str],
) -> tuple[Floats, Floats | None]:
    """Each number on a scale of 0 to 1, and the annotators' errors where there is gold (`Calibrated`)."""
    if gold is None:
        return placed(numbers, dear=dear), None
    known = np.array([gold.get(pair_id, np.nan) for pair_id in numbers.pair_ids], dtype=np.float64)
    value, error, _ = calibrate(numbers, known, curve=curve, folds=folds, seed=seed, dear=dear)
    return value, error


def _weights(
    numbers: Numbers,
    value: Floats,
    error: Floats | None,
    dear: Collection[str],
    overlap: Mapping[str, float] | None,
) -> Floats:
    if error is not None:
        return error_weights(error)
    late = np.array([name in dear for name in numbers.names], dtype=np.bool_)
    common = None if overlap is None else np.array([overlap.get(pair_id, np.nan) for pair_id in numbers.pair_ids])
    return factor_weights(numbers.matrix(value), late, common)


def _by_classes(numbers: Numbers, value: Floats, method: str, bins: int) -> Floats:
    votes: Votes = binned(
        numbers.pair, numbers.annotator, value, pairs=len(numbers.pair_ids), annotators=len(numbers.names), bins=bins
    )
    return expected(votes, dawid_skene(votes) if method == "dawid-skene" else mace(votes))


def _scores(
    numbers: Numbers, value: Floats, weight: Floats, score: Floats | None, *, median: bool, named: str
) -> pa.Table:
    """The table: `score` is (pairs,), or None for the weighted mean or the median of `value`."""
    order = np.lexsort((value, numbers.pair))
    pair, value, weight = numbers.pair[order], value[order], weight[numbers.annotator[order]]
    found, first, count = np.unique(pair, return_index=True, return_counts=True)
    group = np.repeat(np.arange(len(found)), count)
    # A pair of which only annotators of weight 0 have voted has their plain mean.
    total = np.bincount(group, weights=weight, minlength=len(found))
    weight = np.where(total[group] > 0, weight, 1.0)
    total = np.where(total > 0, total, count)
    mean = np.bincount(group, weights=weight * value, minlength=len(found)) / total
    spread = np.sqrt(np.bincount(group, weights=weight * (value - mean[group]) ** 2, minlength=len(found)) / total)
    if score is not None:
        made = score[found]
    else:
        made = (value[first + (count - 1) // 2] + value[first + count // 2]) / 2 if median else mean
    return _table([numbers.pair_ids[index] for index in found.tolist()], made, spread, count, named)


def _table(pair_ids: list[str], score: Floats, spread: Floats, count: Ints, named: str) -> pa.Table:
    alone = count < 2
    table = pa.table(
        {
            "pair_id": pa.array(pair_ids, pa.string()),
            "score": np.clip(score, 0.0, 1.0),
            "spread": pa.array(spread, mask=alone),
            "annotators": pa.array(count, pa.int16()),
            "agreement": pa.array(1 - np.minimum(spread, 0.5) / 0.5, mask=alone),
            "method": pa.array([named] * len(pair_ids), pa.string()),
        },
        schema=SCORES,
    )
    return check(table, "scores")
