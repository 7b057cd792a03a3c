from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from stscurate.methods.agreement import Level, intraclass_correlation, krippendorff_alpha

# Krippendorff (2011), the example with missing values: 4 raters (rows), 12 units.
_ = math.nan
EXAMPLE = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
)
# Shrout and Fleiss (1979), table 2: 6 targets, 4 judges.
JUDGES = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def alpha(ratings: np.ndarray, level: Level) -> float:
    rater, unit = np.nonzero(np.isfinite(ratings))
    return krippendorff_alpha(unit, ratings[rater, unit], level=level)


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_example_gives_his_numbers(level: Level, published: float) -> None:
    assert alpha(EXAMPLE, level) == pytest.approx(published, abs=5e-4)


def slowly(ratings: np.ndarray, level: Level) -> float:
    """Alpha by its definition: a loop over all pairs of values."""
    units = [[v for v in column if np.isfinite(v)] for column in ratings.T]
    units = [values for values in units if len(values) > 1]
    every = [v for values in units for v in values]

    def apart(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= v <= high for v in every)
        return (between - (every.count(low) + every.count(high)) / 2) ** 2 if low < high else 0.0

    observed = sum(sum(apart(a, b) for a, b in itertools.permutations(v, 2)) / (len(v) - 1) for v in units)
    expected = sum(apart(a, b) for a, b in itertools.permutations(every, 2)) / (len(every) - 1)
    return 1 - observed / expected


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_alpha_equals_its_definition_and_the_krippendorff_package(level: Level, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ratings = rng.integers(0, 6, size=(rng.integers(2, 6), 15)).astype(float) + (rng.random() if seed % 2 else 0)
    ratings[rng.random(ratings.shape) < 0.3] = math.nan
    assert alpha(ratings, level) == pytest.approx(slowly(ratings, level), abs=1e-12)
    package = pytest.importorskip("krippendorff", reason="the krippendorff package isn't installed")
    assert alpha(ratings, level) == pytest.approx(package.alpha(ratings, level_of_measurement=level), abs=1e-9)


def test_where_nothing_can_disagree_alpha_is_nan() -> None:
    assert math.isnan(krippendorff_alpha([], [], level="interval"))
    assert math.isnan(krippendorff_alpha([0, 1, 2], [1.0, 2.0, 3.0], level="interval"))
    for level in ("interval", "ordinal", "nominal"):
        assert math.isnan(krippendorff_alpha([0, 0, 1, 1], [2.0, 2.0, 2.0, 2.0], level=level))


def test_shrout_and_fleiss_get_their_numbers() -> None:
    found = intraclass_correlation(JUDGES)
    assert found == pytest.approx((0.29, 0.62, 0.71, 0.91, 6), abs=5e-3)


def test_units_that_not_all_have_rated_are_left_out_of_the_intraclass_correlations() -> None:
    assert intraclass_correlation(np.array([*JUDGES, [1, 9, math.nan, 3]])) == intraclass_correlation(JUDGES)
    assert all(math.isnan(number) for number in intraclass_correlation([[1.0, 1.0], [1.0, 1.0]])[:4])
    assert intraclass_correlation([[1.0, math.nan]]).units == 0


def test_raters_that_differ_by_a_constant_are_consistent_but_dont_agree() -> None:
    found = intraclass_correlation([[1, 3], [2, 4], [4, 6], [5, 7]])
    assert found.consistency == pytest.approx(1)
    assert found.agreement < 0.8
