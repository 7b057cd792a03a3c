from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

from stscurate.cli import app
from stscurate.ensemble import aggregate, agreement_of, score_votes
from stscurate.ensemble.calibration import calibrate
from stscurate.errors import InputError, StscurateError
from stscurate.methods.numbers import numbers_of
from stscurate.ratings import read_ratings, run_ratings
from stscurate.records import Tally, from_rows
from stscurate.store import Run
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


def test_the_weights_told_are_those_that_made_the_scores(tmp_path: Path) -> None:
    made(tmp_path / "run")
    with Run.open(tmp_path / "run") as run:
        score_votes(run)
        scores = run.table("scores")["score"].to_numpy()
        votes = run.table("votes").to_pandas()
        told = {row["annotator"]: row for row in agreement_of(run).annotators}
    raw = votes.pivot_table(index="pair_id", columns="annotator", values="raw", sort=False)
    ranks = (raw.rank() - 0.5) / len(raw)
    by_hand = sum(told[name]["weight"] * ranks[name].to_numpy() for name in raw.columns)
    np.testing.assert_allclose(scores, by_hand, atol=1e-12)
    assert told["noise"]["weight"] < min(told["good"]["weight"], told["fair"]["weight"])
    assert sum(row["weight"] for row in told.values()) == pytest.approx(1)


def test_with_gold_the_weights_told_are_those_of_its_errors_and_of_a_mean_there_are_none(tmp_path: Path) -> None:
    truth = made(tmp_path / "run")
    lines = [f"one {n},two {n},{5 * truth[n]}" for n in range(60)]
    (tmp_path / "gold.csv").write_text("\n".join(["text1,text2,score", *lines]))
    words = ["ensemble", str(tmp_path / "run"), "--json", "--yes"]
    done = CliRunner().invoke(app, [*words, "--gold", str(tmp_path / "gold.csv")])
    told = {row["annotator"]: row["weight"] for row in json.loads(done.stdout)["agreement"]["annotators"]}
    run = Run(tmp_path / "run")
    known = {f"p{n}": truth[n] for n in range(60)}
    numbers = numbers_of(run.table("votes"))
    gold = np.array([known.get(pair_id, np.nan) for pair_id in numbers.pair_ids])
    value = numbers.matrix(calibrate(numbers, gold, curve="linear").value)
    by_hand = sum(told[name] * value[:, place] for place, name in enumerate(numbers.names))
    np.testing.assert_allclose(run.table("scores")["score"].to_numpy(), by_hand, atol=1e-12)
    assert told["good"] > 0.9
    with Run.open(tmp_path / "run") as run:
        free = {row["annotator"]: row["weight"] for row in agreement_of(run).annotators}
    assert free["fair"] > free["good"]  # without gold it's another that weighs most
    for method in ("mean", "dawid-skene"):
        rows = json.loads(CliRunner().invoke(app, [*words, "--method", method]).stdout)["agreement"]["annotators"]
        assert not any("weight" in row for row in rows)


def test_gold_calibrates_the_pairs_it_rates_and_the_rest_is_counted(tmp_path: Path) -> None:
    truth = made(tmp_path / "run")
    lines = [f"one {n},two {n},{5 * truth[n]}" for n in range(60)]
    (tmp_path / "gold.csv").write_text("\n".join(["text1,text2,score", *lines, "unknown,pair,1", "one 61,two 61,"]))
    gold = read_ratings(tmp_path / "gold.csv")
    with Run.open(tmp_path / "run") as run:
        entry = score_votes(run, method="weighted", gold=gold)
        scores = run.table("scores")["score"].to_numpy()
    assert entry.tally.as_dict()["counts"]["gold"] == {"empty_cells": 1, "pairs": 60, "ratings_of_no_pair": 1}
    assert entry.key["inputs"]["gold:gold.csv"] == gold.fingerprint
    assert entry.key["settings"]["gold_scale"] == "0..5"
    assert spearmanr(scores, truth).statistic > 0.95
    assert np.abs(scores - truth).mean() < 0.06  # on gold's scale, not ranks


def test_a_runs_own_labels_are_gold_too(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        keep(run, "pairs", [pair(f"p{n}", "a", "b", label=n % 2, score=0.25 if n == 3 else None) for n in range(12)])
        keep(run, "votes", [vote(f"p{n}", "a", 10 * (n % 2) + n / 10, "relative") for n in range(12)])
        gold = run_ratings(run)
        assert gold.gold([(f"p{n}", "a", "b") for n in range(4)]) == {"p0": 0, "p1": 1, "p2": 0, "p3": 0.25}
        entry = score_votes(run, gold=gold, curve="linear")
    assert entry.tally.as_dict()["counts"]["gold"]["pairs"] == 12
    with Run.open(tmp_path / "bare") as run:
        keep(run, "pairs", [pair("p", "a", "b")])
        with pytest.raises(InputError, match="has no labelled pair"):
            run_ratings(run)


def test_gold_of_other_pairs_alone_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "run", pairs=4)
    (tmp_path / "gold.csv").write_text("text1,text2,score\nunknown,pair,1\n")
    gold = read_ratings(tmp_path / "gold.csv")
    with Run.open(tmp_path / "run") as run, pytest.raises(InputError, match="none of its 1 ratings is of a pair"):
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
    words = ["ensemble", str(tmp_path / "run"), "--method", "weighted", "--gold", str(tmp_path / "gold.csv")]
    done = CliRunner().invoke(app, [*words, "--scale", "0-5", "--curve", "linear", "--folds", "4", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["stages"][0]["settings"] == {
        "method": "weighted",
        "curve": "linear",
        "folds": 4,
        "gold_scale": "0..5",
    }
    names = [row["annotator"] for row in found["agreement"]["annotators"]]
    assert names == ["good", "fair", "noise"]
    loading = {row["annotator"]: row["loading"] for row in found["agreement"]["annotators"]}
    assert min(loading["good"], loading["fair"]) > 0.5 > loading["noise"]
    assert found["agreement"]["overall"]["pairs"] == 120
    assert not {"annotators", "agreement of all"} & found.keys()  # they stand under agreement


def test_tables_of_the_agreement_have_headers_in_words(tmp_path: Path) -> None:
    made(tmp_path / "run")
    shown = CliRunner().invoke(app, ["ensemble", str(tmp_path / "run")]).stdout
    for title in ("annotators", "Spearman between annotators", "agreement"):
        assert title in [line.strip() for line in shown.splitlines()]
    for header in ("Spearman with the others", "order gap", "length bias, Spearman", "alpha, interval", "ICC(2,1)"):
        assert header in shown
    assert "_" not in "".join(shown.splitlines()[1:])  # the first line names the folder


def test_classes_are_a_setting_and_another_method_needs_yes(tmp_path: Path) -> None:
    made(tmp_path / "run")
    words = ["ensemble", str(tmp_path / "run"), "--json"]
    assert CliRunner().invoke(app, words).exit_code == 0
    other = [*words, "--method", "dawid-skene", "--bins", "4"]
    assert CliRunner().invoke(app, other).exit_code == 2
    done = CliRunner().invoke(app, [*other, "--yes"])
    assert json.loads(done.stdout)["stages"][0]["settings"] == {"method": "dawid-skene", "bins": 4}


def test_weights_go_by_what_annotators_have_in_common_beyond_the_words_of_the_runs_pairs(tmp_path: Path) -> None:
    """Two annotators count shared words, at their own noise; the third knows better."""
    rng = np.random.default_rng(0)
    shared = rng.integers(0, 9, 300)
    texts = [" ".join(f"w{number}" for number in range(8)), ""]
    truth = shared + rng.normal(0, 3, 300)
    said = {"knows": truth + rng.normal(0, 2, 300)}
    said |= {name: truth + 2 * shared + rng.normal(0, 3, 300) for name in ("counts", "counts too")}
    rows = [vote(f"p{n}", name, float(found[n]), "relative") for name, found in said.items() for n in range(300)]
    pairs = [
        pair(f"p{n}", texts[0], " ".join([f"w{k}" for k in range(c)] + [f"v{k}" for k in range(8 - c)]))
        for n, c in enumerate(shared.tolist())
    ]
    with Run.open(tmp_path / "run") as run:
        keep(run, "pairs", pairs)
        keep(run, "votes", rows)
        entry = score_votes(run, method="weighted")
        found = run.table("scores")["score"].to_numpy()
    plain = aggregate(from_rows(rows, "votes"), method="weighted")["score"].to_numpy()
    assert spearmanr(found, truth).statistic > spearmanr(plain, truth).statistic + 0.02
    assert sorted(entry.key["inputs"]) == ["pairs", "votes"]
