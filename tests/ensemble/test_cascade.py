"""Scores of a cascade, whose dear annotators have seen the doubtful pairs only: as if they had seen all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.ensemble import aggregate, score_votes
from stscurate.ensemble.calibration import calibrate
from stscurate.ensemble.factor import factor_weights, loadings
from stscurate.methods.numbers import numbers_of, placed
from stscurate.records import Tally, from_rows
from stscurate.store import Run
from tests.ensemble.made import pair, table, vote

LATE = np.array([False, False, True])


def made(loading: list[float], share: float, pairs: int = 20_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Truth, numbers of three annotators, and the same where the last has seen what the first two differ most on."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(pairs)
    own = np.array(loading)
    whole = truth[:, None] * own + rng.standard_normal((pairs, 3)) * np.sqrt(1 - own**2)
    apart = np.abs(whole[:, 0] - whole[:, 1])
    part = whole.copy()
    part[apart < np.quantile(apart, 1 - share), 2] = np.nan
    return truth, whole, part


def test_a_dear_annotators_loading_is_that_of_all_pairs_though_it_saw_the_doubtful_ones() -> None:
    _, whole, part = made([0.8, 0.7, 0.85], 0.2)
    everything = loadings(whole)
    assert loadings(part)[2] < everything[2] - 0.1  # what the part alone would say
    assert loadings(part, LATE) == pytest.approx(everything, abs=0.03)
    assert factor_weights(part, LATE) == pytest.approx(factor_weights(whole), abs=0.05)


def test_two_dear_annotators_that_share_errors_are_seen_to() -> None:
    _, whole, _ = made([0.8, 0.7, 0.85], 1.0)
    whole = np.column_stack([whole, whole[:, 2] + 0.2 * np.random.default_rng(1).standard_normal(len(whole))])
    part = whole.copy()
    apart = np.abs(whole[:, 0] - whole[:, 1])
    part[apart < np.quantile(apart, 0.7), 2:] = np.nan
    late = np.array([False, False, True, True])
    assert loadings(part, late) == pytest.approx(loadings(whole), abs=0.03)


def test_the_words_in_common_are_taken_out_of_a_cascade_too() -> None:
    from tests.ensemble.test_factor import taken_in

    _, whole, shared = taken_in()
    whole = whole[:, [1, 2, 0]]
    part = whole.copy()
    apart = np.abs(whole[:, 0] - whole[:, 1])
    part[apart < np.quantile(apart, 0.8), 2] = np.nan
    assert loadings(part, LATE, shared) == pytest.approx(loadings(whole, overlap=shared), abs=0.04)


def test_a_part_that_is_too_small_to_tell_is_taken_as_it_is() -> None:
    _, _, part = made([0.8, 0.7, 0.85], 0.2, pairs=30)
    assert loadings(part, LATE) == pytest.approx(loadings(part))


def test_a_parts_ranks_spread_as_those_of_one_who_has_seen_all() -> None:
    rows = [vote(f"p{at:02}", "a", at, "relative") for at in range(20)]
    rows += [vote(f"p{at:02}", "b", -at, "relative") for at in range(20)]
    rows += [vote(f"p{at:02}", "judge", at, "relative") for at in range(20) if at in (2, 9, 10, 17)]
    found = placed(numbers_of(table(rows)))[-4:]
    # the others' ranks there: .125, .475, .525, .875, each twice; their means are all .5
    assert found.tolist() == pytest.approx([0.125, 0.475, 0.525, 0.875])


def rows_of(levels: dict[str, float]) -> list[dict[str, Any]]:
    """Votes on 0..1 of cheap a and b on p0..p9, and of a judge on p7..p9, each at its level above the truth."""
    truth = [at / 20 for at in range(10)]
    return [
        vote(f"p{at}", name, truth[at] + level, "0..1")
        for name, level in levels.items()
        for at in range(7 if name == "judge" else 0, 10)
    ]


def test_a_level_of_its_own_doesnt_set_the_dears_part_apart() -> None:
    rows = rows_of({"a": 0.1, "b": 0.2, "judge": 0.45})
    found = aggregate(table(rows), dear=["judge"])
    # with the judge everywhere each pair's mean would be the truth and the mean of the levels
    assert found["score"].to_pylist() == pytest.approx([at / 20 + 0.25 for at in range(10)])
    assert max(found["spread"].to_pylist()[7:]) == pytest.approx(float(np.std([0.1, 0.2, 0.15])))
    plain = aggregate(table(rows))
    assert plain["score"].to_pylist()[7] == pytest.approx(0.35 + 0.25)
    assert plain["score"].to_pylist()[6] == pytest.approx(0.30 + 0.15)


def test_without_a_shared_pair_or_a_dear_annotator_absolute_numbers_stay() -> None:
    rows = [vote("p", "a", 0.2, "0..1"), vote("q", "judge", 0.9, "0..1")]
    assert placed(numbers_of(table(rows)), dear=["judge"]).tolist() == [0.2, 0.9]
    assert placed(numbers_of(table(rows)), dear=["a", "judge"]).tolist() == [0.2, 0.9]


def test_errors_on_gold_are_compared_on_the_part_that_all_have_seen() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(400)
    hard = np.arange(400) >= 300
    size = {"a": np.where(hard, 0.3, 0.01), "b": np.where(hard, 0.3, 0.01), "judge": np.full(400, 0.1)}
    rows = [
        vote(f"p{at}", name, float(truth[at] + rng.normal(0, size[name][at])), "relative")
        for name in size
        for at in (range(300, 400) if name == "judge" else range(400))
    ]
    numbers = numbers_of(table(rows))
    of_part = np.diag(calibrate(numbers, truth, curve="linear", dear=["judge"]).error)
    of_all = np.diag(calibrate(numbers, truth, curve="linear").error)
    assert of_part[2] == of_all[2]
    assert of_part[2] < of_part[0] / 2
    assert of_all[0] < of_part[0] / 2
    assert numbers.names == ["a", "b", "judge"]


def test_the_stage_knows_the_cascade_from_the_votes(tmp_path: Path) -> None:
    rows = rows_of({"a": 0.1, "b": 0.2, "judge": 0.45})
    with Run.open(tmp_path / "run") as run:
        for name, made_rows, settings in (
            ("pairs", [pair(f"p{at}", f"one {at}", f"two {at}") for at in range(10)], {}),
            ("votes", rows, {"cascade": {"share": 0.3, "dear": ["judge"]}}),
        ):
            stage = run.stage(name, tables=[name], inputs={}, settings=settings)
            stage.write(0, {name: from_rows(made_rows, name)}, Tally(rows_in=10))
            stage.commit()
        entry = score_votes(run)
        assert entry.key["settings"] == {"method": "weighted", "dear": ["judge"]}
        assert run.table("scores")["score"].to_pylist() == pytest.approx([at / 20 + 0.25 for at in range(10)])
