"""How cosines are distributed: counted in 20,000 steps of .0001, all of them in blocks, or of drawn pairs.

The whole distribution of n(n-1) cosines is one row of 20,000 counts, from which any quantile and any share above a
threshold can be read to one step, and counts of parts add up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.cosines import blocks

STEPS = 20_000
_WIDTH = 2.0 / STEPS
# Multiplied at once: so many cosines stay in the processor's cache while they are counted.
_ROWS, _COLUMNS = 256, 1_024
_LEFT_OUT = 4.0  # a cosine that isn't counted: it falls behind all steps
_DRAWN_AT_ONCE = 16_384
DRAWN = 1_844_440  # pairs for a distribution function within .001 at 95 %

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Distribution:
    """Counts of cosines by steps of .0001 from -1 on, (20000,); of a sample, `bound` is its error, see `dkw_bound`."""

    counts: Counts
    bound: float = 0.0

    @property
    def pairs(self) -> int:
        """Cosines counted."""
        return int(self.counts.sum())

    def above(self, threshold: float) -> float:
        """Share of the cosines that reach a threshold, which is taken to the nearest step."""
        step = round((threshold + 1.0) / _WIDTH)
        return float(self.counts[max(step, 0) :].sum() / self.pairs) if self.pairs else math.nan

    def threshold(self, share: float) -> float:
        """The least step that at most this share of the cosines reach; nan of none."""
        if not self.pairs:
            return math.nan
        reached = np.append(np.cumsum(self.counts[::-1])[::-1], 0)
        return float(np.flatnonzero(reached <= share * self.pairs)[0] * _WIDTH - 1.0)

    def coarse(self, number: int) -> Counts:
        """The same in `number` equal steps from -1 to 1; it divides 20,000."""
        return np.asarray(self.counts.reshape(number, -1).sum(axis=1))


def dkw_bound(pairs: int, *, confidence: float = 0.95) -> float:
    """How far a distribution function of so many independent draws may be off anywhere, at that confidence.

    Dvoretzky, Kiefer and Wolfowitz, with Massart's constant: sqrt(ln(2 / (1 - confidence)) / (2 pairs)).
    """
    return math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * pairs)) if pairs else math.inf


def count_within(vectors: NDArray[np.float32], left_out: NDArray[np.int64] | None = None) -> Counts:
    """All n(n-1) ordered cosines of n unit rows, (n, d), counted over half of the matrix: (20000,).

    left_out: (m, 2) unordered pairs of different rows that aren't counted, each once.
    """
    return np.asarray(count_by_bin(vectors, [len(vectors)], left_out)[0, 0])


def count_between(left: NDArray[np.float32], right: NDArray[np.float32]) -> Counts:
    """All n m cosines of the rows of two sets, (n, d) and (m, d)."""
    counts, scaled = _nothing(), _scaled(left)
    for rows in blocks(len(left), _ROWS):
        for columns in blocks(len(right), _COLUMNS):
            _count(counts, scaled[rows] @ right[columns].T)
    return _folded(counts)


def count_by_bin(
    vectors: NDArray[np.float32], sizes: Sequence[int], left_out: NDArray[np.int64] | None = None
) -> Counts:
    """The ordered cosines within and between consecutive bins of rows, (k, k, 20000), symmetric.

    sizes: rows of each of the k bins, in the order of `vectors`. The counts of two different bins are of each pair
    once; within a bin each pair stands twice, as (i, j) and (j, i). left_out: as in `count_within`.
    """
    ends = np.cumsum([0, *sizes])
    found = np.zeros((len(sizes), len(sizes), STEPS), dtype=np.int64)
    scaled, skipped = _scaled(vectors), _Skipped(left_out, len(vectors))
    for one in range(len(sizes)):
        for other in range(one, len(sizes)):
            counts = _nothing()
            for rows in blocks(sizes[one], _ROWS):
                first = int(ends[one]) + rows.start
                rows = slice(first, int(ends[one]) + rows.stop)
                begin = rows.start if one == other else int(ends[other])
                _row_of_blocks(counts, vectors, scaled, rows, (begin, int(ends[other + 1])), skipped, one == other)
            found[one, other] = found[other, one] = _folded(counts)
    return found


def _row_of_blocks(
    counts: Counts,
    vectors: NDArray[np.float32],
    scaled: NDArray[np.float32],
    rows: slice,
    span: tuple[int, int],
    skipped: "_Skipped",
    triangle: bool,
) -> None:
    """Count the cosines of `rows` with the rows of `span`; in a triangle all but those of the first square twice."""
    if triangle:  # the square on the diagonal holds both orders, and each row with itself
        square = scaled[rows] @ vectors[rows].T
        skipped.mark(square, rows, rows)
        np.fill_diagonal(square, _LEFT_OUT * STEPS)
        _count(counts, square)
        span = rows.stop, span[1]
    twice = _nothing() if triangle else counts
    for part in blocks(span[1] - span[0], _COLUMNS):
        columns = slice(span[0] + part.start, span[0] + part.stop)
        cosines = scaled[rows] @ vectors[columns].T
        skipped.mark(cosines, rows, columns)
        _count(twice, cosines)
    if triangle:
        counts += 2 * twice


def draw_between(
    left: NDArray[np.float32], right: NDArray[np.float32] | None, pairs: int, rng: np.random.Generator
) -> Counts:
    """Cosines of so many pairs drawn with replacement, of a row each of two sets, or of two different rows of one."""
    other = left if right is None else right
    counts, scaled = _nothing(), _scaled(left)
    for part in blocks(pairs, _DRAWN_AT_ONCE):
        number = part.stop - part.start
        one, two = rng.integers(len(left), size=number), rng.integers(len(other) - (right is None), size=number)
        if right is None:
            two += two >= one  # each other row is as likely
        _count(counts, np.einsum("ij,ij->i", scaled[one], other[two]))
    return _folded(counts)


class _Skipped:
    """Pairs of rows that aren't counted, found by the block that holds them."""

    def __init__(self, pairs: NDArray[np.int64] | None, number: int):
        both = np.zeros((0, 2), dtype=np.int64) if pairs is None else np.concatenate([pairs, pairs[:, ::-1]])
        self._pairs = both[np.argsort(both[:, 0], kind="stable")]
        self._starts = np.searchsorted(self._pairs[:, 0], np.arange(number + 1))

    def mark(self, cosines: NDArray[np.float32], rows: slice, columns: slice) -> None:
        own = self._pairs[self._starts[rows.start] : self._starts[rows.stop]]
        own = own[(own[:, 1] >= columns.start) & (own[:, 1] < columns.stop)]
        cosines[own[:, 0] - rows.start, own[:, 1] - columns.start] = _LEFT_OUT * STEPS


def _nothing() -> Counts:
    # A step before the first and one behind the last, since rounding makes cosines a little greater than 1.
    return np.zeros(STEPS + 3, dtype=np.int64)


def _scaled(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(vectors * np.float32(1.0 / _WIDTH), dtype=np.float32)


def _count(counts: Counts, cosines: NDArray[np.float32]) -> None:
    """Add cosines times STEPS / 2 to the counts, the last of which takes those that are left out."""
    cosines += np.float32(STEPS / 2 + 1)
    np.minimum(cosines, np.float32(STEPS + 2), out=cosines)
    counts += np.bincount(cosines.astype(np.intp).ravel(), minlength=STEPS + 3)


def _folded(counts: Counts) -> Counts:
    inside = counts[1 : STEPS + 1].copy()
    inside[0] += counts[0]
    inside[-1] += counts[STEPS + 1]
    return inside
