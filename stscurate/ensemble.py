"""Votes -> scores: several annotators' numbers on one scale of 0 to 1, and how far they agree."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stscurate.errors import InputError, SchemaError
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.records import SCORES, Tally, check
from stscurate.store import Run

METHODS = ("mean", "median")
_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


def aggregate(votes: pa.Table, *, method: str = "mean") -> pa.Table:
    """One score a pair, 0..1, from a table of votes; a table of schema SCORES, pairs in the order of the votes.

    An annotator's number for a pair is the mean of its valid votes (orders, samples). Absolute scales are divided
    by their range. Where any annotator is relative, only the order of its numbers means something, so all are
    put on one scale by their mid-ranks within the table: (rank - 0.5) / n, n the annotator's pairs, equal numbers
    sharing the mean of their ranks. The score is the mean or the median over annotators, `spread` their population
    standard deviation. Pairs without a valid vote have no row. The column `method` says "mean" or "median", with
    " of ranks" where ranks were taken.

    InputError for another method, or an annotator that votes on two scales; SchemaError for a number off its scale.
    """
    if method not in METHODS:
        raise InputError(f"There is no method {method} of aggregation: take {' or '.join(METHODS)}.")
    check(votes, "votes")
    raw = votes["raw"].to_numpy()
    valid = np.flatnonzero(~np.isnan(raw))
    pair, pair_ids = _codes(votes["pair_id"])
    annotator, names = _codes(votes["annotator"])
    ranges = _ranges(votes, annotator, names)
    _check_ranges(raw, annotator, ranges, names)

    # One number per annotator and pair: `cell` runs over annotators, then pairs.
    cell, inverse = np.unique(annotator[valid] * len(pair_ids) + pair[valid], return_inverse=True)
    value = np.bincount(inverse, weights=raw[valid], minlength=len(cell)) / np.bincount(inverse, minlength=len(cell))
    by, pair = np.divmod(cell, max(len(pair_ids), 1))
    ranked = any(low is None for low, _ in ranges)
    for number, (low, width) in enumerate(ranges):
        own = by == number
        value[own] = _mid_ranks(value[own]) if ranked or low is None else (value[own] - low) / width
    return _scores(pair, value, pair_ids, method, method + (" of ranks" if ranked else ""))


def score_votes(run: Run, *, method: str = "mean", progress: Progress = silent) -> Entry:
    """Aggregate the run's votes: stage and table "scores". Pairs without a valid vote are dropped and counted."""
    inputs, settings = {"votes": run.fingerprint("votes")}, {"method": method}
    stage = run.stage("scores", tables=["scores"], inputs=inputs, settings=settings)
    if stage.entry:
        return stage.entry
    votes = run.table("votes")
    scores = aggregate(votes, method=method)
    tally = Tally(rows_in=len(pc.unique(votes["pair_id"])))
    tally.drop("no_valid_vote", tally.rows_in - scores.num_rows)
    for count in scores["annotators"].to_pylist():
        tally.count("annotators", count)
    progress("scores", scores.num_rows, scores.num_rows)
    stage.write(0, {"scores": scores}, tally)
    return stage.commit()


def _codes(column: pa.ChunkedArray) -> tuple[_Ints, list[Any]]:
    """Each value's number in the order of first appearance, and the values."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _ranges(votes: pa.Table, annotator: _Ints, names: list[str]) -> list[tuple[float | None, float]]:
    """Each annotator's lower end and width; None where its scale is relative."""
    scale, scales = _codes(votes["scale"])
    used = np.unique(np.stack([annotator, scale]), axis=1).T.tolist()
    ranges: list[tuple[float | None, float]] = []
    for number, kind in used:
        if number < len(ranges):
            raise InputError(f"{names[number]} votes on more than one scale: give each scale an annotator's name.")
        ranges.append(_range(scales[kind]))
    return ranges


def _range(scale: str) -> tuple[float | None, float]:
    if scale == "relative":
        return None, 1.0
    try:
        low, high = map(float, scale.split(".."))
    except ValueError:
        low = high = 0.0
    if not low < high:
        raise SchemaError(f'votes: scale {scale!r} is neither "relative" nor a range such as "0..5": mend the rows.')
    return low, high - low


def _check_ranges(raw: _Floats, annotator: _Ints, ranges: list[tuple[float | None, float]], names: list[str]) -> None:
    low = np.array([-np.inf if low is None else low for low, _ in ranges])
    high = np.array([np.inf if low is None else low + width for low, width in ranges])
    outside = np.flatnonzero((raw < low[annotator]) | (raw > high[annotator]))
    if outside.size:
        row = int(outside[0])
        raise SchemaError(
            f"votes: raw is {raw[row]:g} in row {row}, off the scale of {names[annotator[row]]}: mend the row."
        )


def _mid_ranks(values: _Floats) -> _Floats:
    from scipy.stats import rankdata

    return np.asarray((rankdata(values) - 0.5) / max(len(values), 1), dtype=np.float64)


def _scores(pair: _Ints, value: _Floats, pair_ids: list[str], method: str, named: str) -> pa.Table:
    order = np.lexsort((value, pair))
    pair, value = pair[order], value[order]
    found, first, count = np.unique(pair, return_index=True, return_counts=True)
    group = np.repeat(np.arange(len(found)), count)
    mean = np.bincount(group, weights=value, minlength=len(found)) / count
    middle = (value[first + (count - 1) // 2] + value[first + count // 2]) / 2
    spread = np.sqrt(np.bincount(group, weights=(value - mean[group]) ** 2, minlength=len(found)) / count)
    alone = count < 2
    table = pa.table(
        {
            "pair_id": pa.array([pair_ids[index] for index in found.tolist()], pa.string()),
            "score": np.clip(mean if method == "mean" else middle, 0.0, 1.0),
            "spread": pa.array(spread, mask=alone),
            "annotators": pa.array(count, pa.int16()),
            "agreement": pa.array(1 - spread / 0.5, mask=alone),
            "method": pa.array([named] * len(found), pa.string()),
        },
        schema=SCORES,
    )
    return check(table, "scores")
