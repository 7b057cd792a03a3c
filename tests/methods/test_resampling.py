import math

import numpy as np
import pytest
from scipy.stats import bootstrap as scipys_bootstrap
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from stscurate.methods import resampling
from stscurate.methods.resampling import AveragePrecision, Spearman, bootstrap, drawn, interval, two_sided_p, value


def made(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gold on few values, and two rankings of which the second is the better one."""
    noise = np.random.default_rng(1)
    gold = noise.integers(0, 6, n) / 5
    return gold, gold + noise.normal(size=n), (gold + noise.normal(size=n) / 3).round(1)


@pytest.mark.parametrize("block", [1, 130, 10**6])
def test_blocks_draw_the_same_rows_as_one_draw_of_all(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_BLOCK", block)
    counts = np.concatenate(list(drawn(13, 40, 5)))
    rows = np.random.default_rng(5).integers(13, size=(40, 13))
    assert counts.tolist() == [[int((row == place).sum()) for place in range(13)] for row in rows]


def test_differences_of_two_models_are_those_of_a_slow_loop_over_the_same_draws() -> None:
    gold, one, two = made()
    found = bootstrap([Spearman(one, gold), Spearman(two, gold)], 60, resamples=150, seed=4)
    rows = np.random.default_rng(4).integers(60, size=(150, 60))
    expected = [[spearmanr(side[row], gold[row]).statistic for row in rows] for side in (one, two)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_paired_interval_is_scipys() -> None:
    gold, one, two = made()

    def difference(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> float:
        return float(spearmanr(y, z).statistic - spearmanr(x, z).statistic)

    found = bootstrap([Spearman(one, gold), Spearman(two, gold)], 60, resamples=120, seed=8)
    expected = scipys_bootstrap(
        (one, two, gold),
        difference,
        paired=True,
        vectorized=False,
        n_resamples=120,
        method="percentile",
        rng=np.random.default_rng(8),
    ).confidence_interval
    assert interval(found[1] - found[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_resampled_average_precision_is_scikit_learns() -> None:
    gold, one, two = made()
    label = (gold > 0.5).astype(float)
    found = bootstrap([AveragePrecision(label, one), AveragePrecision(label, two)], 60, resamples=50, seed=2)
    rows = np.random.default_rng(2).integers(60, size=(50, 60))
    expected = [[average_precision_score(label[row], side[row]) for row in rows] for side in (one, two)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert math.isnan(value(AveragePrecision(np.zeros(4), np.arange(4)), 4))


def test_p_counts_both_sides_and_is_never_nought() -> None:
    # Of nine differences, two aren't above 0 (0 counts to both sides): 2 * (1 + 2) / (1 + 9).
    assert two_sided_p(np.array([-0.1, 0.0, 1, 2, 3, 4, 5, 6, 7])) == pytest.approx(0.6)
    assert two_sided_p(np.ones(999)) == pytest.approx(0.002)
    assert two_sided_p(np.zeros(99)) == 1.0
    assert two_sided_p(np.array([1.0, math.nan, 1.0])) == pytest.approx(2 / 3)
    assert math.isnan(two_sided_p(np.array([math.nan])))


def test_p_of_equal_models_is_spread_evenly_and_that_of_unequal_ones_is_small() -> None:
    noise = np.random.default_rng(0)
    low = 0
    for trial in range(100):
        gold = noise.normal(size=80)
        one, two = gold + noise.normal(size=(2, 80))
        found = bootstrap([Spearman(one, gold), Spearman(two, gold)], 80, resamples=100, seed=trial)
        low += two_sided_p(found[1] - found[0]) <= 0.1
    assert 2 <= low <= 22
    gold, one, two = made(200)
    found = bootstrap([Spearman(one, gold), Spearman(two, gold)], 200, resamples=400, seed=0)
    assert two_sided_p(found[1] - found[0]) < 0.01
