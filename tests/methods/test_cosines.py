"""Mean and spread of all cosines, held to the cosines themselves."""

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stscurate.audit.size_bias import cosine_moments
from stscurate.errors import InputError
from stscurate.methods.cosines import Moments, length_bins, moments_by_bin, spread_table, unit_rows

Rows = NDArray[np.float32]


def rows(number: int, dimension: int = 16, seed: int = 0) -> Rows:
    """Unit rows with a common part, as embeddings have it."""
    drawn = np.random.default_rng(seed).standard_normal((number, dimension)) + 0.4
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), dtype=np.float32)


def slow_cosines(left: Rows, right: Rows | None = None) -> list[float]:
    """The slow and obvious loop over ordered pairs."""
    other = left if right is None else right
    return [
        math.fsum(float(a) * float(b) for a, b in zip(one, two, strict=True))
        for i, one in enumerate(left)
        for j, two in enumerate(other)
        if right is not None or i != j
    ]


def test_moments_are_those_of_a_loop_over_all_ordered_pairs() -> None:
    vectors = rows(60)
    cosines = slow_cosines(vectors)
    mean, sd, pairs = cosine_moments(vectors)
    assert pairs == len(cosines) == 60 * 59
    assert mean == pytest.approx(np.mean(cosines), abs=1e-7)
    assert sd == pytest.approx(np.std(cosines), abs=1e-6)


def test_hand_worked_moments() -> None:
    """Cosines of (1,0), (0,1), (.6,.8) are 0, .6 and .8: mean 1.4/3, mean square 1/3, each twice."""
    mean, sd, pairs = cosine_moments(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))
    assert pairs == 6
    assert mean == pytest.approx(1.4 / 3)
    assert sd == pytest.approx(math.sqrt(1 / 3 - (1.4 / 3) ** 2))


def test_length_of_the_rows_does_not_matter() -> None:
    vectors = rows(50)
    stretched = vectors * np.random.default_rng(1).uniform(0.01, 1e6, (50, 1))
    np.testing.assert_allclose(cosine_moments(stretched), cosine_moments(vectors), atol=1e-6)


def test_parts_merge_to_the_whole_and_give_moments_between_them() -> None:
    one, two = rows(40), rows(25, seed=5)
    whole = Moments.of(np.concatenate([one, two])).within()
    np.testing.assert_allclose(Moments.of(one).merge(Moments.of(two)).within(), whole, rtol=1e-7)
    np.testing.assert_allclose(Moments.of(one).add(two).within(), whole, rtol=1e-7)
    between, cosines = Moments.of(one).between(Moments.of(two)), slow_cosines(one, two)
    assert between.pairs == 40 * 25
    assert between.mean == pytest.approx(np.mean(cosines), abs=1e-7)
    assert between.sd == pytest.approx(np.std(cosines), abs=1e-6)


def test_many_blocks_stay_as_exact_as_float64() -> None:
    vectors = rows(9_000, 8)
    exact = vectors.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    squares = np.sum((exact.T @ exact) ** 2) - 9_000
    mean = (np.sum(exact.sum(axis=0) ** 2) - 9_000) / (9_000 * 8_999)
    found = cosine_moments(vectors)
    assert found[0] == pytest.approx(mean, abs=1e-7)
    assert found[1] == pytest.approx(math.sqrt(squares / (9_000 * 8_999) - mean**2), abs=1e-6)


def test_a_cohort_gives_mean_and_spread_of_a_new_vector_with_it() -> None:
    cohort, new = rows(80), rows(1, seed=9)[0].astype(np.float64)
    moments, cosines = Moments.of(cohort), cohort.astype(np.float64) @ new
    mean = float(new @ moments.mean)
    assert mean == pytest.approx(cosines.mean(), abs=1e-7)
    assert new @ moments.second_moment @ new - mean**2 == pytest.approx(cosines.var(), abs=1e-6)


def test_a_table_of_bins_is_that_of_their_own_loops() -> None:
    vectors, bins = rows(50), np.arange(50, dtype=np.int64) % 3
    mean, sd = spread_table(moments_by_bin(vectors, bins, 3))
    for one in range(3):
        for other in range(3):
            left, right = vectors[bins == one], None if one == other else vectors[bins == other]
            assert mean[one, other] == pytest.approx(np.mean(slow_cosines(left, right)), abs=1e-6)
            assert sd[one, other] == pytest.approx(np.std(slow_cosines(left, right)), abs=1e-6)


def test_a_file_larger_than_a_block_is_read_through_as_a_memory_map(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", rows(5_000, 4))
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    assert cosine_moments(mapped) == cosine_moments(np.asarray(mapped))


@pytest.mark.parametrize(("value", "told"), [(0.0, "is zero"), (np.nan, "isn't finite"), (np.inf, "isn't finite")])
def test_a_row_without_a_cosine_is_named(value: float, told: str) -> None:
    vectors = rows(3_000, 4).copy()
    vectors[2_500] = value
    with pytest.raises(InputError, match=f"Embedding 2500 .*{told}"):
        cosine_moments(vectors)


@pytest.mark.parametrize("shape", [(1, 4), (0, 4), (4,)])
def test_one_embedding_has_no_cosines(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="two embeddings or more"):
        cosine_moments(np.ones(shape))


def test_unit_rows_have_unit_length_whatever_the_scale() -> None:
    found = unit_rows(np.array([[3e30, 4e30], [3e-30, 4e-30]]))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)


def test_bins_hold_about_as_many_texts_each_and_part_no_length() -> None:
    bins, ends = length_bins(np.array([5, 1, 2, 3, 4, 6, 7, 8]), 4)
    assert bins.tolist() == [2, 0, 0, 1, 1, 2, 3, 3]
    assert ends == [(1, 2), (3, 4), (5, 6), (7, 8)]
    bins, ends = length_bins(np.array([7, 7, 7, 9]), 10)
    assert (bins.tolist(), ends) == ([0, 0, 0, 1], [(7, 7), (9, 9)])
    assert length_bins(np.array([7, 7, 7]), 10)[1] == [(7, 7)]
