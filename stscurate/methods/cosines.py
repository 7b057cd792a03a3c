"""Mean and spread of all cosines among many vectors, exact and without any pair's cosine.

With unit rows u_i, sum over all ordered pairs of u_i.u_j is |sum_i u_i|^2, and of (u_i.u_j)^2 it is |U^T U|_F^2, less
each row's product with itself: one pass over the rows, O(n d^2) time and O(d^2) memory where a pair matrix takes
O(n^2 d) and O(n^2). The sums of two parts add up, so parts can be taken on any machine, in any order.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError

_BLOCK = 2_048  # rows multiplied at once in float32; the products are added up in float64


class Spread(NamedTuple):
    """Mean and population standard deviation of so many cosines; nan where there is none."""

    mean: float
    sd: float
    pairs: int


@dataclass
class Moments:
    """What n unit vectors of d dimensions add up to; `merge` joins parts.

    total: (d,) their sum. second: (d, d) the sum of their outer products. own, own_squares: the sums of |u|^2 and
    |u|^4, which are n but for float32's rounding. All sums are float64; the products within a block of 2,048 rows are
    float32's, so a variance of cosines is right to about 1e-7 and a deviation below .001 means nothing.
    """

    count: int
    total: NDArray[np.float64]
    second: NDArray[np.float64]
    own: float = 0.0
    own_squares: float = 0.0

    @classmethod
    def empty(cls, dimension: int) -> Self:
        """Of no vectors."""
        return cls(0, np.zeros(dimension), np.zeros((dimension, dimension)))

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> Self:
        """Of n unit rows, (n, d); rows that aren't go through `unit_rows` first."""
        return cls.empty(vectors.shape[1]).add(vectors)

    def add(self, vectors: NDArray[np.float32]) -> Self:
        """Take in n more unit rows, (n, d)."""
        for start in range(0, len(vectors), _BLOCK):
            block = np.ascontiguousarray(vectors[start : start + _BLOCK], dtype=np.float32)
            squares = np.einsum("ij,ij->i", block, block).astype(np.float64)  # of use only beside n^2 others
            self.count += len(block)
            self.total += block.sum(axis=0, dtype=np.float64)
            self.second += block.T @ block
            self.own += float(squares.sum())
            self.own_squares += float(squares @ squares)
        return self

    def merge(self, other: "Moments") -> "Moments":
        """Of both sets of vectors together."""
        return Moments(
            self.count + other.count,
            self.total + other.total,
            self.second + other.second,
            self.own + other.own,
            self.own_squares + other.own_squares,
        )

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean vector m, (d,). The mean cosine of a unit vector u with the set is u.m."""
        return np.asarray(self.total / max(self.count, 1))

    @property
    def second_moment(self) -> NDArray[np.float64]:
        """The mean outer product S, (d, d). The mean squared cosine of a unit vector u with the set is u^T S u."""
        return np.asarray(self.second / max(self.count, 1))

    def within(self) -> Spread:
        """Of the n(n-1) cosines of each vector with each other one."""
        total, squares = float(self.total @ self.total), float(np.vdot(self.second, self.second))
        return _spread(total - self.own, squares - self.own_squares, self.count * (self.count - 1))

    def between(self, other: "Moments") -> Spread:
        """Of the n m cosines of each vector with each one of another set."""
        return _spread(
            float(self.total @ other.total), float(np.vdot(self.second, other.second)), self.count * other.count
        )


def cosine_moments(embeddings: NDArray[Any]) -> Spread:
    """Mean and population standard deviation of all n(n-1) ordered cosines of (n, d) embeddings, and their number.

    Rows of any length, brought to unit length a block at a time: a memory map is read through once. InputError for
    fewer than two rows, and for a row that is zero or not finite.
    """
    shape = np.shape(embeddings)
    if len(shape) != 2 or shape[0] < 2:
        raise InputError(f"Cosines need two embeddings or more, as rows of a table: these have the shape {shape}.")
    moments = Moments.empty(shape[1])
    for start in range(0, shape[0], _BLOCK):
        moments.add(unit_rows(embeddings[start : start + _BLOCK], first=start))
    return moments.within()


def moments_by_bin(vectors: NDArray[np.float32], bins: NDArray[np.int64], number: int) -> list[Moments]:
    """The moments of each bin's unit rows; bins: (n,) from 0 to number - 1."""
    return [Moments.of(vectors[bins == one]) for one in range(number)]


def spread_table(parts: Sequence[Moments]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of the cosines between any two parts, and within each, as two (k, k) tables."""
    found = np.array([[one.within() if one is other else one.between(other) for other in parts] for one in parts])
    return found[..., 0], found[..., 1]


def unit_rows(embeddings: NDArray[Any], *, first: int = 0) -> NDArray[np.float32]:
    """The rows at unit length, (n, d) float32. InputError names a row that is zero or isn't finite, from `first` on."""
    rows = np.asarray(embeddings, dtype=np.float32)
    squares = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
    extreme = ~((squares > 1e-30) & (squares < 1e38))  # too small or too great to be squared in float32
    squares[extreme] = np.sum(np.square(rows[extreme], dtype=np.float64), axis=1)
    norms = np.sqrt(squares)
    broken = np.flatnonzero(~((norms > 0) & np.isfinite(norms)))
    if broken.size:
        what = "is zero" if norms[broken[0]] == 0 else "holds a value that isn't finite"
        raise InputError(f"Embedding {first + int(broken[0])} {what} and has no cosine: leave that row out.")
    return np.asarray(rows / norms[:, None], dtype=np.float32)


def length_bins(lengths: NDArray[np.int64], number: int = 10) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """Bins of about as many texts each by length: (n,) the bin of each text, and each bin's least and greatest length.

    Equal lengths are never parted, so there are fewer bins where few lengths occur.
    """
    edges = np.unique(np.quantile(lengths, np.arange(1, number) / number, method="inverted_cdf"))
    bins = np.searchsorted(edges, lengths, side="left")  # a text as long as an edge belongs below it
    used, bins = np.unique(bins, return_inverse=True)
    ends = [(int(lengths[bins == one].min()), int(lengths[bins == one].max())) for one in range(len(used))]
    return bins.astype(np.int64), ends


def blocks(number: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover so many rows."""
    for start in range(0, number, size):
        yield slice(start, min(start + size, number))


def _spread(total: float, squares: float, pairs: int) -> Spread:
    if pairs == 0:
        return Spread(math.nan, math.nan, 0)
    mean = total / pairs
    return Spread(mean, math.sqrt(max(squares / pairs - mean * mean, 0.0)), pairs)
