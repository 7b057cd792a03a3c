import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from stscurate.methods import resampling
from stscurate.methods.correlation import average_precision, bootstrap_interval, spearman

NUMBERS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=30)


def test_a_hand_worked_rho_with_a_tie() -> None:
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
    assert spearman([10, 20, 20, 30], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(22.5))


@given(NUMBERS)
@settings(max_examples=60, deadline=None)
def test_spearman_is_scipys_with_any_ties(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(spearman(x, y))
    else:
        assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_a_nan_in_the_input_is_a_nan_in_the_answer() -> None:
    assert math.isnan(spearman([1, 2, float("nan"), 4], [1, 2, 3, 4]))


@pytest.mark.parametrize("block", [1, 200, 10**6])
def test_the_interval_is_that_of_a_slow_loop_over_the_same_draws(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_BLOCK", block)
    noise = np.random.default_rng(7)
    x = noise.integers(0, 5, size=40)
    y = x + noise.normal(size=40).round(0)
    draws = np.random.default_rng(3).integers(40, size=(200, 40))  # blocks draw the same numbers one after another
    values = [spearmanr(x[draw], y[draw]).statistic for draw in draws]
    expected = np.percentile(values, [2.5, 97.5])
    np.testing.assert_allclose(bootstrap_interval(x, y, resamples=200, seed=3), expected, atol=1e-12)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    noise = np.random.default_rng(0)
    rho = 0.6
    truth = 6 / math.pi * math.asin(rho / 2)  # Spearman's rho of two normal variables
    held = 0
    for trial in range(200):
        x, e = noise.normal(size=(2, 80))
        low, high = bootstrap_interval(x, rho * x + math.sqrt(1 - rho**2) * e, resamples=200, seed=trial)
        held += low <= truth <= high
    assert 178 <= held <= 199


def test_constant_resamples_are_left_out_and_constant_input_gives_nan() -> None:
    low, high = bootstrap_interval([0, 0, 0, 1], [0, 0, 0, 1], resamples=50, seed=0)
    assert (low, high) == (1.0, 1.0)
    assert all(math.isnan(end) for end in bootstrap_interval([1, 1, 1], [1, 2, 3], resamples=50, seed=0))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_average_precision_is_scikit_learns(rows: list[tuple[int, int]]) -> None:
    label, score = zip(*rows, strict=True)
    if not any(label):
        assert math.isnan(average_precision(label, score))
    else:
        assert average_precision(label, score) == pytest.approx(average_precision_score(label, score), abs=1e-12)
