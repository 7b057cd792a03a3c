"""Distributions of cosines, held to the sorted cosines themselves."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from stscurate.methods.cosine_counts import (
    DRAWN,
    STEPS,
    Counts,
    Distribution,
    count_between,
    count_by_bin,
    count_within,
    dkw_bound,
    draw_between,
)
from tests.methods.test_cosines import Rows, rows

Floats = NDArray[np.float64]


def cosines_of(vectors: Rows) -> Floats:
    """All ordered cosines, by the whole matrix in float64."""
    exact = vectors.astype(np.float64)
    return np.asarray((exact @ exact.T)[~np.eye(len(vectors), dtype=bool)])


def cumulated(counts: Counts) -> Floats:
    return np.asarray(np.cumsum(counts) / counts.sum())


def differ(counts: Counts, cosines: Floats) -> float:
    """Greatest difference of the distribution functions at the ends of coarse steps, which rounding can't reach."""
    ends = np.linspace(-1, 1, 101)[1:]
    expected = np.searchsorted(np.sort(cosines), ends) / len(cosines)
    return float(np.abs(cumulated(Distribution(counts).coarse(100)) - expected).max())


def test_every_ordered_cosine_is_counted_once_over_many_blocks() -> None:
    vectors = rows(1_500)  # several blocks each way
    counts = count_within(vectors)
    assert counts.sum() == 1_500 * 1_499
    assert differ(counts, cosines_of(vectors)) < 1e-5


def test_two_sets_are_counted_whole() -> None:
    left, right = rows(300), rows(1_100, seed=3)
    counts = count_between(left, right)
    assert counts.sum() == 300 * 1_100
    assert differ(counts, (left.astype(np.float64) @ right.T).ravel()) < 1e-5


def test_bins_add_up_to_the_whole_and_each_holds_its_own() -> None:
    vectors, sizes = rows(700), [300, 10, 390]
    counts = count_by_bin(vectors, sizes)
    whole = sum(counts[i, j] * (1 if i == j else 2) for i in range(3) for j in range(i, 3))
    np.testing.assert_allclose(cumulated(whole), cumulated(count_within(vectors)), atol=1e-5)
    assert counts[0, 2].tolist() == counts[2, 0].tolist()
    assert differ(counts[0, 2], (vectors[:300].astype(np.float64) @ vectors[310:].T).ravel()) < 1e-5
    assert counts[1, 1].sum() == 10 * 9


def test_pairs_that_are_left_out_are_not_counted() -> None:
    vectors = rows(1_500)
    pairs = np.array([[0, 1], [3, 1_400], [1_499, 700], [600, 5]])
    for counts in (count_within(vectors, pairs), count_by_bin(vectors, [800, 700], pairs)):
        found = counts if counts.ndim == 1 else counts[0, 0] + counts[1, 1] + 2 * counts[0, 1]
        matrix = vectors.astype(np.float64) @ vectors.T
        matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = np.nan
        kept = matrix[~np.eye(1_500, dtype=bool) & ~np.isnan(matrix)]
        assert found.sum() == len(kept) == 1_500 * 1_499 - 8
        assert differ(found, kept) < 1e-5


def test_the_ends_of_the_scale_are_counted() -> None:
    vectors = np.array([[1, 0], [1, 0], [-1, 0]], dtype=np.float32)
    counts = count_within(vectors)
    assert (counts[-1], counts[0], counts.sum()) == (2, 4, 6)


def test_shares_and_thresholds_are_read_to_one_step() -> None:
    found = Distribution(count_within(rows(400)))
    cosines = cosines_of(rows(400))
    for share in (0.05, 0.001):
        assert found.threshold(share) == pytest.approx(np.quantile(cosines, 1 - share), abs=2e-4)
        assert found.above(found.threshold(share)) <= share
        assert found.above(found.threshold(share) - 2e-4) > share
    assert found.above(-1.0) == 1.0
    assert found.above(1.1) == 0.0


def test_thresholds_worked_by_hand() -> None:
    counts = np.zeros(STEPS, dtype=np.int64)
    counts[[10_000, 15_000]] = [95, 5]  # cosines of 0 and of .5
    found = Distribution(counts)
    assert found.threshold(0.05) == pytest.approx(0.0001)
    assert found.threshold(0.04) == pytest.approx(0.5001)
    assert (found.above(0.0001), found.above(0.5), found.above(0.0)) == (0.05, 0.05, 1.0)
    assert math.isnan(Distribution(np.zeros(STEPS, dtype=np.int64)).threshold(0.05))


def test_drawn_pairs_stay_within_their_bound() -> None:
    vectors = rows(300)
    counts = draw_between(vectors, None, 20_000, np.random.default_rng(1))
    assert counts.sum() == 20_000
    assert differ(counts, cosines_of(vectors)) < dkw_bound(20_000)
    between = draw_between(vectors[:100], vectors[100:], 20_000, np.random.default_rng(1))
    assert differ(between, (vectors[:100].astype(np.float64) @ vectors[100:].T).ravel()) < dkw_bound(20_000)


def test_no_row_is_drawn_with_itself() -> None:
    vectors = np.eye(3, dtype=np.float32)
    counts = draw_between(vectors, None, 5_000, np.random.default_rng(0))
    assert counts[STEPS // 2] == 5_000  # all cosines are 0


def test_the_bound_is_the_published_one() -> None:
    assert dkw_bound(DRAWN) == pytest.approx(0.001, rel=1e-6)
    assert dkw_bound(DRAWN - 2) > 0.001
    assert dkw_bound(0) == math.inf
