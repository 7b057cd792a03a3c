from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

from stscurate.cli import app
from stscurate.ensemble import score_votes
from stscurate.errors import InputError, StscurateError
from stscurate.records import Tally, from_rows
from stscurate.store import Run
from stscurate.tables import Source, pairs_source
from tests.ensemble.made import pair, vote


def keep(run: Run, name: str, rows: list[dict[str, Any]]) -> None:
    """The rows as a finished stage of a run."""
    stage = run.stage(name, tables=[name], inputs={}, settings={})
    stage.write(0, {name: from_rows(rows, name)}, Tally(rows_in=len(rows)))
    stage.commit()


def made(folder: Path, pairs: int = 120) -> np.ndarray:
    """A run with three relative annotators, one of them noise; gives the truth."""
    rng = np.random.default_rng(0)
    truth = rng.random(pairs)
    with Run.open(folder) as run:
        keep(run, "pairs", [pair(f"p{n}", f"one {n}", f"two {n}") for n in range(pairs)])
        keep(
            run,
            "votes",
            [
                vote(f"p{n}", name, float(truth[n] + rng.normal(0, size)), "relative")
                for name, size in {"good": 0.05, "fair": 0.3, "noise": 5.0}.items()
                for n in range(pairs)
            ],
        )
    return truth


def test_the_stage_counts_pairs_without_a_vote_and_is_found_finished(tmp_path: Path) -> None:
    rows = [vote("p", "a", 4.0), vote("p", "b", None), vote("q", "a", None), vote("q", "b", None)]
    with Run.open(tmp_path / "run") as run:
        stage = run.stage("votes", tables=["votes"], inputs={}, settings={})
        stage.write(0, {"votes": from_rows(rows, "votes")}, Tally(rows_in=2))
        stage.commit()
        entry = score_votes(run)
        assert run.table("scores")["score"].to_pylist() == [0.8]
        again = score_votes(run)
    assert entry.tally.rows_in == 2
    assert dict(entry.tally.dropped) == {"no_valid_vote": 1}
    assert entry.tally.as_dict()["counts"] == {"annotators": {"1": 1}}
    assert (entry.fresh, again.fresh) == (True, False)


def test_gold_is_found_by_id_or_by_the_texts_in_either_order(tmp_path: Path) -> None:
    truth = made(tmp_path / "run")
    rows = [pair(f"p{n}", "other", "texts", score=truth[n]) for n in range(30)]
    rows += [pair(f"x{n}", f"two {n}", f"one {n}", score=truth[n]) for n in range(30, 60)]
    rows += [pair("y", "unknown", "pair", score=1.0), pair("z", "one 61", "two 61")]
    gold = Source(from_rows(rows, "pairs"), "gold.csv", "hash", Tally())
    with Run.open(tmp_path / "run") as run:
        entry = score_votes(run, method="weighted", gold=gold)
        scores = run.table("scores")["score"].to_numpy()
    assert entry.tally.as_dict()["counts"]["gold"] == {"found": 60, "of_no_pair": 1, "without_a_number": 1}
    assert entry.key["inputs"]["gold:gold.csv"] == "hash"
    assert spearmanr(scores, truth).statistic > 0.95
    assert np.abs(scores - truth).mean() < 0.06  # on gold's scale, not ranks


def test_gold_of_other_pairs_alone_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "run", pairs=4)
    gold = Source(from_rows([pair("y", "unknown", "pair", score=1.0)], "pairs"), "gold.csv", "hash", Tally())
    with Run.open(tmp_path / "run") as run, pytest.raises(InputError, match="None of the 1 rows of gold has a score"):
        score_votes(run, gold=gold)


def test_votes_of_which_none_is_valid_are_an_error_and_constant_annotators_are_named(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        keep(run, "votes", [vote("p", "a", None), vote("q", "a", None)])
        with pytest.raises(StscurateError, match=r"None of the 2 votes is valid \(parse 2\)"):
            score_votes(run)
    with Run.open(tmp_path / "other") as run:
        keep(run, "votes", [vote(p, a, 3.0 if a == "a" else raw) for p, raw in (("p", 1.0), ("q", 2.0)) for a in "ab"])
        assert score_votes(run).tally.as_dict()["counts"]["constant"] == {"a": 1}


def test_the_command_takes_gold_and_tells_of_the_agreement(tmp_path: Path) -> None:
    truth = made(tmp_path / "run")
    lines = [f"one {n},two {n},{5 * truth[n]}" for n in range(50)]
    (tmp_path / "gold.csv").write_text("\n".join(["sentence1,sentence2,score", *lines]))
    assert pairs_source(tmp_path / "gold.csv", scale="0-5").table.num_rows == 50
    words = ["ensemble", str(tmp_path / "run"), "--method", "weighted", "--gold", str(tmp_path / "gold.csv")]
    done = CliRunner().invoke(app, [*words, "--scale", "0-5", "--curve", "linear", "--folds", "4", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["stages"][0]["settings"] == {"method": "weighted", "curve": "linear", "folds": 4}
    names = [row["annotator"] for row in found["agreement"]["annotators"]]
    assert names == ["good", "fair", "noise"]
    loading = {row["annotator"]: row["loading"] for row in found["agreement"]["annotators"]}
    assert min(loading["good"], loading["fair"]) > 0.5 > loading["noise"]
    assert found["agreement"]["overall"]["pairs"] == 120


def test_classes_are_a_setting_and_another_method_needs_yes(tmp_path: Path) -> None:
    made(tmp_path / "run")
    words = ["ensemble", str(tmp_path / "run"), "--json"]
    assert CliRunner().invoke(app, words).exit_code == 0
    other = [*words, "--method", "dawid-skene", "--bins", "4"]
    assert CliRunner().invoke(app, other).exit_code == 2
    done = CliRunner().invoke(app, [*other, "--yes"])
    assert json.loads(done.stdout)["stages"][0]["settings"] == {"method": "dawid-skene", "bins": 4}
