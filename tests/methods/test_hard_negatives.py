import numpy as np
import pytest

from stscurate.methods import hard_negatives
from stscurate.methods.calibration import METHODS
from stscurate.methods.hard_negatives import nearest_allowed


def unit_rows(n: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, 8))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@pytest.mark.parametrize("name", ["cosine", "s-norm", "length-matched-s-norm"])
@pytest.mark.parametrize("ranks", [(1, 4), (3, 5), (30, 34), (1, 60)])
def test_they_are_those_of_a_loop_over_all_candidates(
    name: str, ranks: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hard_negatives, "_BLOCK", 100)  # three anchors at a time
    rng = np.random.default_rng(1)
    vectors, other = unit_rows(31, 0), unit_rows(11, 2)
    lengths, other_lengths = rng.integers(3, 90, 31), rng.integers(3, 90, 11)
    groups, other_groups = rng.integers(0, 6, 31), rng.integers(0, 9, 11)
    method = METHODS[name].fit(vectors, lengths)
    ceilings = np.where(np.arange(11) % 3 == 0, np.inf, 0.4)
    found = nearest_allowed(
        method,
        method.texts(other, other_lengths),
        method.texts(vectors, lengths),
        anchor_groups=other_groups,
        candidate_groups=groups,
        ceilings=ceilings,
        first=ranks[0],
        last=ranks[1],
    )
    for row in range(11):
        values = {}
        above = 0
        for column in range(31):
            one = method.similarity(
                other[row : row + 1],
                other_lengths[row : row + 1],
                vectors[column : column + 1],
                lengths[column : column + 1],
            )[0]
            if groups[column] != other_groups[row]:
                if one > ceilings[row]:
                    above += 1
                else:
                    values[column] = one
        expected = sorted(values, key=lambda column: -values[column])[ranks[0] - 1 : ranks[1]]
        padded = expected + [-1] * (ranks[1] - ranks[0] + 1 - len(expected))
        assert found.places[row].tolist() == padded
        assert found.above[row] == above
        assert found.similarity[row, : len(expected)] == pytest.approx([values[at] for at in expected], abs=1e-4)
        assert (found.similarity[row, len(expected) :] == -np.inf).all()


def test_equal_similarities_go_by_place() -> None:
    vectors = np.repeat(unit_rows(1, 0), 6, axis=0)
    method = METHODS["cosine"].fit(vectors, np.ones(6, np.int64))
    texts = method.texts(vectors, np.ones(6, np.int64))
    found = nearest_allowed(
        method,
        texts[:2],
        texts,
        anchor_groups=np.array([0, 1]),
        candidate_groups=np.arange(6),
        ceilings=np.full(2, np.inf),
        last=3,
    )
    assert found.places.shape == (2, 3)
    assert [sorted(row) == row and row.count(own) == 0 for own, row in enumerate(found.places.tolist())] == [True, True]
