"""A table of votes as one number per annotator and pair, checked against the annotator's scale."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stscurate.errors import InputError, SchemaError
from stscurate.records import check

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_FULL = 0.9
Range = tuple[float | None, float]  # lower end and width of a scale; None where it is relative


@dataclass(frozen=True)
class Numbers:
    """What annotators say, each number by `annotator` and `pair` (indices into `names` and `pair_ids`).

    raw: (m,) the mean of an annotator's valid votes on a pair, sorted by annotator, then pair. ranges: a scale
    each annotator.
    """

    annotator: Ints
    pair: Ints
    raw: Floats
    names: list[str]
    pair_ids: list[str]
    ranges: list[Range]

    @property
    def relative(self) -> bool:
        """Whether of any annotator only the order means something."""
        return any(low is None for low, _ in self.ranges)

    def own(self, annotator: int) -> slice:
        """Where an annotator's numbers stand."""
        first, last = np.searchsorted(self.annotator, [annotator, annotator + 1])
        return slice(int(first), int(last))

    def matrix(self, values: Floats) -> Floats:
        """`values`, one for each number, as (pairs, annotators); nan where an annotator has none."""
        table = np.full((len(self.pair_ids), len(self.names)), np.nan)
        table[self.pair, self.annotator] = values
        return table


def numbers_of(votes: pa.Table) -> Numbers:
    """The numbers of a table of schema VOTES; votes without `raw` count for nothing.

    InputError for an annotator that votes on two scales; SchemaError for a number off its scale.
    """
    check(votes, "votes")
    raw = votes["raw"].to_numpy()
    valid = np.flatnonzero(~np.isnan(raw))
    pair, pair_ids = _codes(votes["pair_id"])
    annotator, names = _codes(votes["annotator"])
    ranges = _ranges(votes, annotator, names)
    _check_ranges(raw, annotator, ranges, names)
    cell, inverse = np.unique(annotator[valid] * len(pair_ids) + pair[valid], return_inverse=True)
    mean = np.bincount(inverse, weights=raw[valid], minlength=len(cell)) / np.bincount(inverse, minlength=len(cell))
    by, pair = np.divmod(cell, max(len(pair_ids), 1))
    return Numbers(by, pair, mean, names, pair_ids, ranges)


def placed(numbers: Numbers, *, dear: Collection[str] = ()) -> Floats:
    """Each number on one scale of 0 to 1, without gold.

    Absolute scales are divided by their range. Where any annotator is relative, only the order of its numbers means
    something, so all are placed by their mid-ranks, (rank - 0.5) / n over the annotator's n pairs, equal numbers
    sharing the mean of their ranks. An annotator that was asked about a part of the pairs only (a cascade asks the
    dear ones about the doubtful; here: below nine tenths of what the busiest has) has its ranks mapped onto the ranks
    that the others give to its part: else the least of an easy part would look as different as the least of all.

    dear: names of annotators that a cascade asked about a part only. On absolute scales the level at which each
    annotator votes would then tell the parts apart, so the annotators are brought to a common one, see `_levelled`.
    """
    value = numbers.raw.copy()
    if not numbers.relative:
        for number, (low, width) in enumerate(numbers.ranges):
            value[numbers.own(number)] = (value[numbers.own(number)] - (low or 0.0)) / width
        return _levelled(numbers, value, dear)
    seen = np.bincount(numbers.annotator, minlength=len(numbers.names))
    partly = seen < _FULL * seen.max(initial=0)
    full = ~partly[numbers.annotator]
    for number in range(len(numbers.names)):
        value[numbers.own(number)] = mid_ranks(value[numbers.own(number)])
    ranks = value[full]
    for number in np.flatnonzero(partly & (seen > 0)).tolist():
        own = numbers.own(number)
        part = np.zeros(len(numbers.pair_ids), dtype=np.bool_)
        part[numbers.pair[own]] = True
        # All of the others' ranks there, not their means, which lie closer together than one annotator's own ranks do.
        anchor = np.sort(ranks[part[numbers.pair[full]]])
        if len(anchor):
            value[own] = np.interp(value[own], (np.arange(len(anchor)) + 0.5) / len(anchor), anchor)
    return value


def _levelled(numbers: Numbers, value: Floats, dear: Collection[str]) -> Floats:
    """Numbers of 0 to 1 without the annotators' own levels, as far as dear ones and the others have shared pairs.

    A dear annotator's level is the mean of its numbers minus the others' mean on the pairs that both have voted on; the
    others' is 0. Each loses its level minus the mean of all, so that a pair that all have voted on keeps its mean, and
    one that the dear haven't seen gets the mean that it would have with them. Which pairs they see goes by how far the
    others differ, which tells nothing of how far their mean is off, so the levels of the part are those of the whole
    (errors that are additive, independent and alike to both sides).
    """
    late = np.array([name in dear for name in numbers.names], dtype=np.bool_)
    if not late.any() or late.all():
        return value
    cheap = ~late[numbers.annotator]
    total = np.bincount(numbers.pair[cheap], weights=value[cheap], minlength=len(numbers.pair_ids))
    count = np.bincount(numbers.pair[cheap], minlength=len(numbers.pair_ids))
    level = np.zeros(len(late))
    for number in np.flatnonzero(late).tolist():
        own = numbers.own(number)
        at, shared = numbers.pair[own], count[numbers.pair[own]] > 0
        if shared.any():
            level[number] = np.mean(value[own][shared] - (total[at] / np.maximum(count[at], 1))[shared])
    return np.asarray(np.clip(value - (level - level.mean())[numbers.annotator], 0.0, 1.0))


def mid_ranks(values: Floats) -> Floats:
    """(rank - 0.5) / n of each of n values, equal ones sharing the mean of their ranks."""
    from scipy.stats import rankdata

    return np.asarray((rankdata(values) - 0.5) / max(len(values), 1), dtype=np.float64)


def _codes(column: pa.ChunkedArray) -> tuple[Ints, list[Any]]:
    """Each value's number in the order of first appearance, and the values."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _ranges(votes: pa.Table, annotator: Ints, names: list[str]) -> list[Range]:
    scale, scales = _codes(votes["scale"])
    used = np.unique(np.stack([annotator, scale]), axis=1).T.tolist()
    ranges: list[Range] = []
    for number, kind in used:
        if number < len(ranges):
            raise InputError(f"{names[number]} votes on more than one scale: give each scale an annotator's name.")
        ranges.append(_range(scales[kind]))
    return ranges


def _range(scale: str) -> Range:
    if scale == "relative":
        return None, 1.0
    try:
        low, high = map(float, scale.split(".."))
    except ValueError:
        low = high = 0.0
    if not low < high:
        raise SchemaError(f'votes: scale {scale!r} is neither "relative" nor a range such as "0..5": mend the rows.')
    return low, high - low


def _check_ranges(raw: Floats, annotator: Ints, ranges: list[Range], names: list[str]) -> None:
    low = np.array([-np.inf if low is None else low for low, _ in ranges])
    high = np.array([np.inf if low is None else low + width for low, width in ranges])
    outside = np.flatnonzero((raw < low[annotator]) | (raw > high[annotator]))
    if outside.size:
        row = int(outside[0])
        raise SchemaError(
            f"votes: raw is {raw[row]:g} in row {row}, off the scale of {names[annotator[row]]}: mend the row."
        )
