from __future__ import annotations

import csv
import json
from math import atanh, log, sqrt, tanh
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from stscurate.cli import app
from stscurate.ensemble import aggregate, doubts, gold_sample, labels_needed, most_doubtful, write_tasks
from stscurate.errors import InputError
from stscurate.files import read_table
from stscurate.ratings import read_ratings
from stscurate.records import from_rows
from tests.ensemble.made import pair, table, vote
from tests.ensemble.test_stage import made

HARD = [
    ("p,1", 'a "quoted" text, with commas', "line one\nline two\r\nline three"),
    ("p2", "他昨天买了一本书。", "=1+1 isn't a formula; naïve café 👩‍👩‍👧"),
    ("p3", "  spaces at both ends  ", "tab\there, backslash \\ and ;"),
]


def tasks_of(folder: Path) -> list[dict[str, Any]]:
    pairs = from_rows([pair(*row) for row in HARD], "pairs")
    rows = [
        {
            "pair_id": key,
            "score": 0.1 * n,
            "spread": 0.2,
            "missing_mass": 0.0,
            "entropy": 0.0,
            "order_gap": 0.1,
            "doubt": 0.3,
        }
        for n, (key, *_) in enumerate(HARD)
    ]
    write_tasks(folder, rows, pairs)
    return rows


def test_doubt_is_spread_missing_mass_half_the_entropy_and_order_gap() -> None:
    votes = table(
        [
            vote("p", "a", 1.0, missing_mass=0.1),
            vote("p", "a", 3.0, order="ba", missing_mass=0.3),
            vote("p", "b", 4.0),
            vote("q", "a", 2.0),
            vote("q", "b", 2.0),
            vote("r", "a", 5.0),
            vote("s", "a", 2.5, entropy=log(6)),
            vote("s", "b", 2.5, entropy=0.1),
        ]
    )
    found = {row["pair_id"]: row for row in doubts(votes, aggregate(votes))}
    assert found["p"]["order_gap"] == pytest.approx(2 / 5)
    assert found["p"]["missing_mass"] == 0.3
    assert found["p"]["spread"] == pytest.approx((0.8 - 0.4) / 2)
    assert found["p"]["doubt"] == pytest.approx(0.2 + 0.3 + 0.4)
    assert (found["q"]["doubt"], found["r"]["doubt"]) == (0.0, 0.0)
    assert (found["s"]["entropy"], found["s"]["doubt"]) == (1, 0.5)  # a guess among 0, 1, ..., 5
    assert [row["pair_id"] for row in most_doubtful(list(found.values()), 3)] == ["p", "s", "q"]


def test_a_gold_sample_is_spread_over_score_and_doubt() -> None:
    rng = np.random.default_rng(0)
    scores = rng.beta(1, 8, 1000)  # nearly all unlike
    rows = [{"pair_id": str(n), "score": float(s), "doubt": float(rng.random() ** 4)} for n, s in enumerate(scores)]
    drawn = gold_sample(rows, 100, seed=1)
    assert len({row["pair_id"] for row in drawn}) == 100
    edges = np.quantile(scores, [0.2, 0.4, 0.6, 0.8])
    assert np.bincount(np.digitize([row["score"] for row in drawn], edges)).tolist() == [20] * 5
    halves = np.median([row["doubt"] for row in rows])
    assert 40 <= sum(row["doubt"] > halves for row in drawn) <= 60
    assert drawn == gold_sample(rows, 100, seed=1)
    assert drawn != gold_sample(rows, 100, seed=2)
    assert len(gold_sample(rows[:7], 100)) == 7
    assert gold_sample([], 5) == []


@pytest.mark.parametrize(("rho", "width"), [(0.8, 0.1), (0.0, 0.2), (0.95, 0.05), (0.5, 1.5)])
def test_labels_needed_is_the_least_number_whose_interval_is_narrow_enough(rho: float, width: float) -> None:
    def interval(n: int) -> float:
        half = 1.959964 * sqrt((1 + rho * rho / 2) / (n - 3))
        return tanh(atanh(rho) + half) - tanh(atanh(rho) - half)

    n = labels_needed(rho, width)
    assert interval(n) <= width
    assert n == 4 or interval(n - 1) > width


def test_labels_needed_holds_in_samples_of_known_correlation() -> None:
    """95 % of such samples lie within the interval: here, half its width from the mean of all."""
    n = labels_needed(0.8, 0.1)
    rng = np.random.default_rng(0)
    from scipy.stats import spearmanr

    found = []
    for _ in range(300):
        x = rng.standard_normal(n)
        found.append(spearmanr(x, 0.8135 * x + sqrt(1 - 0.8135**2) * rng.standard_normal(n)).statistic)
    low, high = np.percentile(found, [2.5, 97.5])
    assert high - low == pytest.approx(0.1, abs=0.02)
    with pytest.raises(InputError, match="rho between -1 and 1"):
        labels_needed(1.0, 0.1)


def test_the_spreadsheet_gives_back_every_character(tmp_path: Path) -> None:
    tasks_of(tmp_path / "tasks")
    assert (tmp_path / "tasks/pairs.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    with (tmp_path / "tasks/pairs.csv").open(newline="", encoding="utf-8-sig") as file:
        found = list(csv.DictReader(file))
    assert [(row["pair_id"], row["text1"], row["text2"]) for row in found] == HARD
    raw = read_table(tmp_path / "tasks/pairs.csv")
    assert list(zip(raw.columns["pair_id"], raw.columns["text1"], raw.columns["text2"], strict=True)) == HARD


def test_argillas_answers_come_back_by_id(tmp_path: Path) -> None:
    tasks_of(tmp_path / "tasks")
    records = json.loads((tmp_path / "tasks/argilla.json").read_text("utf-8"))
    assert [(r["id"], r["fields"]["text1"], r["fields"]["text2"]) for r in records] == HARD
    records[0]["responses"] = {"score": [{"value": 4, "user_id": "u1"}, {"value": 3.5, "user_id": "u2"}]}
    records[1]["responses"] = {"score": [{"value": 1, "user_id": "u1", "status": "discarded"}]}
    records[2]["responses"] = {"score": [{"value": "0", "user_id": "u1", "status": "submitted"}]}
    (tmp_path / "export.json").write_text(json.dumps(list(reversed(records))))
    raw = read_table(tmp_path / "export.json")
    rows = list(zip(*(raw.columns[name] for name in ("pair_id", "rater", "score", "text2")), strict=True))
    assert rows == [("p3", "u1", 0.0, HARD[2][2]), ("p,1", "u1", 4.0, HARD[0][2]), ("p,1", "u2", 3.5, HARD[0][2])]


def test_label_studios_answers_come_back_by_id(tmp_path: Path) -> None:
    tasks_of(tmp_path / "tasks")
    tasks = json.loads((tmp_path / "tasks/label_studio.json").read_text("utf-8"))
    interface = (tmp_path / "tasks/label_studio.xml").read_text()
    assert all(f"${name}" in interface for name in ("text1", "text2"))
    assert 'name="score"' in interface

    def said(value: dict[str, Any], rater: Any, cancelled: bool = False) -> dict[str, Any]:
        result = [{"from_name": "score", "to_name": "text1", "type": "number", "value": value}]
        return {"completed_by": rater, "was_cancelled": cancelled, "result": result}

    for number, task in enumerate(tasks):
        task |= {"id": 100 - number, "annotations": []}
    tasks[0]["annotations"] = [said({"number": 4.5}, 7), said({"rating": 2}, {"id": 8, "email": "b@c.example"})]
    tasks[1]["annotations"] = [said({"choices": ["3"]}, 7), said({"number": 1}, 9, cancelled=True)]
    tasks[2]["annotations"] = [{"completed_by": 7, "result": []}]
    (tmp_path / "export.json").write_text(json.dumps(tasks, ensure_ascii=False))
    raw = read_table(tmp_path / "export.json")
    rows = list(zip(*(raw.columns[name] for name in ("pair_id", "rater", "score")), strict=True))
    assert read_ratings(tmp_path / "export.json").gold([HARD[0]]) == {"p,1": pytest.approx((4.5 + 2) / 2 / 5)}
    assert rows == [("p,1", "7", 4.5), ("p,1", "b@c.example", 2.0), ("p2", "7", 3.0), ("p3", "7", None)]


def test_an_array_of_rows_is_read_as_rows_and_a_broken_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(' \n[{"text1": "a", "text2": "b"}, {"text1": "c", "score": 1}]')
    raw = read_table(path)
    assert raw.columns == {"text1": ["a", "c"], "text2": ["b", None], "score": [None, 1]}
    assert raw.place(1) == "rows.json, row 1"
    for text, wrong in {"[1]": "row 0 holds a int", "[{}": "isn't valid JSON"}.items():
        path.write_text(text)
        with pytest.raises(InputError, match=wrong):
            read_table(path)


def test_tasks_dont_go_into_a_folder_of_other_things(tmp_path: Path) -> None:
    tasks_of(tmp_path / "tasks")
    tasks_of(tmp_path / "tasks")  # again
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other things"):
        tasks_of(tmp_path / "other")
    with pytest.raises(InputError, match=r"thesis.txt is a file, and tasks are several: name a folder."):
        tasks_of(tmp_path / "other" / "thesis.txt")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.txt"]


def test_what_people_filled_in_is_never_written_over(tmp_path: Path) -> None:
    tasks_of(tmp_path / "tasks")
    path = tmp_path / "tasks" / "pairs.csv"
    (tmp_path / "tasks" / ".~lock.pairs.csv#").write_text("a spreadsheet that is open")
    tasks_of(tmp_path / "tasks")
    blank = path.read_bytes()
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    rows[1]["score"] = "0"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    filled = path.read_bytes()
    with pytest.raises(InputError, match="holds 1 label: name another folder, or move the file away"):
        tasks_of(tmp_path / "tasks")
    assert path.read_bytes() == filled
    path.write_bytes(blank.replace(b",", b";"))
    with pytest.raises(InputError, match="isn't as it was written: name another folder"):
        tasks_of(tmp_path / "tasks")


def test_a_folder_that_tasks_cannot_have_is_told_before_scores_are_made(tmp_path: Path) -> None:
    made(tmp_path / "run")
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    (tmp_path / "notes.txt").write_text("mine")
    words = ["ensemble", str(tmp_path / "run"), "--method", "median", "--yes"]
    for more, told in (
        (["--review", str(tmp_path / "notes.txt")], "notes.txt is a file"),
        (["--gold-sample", str(tmp_path)], "holds other things"),
        (["--curve", "linear"], "--curve says something of --gold alone, which isn't given"),
        (["--folds", "5"], "--folds says something of --gold alone"),
        (["--scale", "0-5"], "--scale says something of --gold alone"),
        (["--tasks", "100"], "--tasks says something of --review or --gold-sample alone"),
        (["--bins", "6"], "--bins says something of --method dawid-skene or mace alone"),
        (["--review", str(tmp_path / "t"), "--gold-sample", str(tmp_path / "t")], "a folder for each"),
    ):
        done = CliRunner().invoke(app, [*words, *more])
        assert done.exit_code == 2
        assert told in done.stderr
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_the_command_writes_both_kinds_of_tasks(tmp_path: Path) -> None:
    made(tmp_path / "run")
    words = ["ensemble", str(tmp_path / "run"), "--tasks", "30", "--json"]
    done = CliRunner().invoke(app, [*words, "--review", str(tmp_path / "r"), "--gold-sample", str(tmp_path / "g")])
    assert done.exit_code == 0, done.output
    doubtful, sample = (read_table(tmp_path / name / "pairs.csv").columns for name in "rg")
    assert len(doubtful["pair_id"]) == len(sample["pair_id"]) == 30
    assert doubtful["spread"] == sorted(doubtful["spread"], key=float, reverse=True)
    assert set(doubtful["score"]) == {None}
    told = json.loads(done.stdout)
    assert told["tasks"] == {
        "review": {"pairs": 30, "place": str(tmp_path / "r")},
        "gold_sample": {"pairs": 30, "place": str(tmp_path / "g")},
    }
    rho = np.mean([row["leave_one_out"] for row in told["agreement"]["annotators"]])
    wide, *_ = told["labels_needed"]
    assert wide == {"spearman": pytest.approx(rho), "interval_width": 0.2, "pairs": labels_needed(float(rho), 0.2)}
