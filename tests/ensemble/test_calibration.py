from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from stscurate.ensemble import aggregate
from stscurate.ensemble.calibration import CURVES, Curve, calibrate, error_weights
from stscurate.errors import InputError
from stscurate.methods.numbers import Numbers
from tests.ensemble.made import table, vote


def numbers(*columns: np.ndarray) -> Numbers:
    """Relative annotators, each with a number for every pair."""
    pairs = len(columns[0])
    return Numbers(
        annotator=np.repeat(np.arange(len(columns)), pairs),
        pair=np.tile(np.arange(pairs), len(columns)),
        raw=np.concatenate(columns),
        names=[f"a{number}" for number in range(len(columns))],
        pair_ids=[f"p{pair}" for pair in range(pairs)],
        ranges=[(None, 1.0)] * len(columns),
    )


def test_a_line_is_found_again() -> None:
    gold = np.random.default_rng(0).random(50)
    found = calibrate(numbers(3 + 10 * gold), gold, curve="linear")
    assert found.value == pytest.approx(gold, abs=1e-6)
    assert found.error.tolist() == [[pytest.approx(0, abs=1e-9)]]
    assert found.gold.tolist() == [50]


@pytest.mark.parametrize("curve", CURVES)
def test_no_number_is_mapped_by_a_curve_that_has_seen_its_gold(curve: Curve) -> None:
    """Changing one pair's gold leaves that pair's own number as it was."""
    rng = np.random.default_rng(1)
    gold = rng.random(60)
    raw = gold + rng.normal(0, 0.3, 60)
    one = calibrate(numbers(raw), gold, curve=curve, seed=3).value
    for pair in (0, 17, 59):
        other = gold.copy()
        other[pair] = 1 - other[pair]
        two = calibrate(numbers(raw), other, curve=curve, seed=3).value
        assert two[pair] == one[pair]
        assert not np.array_equal(two, one)


def test_noise_doesnt_learn_gold_by_heart() -> None:
    rng = np.random.default_rng(2)
    gold, raw = rng.random(400), rng.random(400)
    found = calibrate(numbers(raw), gold, curve="isotonic").value
    assert abs(spearmanr(found, gold).statistic) < 0.2
    assert found.std() < 0.1


def test_pairs_without_gold_are_mapped_by_the_curve_of_all() -> None:
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(4)
    truth = rng.random(80)
    raw = truth + rng.normal(0, 0.1, 80)
    gold = np.where(np.arange(80) < 40, truth, np.nan)
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(raw[:40], truth[:40])
    found = calibrate(numbers(raw), gold, curve="isotonic").value
    assert found[40:] == pytest.approx(fitted.predict(raw[40:]), abs=2e-6)


def test_no_ties_are_made_that_the_annotator_didnt_make() -> None:
    rng = np.random.default_rng(5)
    truth = rng.random(300)
    raw = truth + rng.normal(0, 0.5, 300)
    gold = np.where(np.arange(300) < 100, truth, np.nan)
    found = calibrate(numbers(raw), gold, curve="isotonic").value
    assert len(np.unique(found[100:])) == 200
    assert spearmanr(found[100:], raw[100:]).statistic == pytest.approx(1)


def test_a_curve_never_falls() -> None:
    gold = np.linspace(0, 1, 40)
    for curve in CURVES:
        found = calibrate(numbers(-gold), gold, curve=curve)
        assert found.value.std() < 0.05


def test_the_error_is_of_the_folds_left_out_and_weighs_by_its_inverse() -> None:
    rng = np.random.default_rng(6)
    gold = rng.random(2000)
    found = calibrate(numbers(gold + rng.normal(0, 0.05, 2000), rng.random(2000)), gold, curve="linear")
    assert found.error[0, 0] == pytest.approx(0.05**2, rel=0.15)
    assert found.error[1, 1] == pytest.approx(1 / 12, rel=0.1)
    weights = error_weights(np.diag(np.diag(found.error)))
    assert weights[0] / weights[1] == pytest.approx(found.error[1, 1] / found.error[0, 0], rel=1e-3)
    assert error_weights(np.array([[0.1, 0.0], [0.0, np.nan]])).tolist() == [pytest.approx(1), 0]


def test_of_those_that_are_wrong_together_the_better_one_counts() -> None:
    rng = np.random.default_rng(8)
    shared = rng.normal(0, 0.2, 3000)
    noise = rng.normal(0, 1, (3, 3000)) * [[0.05], [0.1], [0.2]]
    wrong = np.array([shared + noise[0], shared + noise[1], noise[2]])
    error = wrong @ wrong.T / 3000
    weights = error_weights(error)
    # the least of w'Ew over weights of 0 and more that sum to 1, by trying them all in steps of .01
    grid = [(a / 100, b / 100, 1 - (a + b) / 100) for a in range(101) for b in range(101 - a)]
    best = min(grid, key=lambda w: float(np.array(w) @ error @ np.array(w)))
    assert weights == pytest.approx(best, abs=0.011)
    apart = error_weights(np.diag(np.diag(error)))  # taken for independent, the second counts for more
    assert weights[1] < apart[1] / 2


def test_too_little_gold_is_refused_with_the_mend() -> None:
    rows = [vote(f"p{number}", "a", number, "relative") for number in range(30)]
    gold = {f"p{number}": number / 30 for number in range(9)}
    with pytest.raises(InputError, match="Only 9 pairs with gold have a vote of a: calibration takes 10 at least"):
        aggregate(table(rows), gold=gold)


def test_aggregate_calibrates_with_gold_and_says_so() -> None:
    rng = np.random.default_rng(7)
    truth = {f"p{number}": float(score) for number, score in enumerate(rng.random(200))}
    rows = [vote(pair, "good", 7 * score, "relative") for pair, score in truth.items()]
    rows += [vote(pair, "noise", rng.random(), "0..1") for pair in truth]
    gold = {f"p{number}": truth[f"p{number}"] for number in range(100)}
    found = aggregate(table(rows), method="weighted", gold=gold)
    assert found["method"][0].as_py() == "weighted, linear"
    score = found["score"].to_numpy()[100:]
    assert np.abs(score - np.array(list(truth.values()))[100:]).max() < 0.08
    mean = aggregate(table(rows), method="mean", gold=gold, curve="linear")
    assert mean["method"][0].as_py() == "mean, linear"
    assert mean["spread"].null_count == 0
