"""The same audit for judges: do annotators' votes rise with the length of the texts that they judge?"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.correlation import bootstrap_interval, spearman
from stscurate.methods.numbers import mid_ranks, numbers_of
from stscurate.methods.words import word_spans

Floats = NDArray[np.float64]

_FEWEST = 30  # pairs from which a correlation of an annotator's votes is told
THIRDS = ("short", "middle", "long")


def judge_rows(pairs: pa.Table, votes: pa.Table, *, seed: int = 0) -> list[dict[str, Any]]:
    """A row for each annotator of the votes (schema VOTES) on pairs (schema PAIRS), in their order there.

    Lengths are in words (characters of scripts without spaces). `with_length`: Spearman of the votes with the
    mean log length of the two texts, with its 95 % bootstrap interval; `with_difference`: with the absolute
    difference of the logs. Long pairs may be more alike in truth: `given` names what is held fixed (gold, or without
    any the mean rank of the other annotators), and `own` is the rank correlation with length that is left (partial
    correlation of ranks, Kendall 1942). `short`, `middle`, `long`: mean rank (0 to 1) in thirds of the length.
    InputError where no annotator has 30 votes on these pairs.
    """
    numbers = numbers_of(votes)
    place = {pair_id: row for row, pair_id in enumerate(pairs["pair_id"].to_pylist())}
    known = np.array([place.get(pair_id, -1) for pair_id in numbers.pair_ids])
    mean, unlike = _lengths(pairs)
    gold = _gold(pairs)
    ranks = np.full(len(numbers.raw), np.nan)
    for annotator in range(len(numbers.names)):
        own = numbers.own(annotator)
        ranks[own] = mid_ranks(numbers.raw[own])
    table = np.full((pairs.num_rows, len(numbers.names)), np.nan)
    table[known[known >= 0]] = numbers.matrix(ranks)[known >= 0]
    bounds = np.quantile(mean, [1 / 3, 2 / 3])
    rows = [
        _row(name, table[:, number], np.delete(table, number, axis=1), mean, unlike, gold, bounds, seed)
        for number, name in enumerate(numbers.names)
        if np.isfinite(table[:, number]).sum() >= _FEWEST
    ]
    if not rows:
        raise InputError(f"No annotator has {_FEWEST} votes on these pairs: have more pairs judged first.")
    return rows


def _row(
    name: str,
    votes: Floats,
    others: Floats,
    mean: Floats,
    unlike: Floats,
    gold: Floats,
    bounds: Floats,
    seed: int,
) -> dict[str, Any]:
    there = np.isfinite(votes)
    low, high = bootstrap_interval(mean[there], votes[there], seed=seed)
    row: dict[str, Any] = {
        "annotator": name,
        "pairs": int(there.sum()),
        "with_length": spearman(votes[there], mean[there]),
        "interval": [low, high],
        "with_difference": spearman(votes[there], unlike[there]),
    }
    third = np.searchsorted(bounds, mean)
    for number, label in enumerate(THIRDS):
        inside = there & (third == number)
        row[label] = float(votes[inside].mean()) if inside.any() else None
    return row | _left(votes, mean, {"gold": gold, "other annotators": _mean(others)})


def _left(votes: Floats, mean: Floats, fixed: Mapping[str, Floats]) -> dict[str, Any]:
    """What is left of the correlation with length, given the first of `fixed` that is known of enough pairs."""
    for name, values in fixed.items():
        there = np.isfinite(votes) & np.isfinite(values)
        if there.sum() >= _FEWEST and np.ptp(values[there]) > 0:
            return {"given": name, "own": partial(votes[there], mean[there], values[there])}
    return {"given": None, "own": None}


def partial(x: Floats, y: Floats, given: Floats) -> float:
    """The rank correlation of x and y with `given` held fixed, all (n,); nan where one of them follows from it."""
    xy, xz, yz = spearman(x, y), spearman(x, given), spearman(y, given)
    rest = (1 - xz**2) * (1 - yz**2)
    return float((xy - xz * yz) / np.sqrt(rest)) if rest > 1e-12 else float("nan")


def _lengths(pairs: pa.Table) -> tuple[Floats, Floats]:
    """Of each pair the mean and the absolute difference of the log2 lengths of its texts, in words."""
    logs = [np.log2([max(len(word_spans(text)), 1) for text in pairs[side].to_pylist()]) for side in ("text1", "text2")]
    return (logs[0] + logs[1]) / 2, np.abs(logs[0] - logs[1])


def _gold(pairs: pa.Table) -> Floats:
    found = pc.coalesce(pairs["score"], pairs["label"].cast(pa.float64()))
    return np.asarray(found.to_numpy(), dtype=np.float64)


def _mean(table: Floats) -> Floats:
    """The mean of each row's numbers, (n,) of (n, k); nan where it has none."""
    count = np.isfinite(table).sum(axis=1)
    total = np.where(np.isfinite(table), table, 0.0).sum(axis=1)
    return np.asarray(np.divide(total, count, out=np.full(len(table), np.nan), where=count > 0))
