import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from stscurate.methods.thresholds import accuracy_at, best_accuracy, best_f1, f1_at

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=1, max_size=20)


@given(ROWS)
@settings(max_examples=80, deadline=None)
def test_no_threshold_is_better_than_the_best(rows: list[tuple[int, int]]) -> None:
    label, score = (np.array(side) for side in zip(*rows, strict=True))
    every = [*np.unique(score) - 0.5, 4.0]
    f1, accuracy = best_f1(label, score), best_accuracy(label, score)
    assert f1.value == pytest.approx(max(f1_score(label, score >= at, zero_division=0) for at in every))
    assert accuracy.value == pytest.approx(max(accuracy_score(label, score >= at) for at in every))
    assert f1_at(label, score, f1.threshold) == pytest.approx(f1.value)
    assert accuracy_at(label, score, accuracy.threshold) == pytest.approx(accuracy.value)


def test_a_threshold_stands_halfway_between_scores_and_is_held_to_other_rows() -> None:
    found = best_f1([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    assert (found.value, found.threshold) == (1.0, 0.5)
    # On these, .5 takes three of which two are positive, and misses one: F1 2 * 2 / (3 + 3), 3 of 5 right.
    label, score = [1, 1, 0, 0, 1], [0.7, 0.55, 0.52, 0.2, 0.45]
    assert f1_at(label, score, found.threshold) == pytest.approx(4 / 6)
    assert accuracy_at(label, score, found.threshold) == pytest.approx(3 / 5)


def test_saying_no_to_all_is_the_best_accuracy_where_few_are_positive_and_none_is_told() -> None:
    found = best_accuracy([1, 0, 0, 0], [0.1, 0.2, 0.3, 0.4])
    assert found.value == 0.75
    assert found.threshold > 0.4
    assert f1_at([1, 0], [0.1, 0.2], 0.5) == 0.0
