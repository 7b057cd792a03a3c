import numpy as np

from stscurate.methods.similarity import pair_cosines


def test_cosines_are_row_by_row_and_stay_within_one() -> None:
    left = np.array([[0.6, 0.8], [1, 0], [1, 0]], dtype=np.float32)
    right = np.array([[0.6, 0.8], [0, 1], [-1, 0]], dtype=np.float32)
    found = pair_cosines(left, right)
    np.testing.assert_allclose(found, [1, 0, -1], atol=1e-7)
    assert found.dtype == np.float64
    assert np.abs(found).max() <= 1
