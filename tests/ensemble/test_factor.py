from __future__ import annotations

import math

import numpy as np
import pytest

from stscurate.ensemble.factor import factor_weights, loadings


def made(loading: list[float], pairs: int = 20_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Truth and numbers of annotators with known loadings and independent errors."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(pairs)
    own = np.array(loading)
    return truth, truth[:, None] * own + rng.standard_normal((pairs, len(own))) * np.sqrt(1 - own**2)


def test_three_annotators_tell_their_loadings_by_spearmans_formula() -> None:
    values = made([0.9, 0.7, 0.5])[1]
    r = np.corrcoef(values.T)
    by_hand = [
        math.sqrt(r[0, 1] * r[0, 2] / r[1, 2]),
        math.sqrt(r[0, 1] * r[1, 2] / r[0, 2]),
        math.sqrt(r[0, 2] * r[1, 2] / r[0, 1]),
    ]
    assert loadings(values) == pytest.approx(by_hand, abs=1e-6)
    assert loadings(values) == pytest.approx([0.9, 0.7, 0.5], abs=0.02)


def test_the_weighted_sum_is_nearer_to_the_truth_than_the_mean_and_than_the_best() -> None:
    truth, values = made([0.9, 0.7, 0.5, 0.3])
    weighted = np.corrcoef(values @ factor_weights(values), truth)[0, 1]
    assert weighted > np.corrcoef(values.mean(axis=1), truth)[0, 1] + 0.01
    assert weighted > np.corrcoef(values[:, 0], truth)[0, 1]
    # the best that any linear sum can do, by least squares on the truth itself
    best = np.corrcoef(values @ np.linalg.lstsq(values, truth, rcond=None)[0], truth)[0, 1]
    assert weighted == pytest.approx(best, abs=1e-3)


def test_missing_numbers_change_little() -> None:
    values = made([0.9, 0.7, 0.5])[1]
    holes = np.where(np.random.default_rng(1).random(values.shape) < 0.3, math.nan, values)
    assert loadings(holes) == pytest.approx(loadings(values), abs=0.03)


def test_one_who_contradicts_all_others_gets_no_weight() -> None:
    values = made([0.8, 0.8, 0.8])[1]
    weights = factor_weights(np.column_stack([values, -values[:, 0]]))
    assert weights[3] == 0
    assert weights.sum() == pytest.approx(1)


def test_where_nothing_can_be_told_the_weights_are_equal() -> None:
    values = made([0.9, 0.1])[1]
    assert factor_weights(values).tolist() == [0.5, 0.5]
    assert factor_weights(values[:, :1]).tolist() == [1.0]
    assert factor_weights(np.ones((5, 4))).tolist() == [0.25] * 4


def test_a_perfect_pair_of_twins_doesnt_silence_the_third() -> None:
    values = made([0.8, 0.8, 0.6])[1]
    values[:, 1] = values[:, 0]
    assert factor_weights(values)[2] > 0.005


def taken_in(pairs: int = 20_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Truth, three annotators, of whom the last two go by the words in common too, and those words' share."""
    rng = np.random.default_rng(2)
    truth = rng.standard_normal(pairs)
    shared = 0.6 * truth + 0.8 * rng.standard_normal(pairs)
    noise = rng.standard_normal((pairs, 3))
    values = truth[:, None] + shared[:, None] * [0.0, 1.0, 1.2] + noise * [0.7, 0.9, 0.9]
    return truth, values, shared


def test_those_who_are_taken_in_by_the_same_words_dont_outweigh_the_one_who_isnt() -> None:
    truth, values, shared = taken_in()
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    right = [abs(np.corrcoef(column, truth)[0, 1]) for column in values.T]
    assert int(np.argmax(right)) == 0
    assert int(np.argmin(loadings(values))) == 0  # by agreement alone it looks the worst
    # beyond the words, by partial correlations with the truth that nobody has told
    rest = [truth - np.polyval(np.polyfit(shared, truth, 1), shared)]
    rest += [column - np.polyval(np.polyfit(shared, column, 1), shared) for column in values.T]
    expected = np.corrcoef(rest)[0, 1:]
    assert loadings(values, overlap=shared) == pytest.approx(expected, abs=0.02)
    plain, beyond = factor_weights(values), factor_weights(values, overlap=shared)
    assert np.corrcoef(values @ beyond, truth)[0, 1] > np.corrcoef(values @ plain, truth)[0, 1] + 0.02


def test_words_that_tell_nothing_or_arent_known_change_nothing() -> None:
    values = made([0.9, 0.7, 0.5])[1]
    assert loadings(values, overlap=np.full(len(values), 0.5)) == pytest.approx(loadings(values))
    holes = np.where(np.arange(len(values)) % 2 == 0, np.nan, taken_in()[2])
    assert loadings(values, overlap=holes) == pytest.approx(loadings(values), abs=0.01)
