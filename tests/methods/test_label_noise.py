"""What makes a label suspect, by numbers worked out by hand."""

import numpy as np

from stscurate.methods.label_noise import broken_chains, conflicts, expected_gold, scaled_residual, stacked


def test_no_expectation_knows_its_own_gold() -> None:
    evidence = np.linspace(0, 1, 40)[:, None]
    gold = (evidence[:, 0] > 0.5).astype(float)
    gold[3] = 1.0  # wrong
    expected = expected_gold(gold, evidence, folds=40)  # each row alone in its fold
    for row in (0, 3, 20, 39):
        others = np.delete(np.arange(40), row)
        # The pool-adjacent-violators solution by hand: the wrong 1 at place 3 is pooled with the zeros behind it.
        fitted = _isotonic(gold[others])
        assert np.isclose(expected[row, 0], np.interp(evidence[row, 0], evidence[others, 0], fitted))
    assert expected[3, 0] == 0.0


def _isotonic(values: np.ndarray) -> np.ndarray:
    """Pools neighbours, slowly and plainly, until nothing falls."""
    blocks = [[value] for value in values]
    while True:
        for place in range(len(blocks) - 1):
            if np.mean(blocks[place]) > np.mean(blocks[place + 1]):
                blocks[place : place + 2] = [blocks[place] + blocks[place + 1]]
                break
        else:
            return np.array([np.mean(block) for block in blocks for _ in block])


def test_the_same_seed_gives_the_same_folds_and_another_other_ones() -> None:
    generator = np.random.default_rng(1)
    evidence, gold = generator.normal(size=(60, 2)), generator.random(60)
    assert (expected_gold(gold, evidence, seed=4) == expected_gold(gold, evidence, seed=4)).all()
    assert (expected_gold(gold, evidence, seed=4) != expected_gold(gold, evidence, seed=5)).any()


def test_witnesses_count_by_how_near_they_come_to_the_gold() -> None:
    generator = np.random.default_rng(0)
    gold = generator.random(500)
    good, weak = gold + generator.normal(0, 0.1, 500), np.full(500, 0.5) + generator.normal(0, 0.01, 500)
    both = np.column_stack([good, weak])
    found = stacked(both, gold)
    # The least squares over weights w, 1 - w, by trying all of them.
    tried = [float(((both @ [w, 1 - w] - gold) ** 2).sum()) for w in np.linspace(0, 1, 1001)]
    assert ((found - gold) ** 2).sum() < min(tried) * 1.01
    np.testing.assert_array_equal(stacked(both[:, :1], gold), good)
    np.testing.assert_array_equal(stacked(np.zeros((3, 2)), np.ones(3)), np.zeros(3))


def test_residuals_are_in_deviations_that_outliers_do_not_move() -> None:
    gold = np.array([0.1, 0.2, 0.3, 0.4, 1.0])
    expected = np.array([0.2, 0.2, 0.2, 0.4, 0.0])
    # residuals -.1, 0, .1, 0, 1: median 0, absolute ones .1, 0, .1, 0, 1, whose median is .1
    np.testing.assert_allclose(scaled_residual(gold, expected), np.array([-1, 0, 1, 0, 10]) / 1.4826)


def test_where_most_expectations_are_exact_the_spread_is_that_of_all() -> None:
    gold = np.array([1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(scaled_residual(gold, np.zeros(4)), [1 / np.std(gold), 0, 0, 0])
    assert (scaled_residual(gold, gold) == 0).all()


def test_equal_pairs_in_conflict_name_the_row_that_differs_most() -> None:
    gold = np.array([0.0, 1.0, 0.4, 0.5, 0.6])
    assert conflicts(["a", "a", "a", "b", "b"], gold, gap=0.2) == {0: 1, 1: 0, 2: 1}


def test_a_chain_of_equals_makes_a_different_pair_suspect() -> None:
    texts = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("a", "e"), ("c", "a"), ("e", "e")]
    gold = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert broken_chains(texts, gold) == {3: 3, 5: 2}
