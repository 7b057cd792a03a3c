"""The curve of relevance against an optimiser that knows nothing of it, and the ways to read it."""

import numpy as np
import pytest
from scipy.optimize import minimize

from stscurate.methods.relevance import RelevanceCurve, cross_validated, fit_curve, resampled_curves


def made(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    similarity = generator.uniform(0, 1, n)
    length1, length2 = generator.integers(4, 64, (2, n))
    chance = 1 / (1 + np.exp(-(-2 + 8 * similarity - 0.5 * np.log2(length2))))
    return similarity, length1, length2, (generator.random(n) < chance).astype(float)


def test_the_curve_is_the_maximum_of_the_penalised_likelihood() -> None:
    similarity, length1, length2, relevance = made(150)
    relevance[::7] = 0.3  # a grade counts as so much of either class
    inputs = np.column_stack([similarity, np.log2(length1), np.log2(length2)])
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0)

    def loss(weights: np.ndarray) -> float:
        logits = weights[0] + (inputs - mean) / spread @ weights[1:]
        chance = 1 / (1 + np.exp(-logits))
        likelihood = relevance * np.log(chance) + (1 - relevance) * np.log(1 - chance)
        return float(-likelihood.sum() + (weights[1:] ** 2).sum() / 2)

    best = minimize(loss, np.zeros(4), tol=1e-12).x
    curve = fit_curve(similarity, length1, length2, relevance)
    np.testing.assert_allclose(curve.weights[1:], best[1:] / spread, atol=1e-4)
    assert curve.weights[0] == pytest.approx(best[0] - (best[1:] * mean / spread).sum(), abs=1e-3)


def test_the_truth_is_found_where_there_is_much_of_it() -> None:
    curve = fit_curve(*made(20_000))
    np.testing.assert_allclose(curve.weights, (-2, 8, 0, -0.5), atol=0.25)
    without = fit_curve(*made(20_000), with_lengths=False)
    assert without.weights[2:] == (0.0, 0.0)


def test_probability_and_similarity_are_each_others_inverse() -> None:
    curve = RelevanceCurve((-2.0, 8.0, 0.0, -0.5))
    # -2 + 8 s - .5 * log2(16) = log(.9/.1) = 2.1972: s = (2.1972 + 4) / 8
    assert curve.similarity_at(0.9, 5, 16) == pytest.approx((np.log(9) + 4) / 8)
    found = curve.probability(np.array([0.77465]), np.array([5]), np.array([16]))
    np.testing.assert_allclose(found, 0.9, atol=1e-4)
    assert np.isnan(RelevanceCurve((0.0, -1.0, 0.0, 0.0)).similarity_at(0.5, 4, 4))
    far = curve.probability(np.array([-1e4, 1e4]), np.array([1, 1]), np.array([1, 1]))
    np.testing.assert_array_equal(far, [0, 1])  # no overflow


def test_classes_that_do_not_overlap_give_a_finite_curve() -> None:
    similarity = np.linspace(0, 1, 100)
    same = np.full(100, 7)
    curve = fit_curve(similarity, same, same, (similarity > 0.5).astype(float))
    assert 0 < curve.weights[1] < 100
    np.testing.assert_allclose(curve.weights[2:], 0, atol=1e-9)
    assert curve.similarity_at(0.5, 7, 7) == pytest.approx(0.5, abs=0.01)


def test_samples_draw_whole_queries() -> None:
    similarity, length1, length2, relevance = made(400)
    one = resampled_curves(similarity, length1, length2, relevance, ["a"] * 400, resamples=3)
    assert {curve.weights for curve in one} == {fit_curve(similarity, length1, length2, relevance).weights}
    many = resampled_curves(similarity, length1, length2, relevance, range(400), resamples=60, seed=1)
    spread = np.std([curve.weights[1] for curve in many])
    assert 0.3 < spread < 2.0
    again = resampled_curves(similarity, length1, length2, relevance, range(400), resamples=60, seed=1)
    assert again == many


def test_losses_are_of_queries_that_were_not_fitted_to() -> None:
    similarity, length1, length2, relevance = made(1500)
    groups = [row // 3 for row in range(1500)]
    found = cross_validated(similarity, length1, length2, relevance, groups, folds=4, seed=2)
    fold = np.random.default_rng(2).permutation(500) % 4
    of_row = fold[groups]
    share = np.array([relevance[of_row != of_row[row]].mean() for row in range(1500)])
    slow = -np.mean([np.log(p if y else 1 - p) for p, y in zip(share, relevance, strict=True)])
    assert found["share"]["log_loss"] == pytest.approx(slow)
    assert found["share"]["brier"] == pytest.approx(np.mean((share - relevance) ** 2))
    assert found["similarity and lengths"]["log_loss"] < found["similarity"]["log_loss"] < found["share"]["log_loss"]
