import numpy as np
import pytest

from stscurate.methods.similarity import alignment, pair_cosines, positives, uniformity


def test_cosines_are_row_by_row_and_stay_within_one() -> None:
    left = np.array([[0.6, 0.8], [1, 0], [1, 0]], dtype=np.float32)
    right = np.array([[0.6, 0.8], [0, 1], [-1, 0]], dtype=np.float32)
    found = pair_cosines(left, right)
    np.testing.assert_allclose(found, [1, 0, -1], atol=1e-7)
    assert found.dtype == np.float64
    assert np.abs(found).max() <= 1


def test_alignment_and_uniformity_by_hand() -> None:
    left = np.array([[1, 0], [0, 1]], dtype=np.float32)
    assert alignment(left, left[::-1]) == pytest.approx(2.0)  # right angles: |u - v|^2 is 2
    assert uniformity(left) == pytest.approx(-4.0)  # log of exp(-2 * 2)


def test_four_of_five_is_not_positive_however_it_was_rounded() -> None:
    gold = np.array([0.0, 0.6, 4 / 5, 0.1 * 8, 1 - 0.2, 0.5 + 0.3 + 1e-16, 4.2 / 5, 1.0])
    assert positives(gold).tolist() == [False] * 6 + [True] * 2
