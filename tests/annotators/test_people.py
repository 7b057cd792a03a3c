from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stscurate.ratings import Rating, read_ratings
from stscurate.store import Run
from tests.conftest import Command

PAIRS = "id,text1,text2\na,A cat.,A dog.\nb,It  rains.,The sun\nc,One,Two\n"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


def annotated(command: Command, pairs: Path, folder: Path, votes: str, spec: str = "file:{}") -> list[dict[str, Any]]:
    path = folder / "votes.csv"
    path.write_text(votes)
    result = command("annotate", pairs, "--llm", spec.format(path), "--out", folder / "run")
    assert result.exit_code == 0, result.output
    return list(Run(folder / "run").table("votes").to_pylist())


def test_a_file_of_scores_by_pair_id_votes_as_one_annotator(tmp_path: Path, pairs: Path, command: Command) -> None:
    found = annotated(command, pairs, tmp_path, "pair_id,score\nb,4\na,0\nz,3\nc,\n", "me=file:{}#0-4")
    assert [(v["pair_id"], v["annotator"], v["raw"], v["scale"]) for v in found] == [
        ("a", "me", 0.0, "0..4"),
        ("b", "me", 4.0, "0..4"),
    ]
    counts = Run(tmp_path / "run").entries["votes"].tally.counts
    for what in ("ratings_of_no_pair", "empty_cells", "unrated_pairs"):
        assert counts[what] == {"me": 1}
    scores = Run(tmp_path / "run").table("scores").to_pylist()
    assert [(score["pair_id"], score["score"]) for score in scores] == [("a", 0.0), ("b", 1.0)]


def test_several_raters_in_one_column_are_annotators_of_their_own(
    tmp_path: Path, pairs: Path, command: Command
) -> None:
    rows = ("A dog.,A cat.,anna,5", "A cat.,A dog.,ben,3", "A cat.,A dog.,anna,4", "It rains.,The sun,ben,1")
    votes = "text1,text2,rater,score\n" + "\n".join(rows)
    found = annotated(command, pairs, tmp_path, votes)
    assert [(v["pair_id"], v["annotator"], v["sample"], v["raw"]) for v in found] == [
        ("a", "votes.csv:anna", 0, 5.0),
        ("a", "votes.csv:ben", 0, 3.0),
        ("a", "votes.csv:anna", 1, 4.0),
        ("b", "votes.csv:ben", 0, 1.0),
    ]
    assert {v["scale"] for v in found} == {"0..5"}  # found: the first usual one that holds all


def test_a_column_a_rater_makes_an_annotator_each_and_their_mean_none(
    tmp_path: Path, pairs: Path, command: Command
) -> None:
    found = annotated(command, pairs, tmp_path, "id,rater1,rater2,score\na,0.5,1,0.75\nb,0,,0\n")
    assert [(v["annotator"], v["raw"], v["scale"]) for v in found] == [
        ("votes.csv:rater1", 0.5, "0..1"),
        ("votes.csv:rater2", 1.0, "0..1"),
        ("votes.csv:rater1", 0.0, "0..1"),
    ]


def test_people_stand_beside_models(tmp_path: Path, pairs: Path, command: Command, tiny_model: Path) -> None:
    (tmp_path / "votes.csv").write_text("pair_id,score\na,1\nb,0\n")
    llm = ("--llm", f"file:{tmp_path / 'votes.csv'}", "--llm", f"embedding:{tiny_model}")
    call = ("annotate", pairs, *llm, "--out", tmp_path / "run")
    assert command(*call).exit_code == 0
    assert len(Run(tmp_path / "run").table("votes")) == 5
    assert "finished before" in command(*call).stdout
    (tmp_path / "votes.csv").write_text("pair_id,score\na,1\nb,1\n")
    assert command(*call).exit_code == 2  # other votes: made anew only with --yes
    assert command(*call, "--yes").exit_code == 0


def test_gold_of_a_runs_pairs_is_the_mean_of_their_ratings(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("pair_id,rater,score\na,x,1\na,y,4\nb,x,5\nz,x,2\n")
    found = read_ratings(path, scale="1-5")
    assert found.rows[0] == Rating("x", 1.0, "a", None)
    pairs = [("a", "A cat.", "A dog."), ("b", "1", "2"), ("c", "3", "4")]
    assert found.gold(pairs) == pytest.approx({"a": 1.5 / 4, "b": 1.0})
    assert found.matched(pairs)[1] == 1


def test_ids_of_another_tool_give_way_to_texts_and_exports_are_read(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("id,text1,text2,score\n17,A dog.,A cat.,5\nb,Other,Texts,1\n")
    pairs = [("a", "A cat.", "A dog."), ("b", "1", "2")]
    found, unmatched = read_ratings(path).matched(pairs)
    assert {pair_id: [row.value for row in rows] for pair_id, rows in found.items()} == {"a": [5.0], "b": [1.0]}
    assert unmatched == 0
    exported = tmp_path / "tasks.json"
    task = {"data": {"text1": "1", "text2": "2"}, "annotations": []}
    for who, number in (("anna", 3), ("ben", 4)):
        result = [{"from_name": "score", "value": {"number": number}}]
        task["annotations"].append({"completed_by": {"email": who}, "result": result})  # type: ignore[attr-defined]
    exported.write_text(json.dumps([task]))
    found, _ = read_ratings(exported).matched(pairs)
    assert [(row.rater, row.value) for row in found["b"]] == [("anna", 3.0), ("ben", 4.0)]


def test_where_id_and_texts_name_different_pairs_the_texts_count(tmp_path: Path) -> None:
    """The file numbers its own rows; texts that are no pair's, cut by a spreadsheet, leave the id in force."""
    path = tmp_path / "votes.csv"
    path.write_text("id,text1,text2,score\na,One,Two,5\nb,A dog.,A cat.,4\nc,It rai...,The sun,3\n")
    pairs = [("a", "A cat.", "A dog."), ("b", "It  rains.", "The sun"), ("c", "One", "Two")]
    found, unmatched = read_ratings(path).matched(pairs)
    assert {pair_id: [row.value for row in rows] for pair_id, rows in found.items()} == {"a": [4.0], "c": [5.0, 3.0]}
    assert unmatched == 0


@pytest.mark.parametrize("column", ["rater_id", "annotator_id", "worker_id", "rater"])
def test_ids_of_raters_name_them_also_0(tmp_path: Path, column: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"pair_id,{column},score\na,0,5\na,1,4\n")
    assert [(row.rater, row.value) for row in read_ratings(path).rows] == [("0", 5.0), ("1", 4.0)]
    rows = [{"pair_id": "a", column: 0, "score": 5}, {"pair_id": "a", column: 1, "score": 4}]
    (tmp_path / "votes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [(row.rater, row.value) for row in read_ratings(tmp_path / "votes.jsonl").rows] == [("0", 5.0), ("1", 4.0)]


@pytest.mark.parametrize("about", ["score_std", "score count", "rating_id", "vote_count", "ratings", "score_at"])
def test_what_tells_of_a_score_is_no_rating(tmp_path: Path, about: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"pair_id,score,{about}\na,4.5,2\n")
    assert [(row.rater, row.value) for row in read_ratings(path).rows] == [("", 4.5)]


@pytest.mark.parametrize(
    ("votes", "spec", "told"),
    [
        ("pair_id,score,score_llm\na,4,4\nb,1,3\n", "file:{}", "line 3: score is 1, and no mean of score_llm"),
        ("pair_id,score\na,0_5\n", "file:{}", "score holds '0_5', which is no number"),
        ("pair_id;score\na;5\n", "file:{}", "Its fields seem to be parted by ';'"),
        ("pair_id,score\na,3\n", "file:{}#3-3", "The scale 3-3 has no room between its ends"),
        ("pair_id,score\na,good\n", "file:{}", "line 2: score holds 'good', which is no number"),
        ("pair_id,score\na,7\n", "file:{}#0-5", "line 2: 7 isn't within 0 to 5"),
        ("pair_id,score\na,-7\nb,3\n", "file:{}", "numbers from -7 to 3: say on which scale"),
        ("pair_id,score\nz,3\n", "file:{}", "none of its 1 ratings is of a pair of the run"),
        ("pair_id,score\na,\n", "file:{}", "holds no number"),
        ("pair_id,note\na,3\n", "file:{}", "has no column of numbers"),
        ("score\n3\n", "file:{}", "names no pairs"),
        ("text1,text2,score\n,x,3\n", "file:{}", "line 2 names no pair"),
        ("pair_id,score\na,3\n", "file:{}x", "doesn't exist"),
        ("pair_id,score\na,3\n", "file:{}#high", "isn't a range"),
    ],
)
def test_what_is_wrong_with_a_file_of_votes_is_told(
    tmp_path: Path, pairs: Path, command: Command, votes: str, spec: str, told: str
) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(votes)
    result = command("annotate", pairs, "--llm", spec.format(path), "--out", tmp_path / "run")
    assert (result.exit_code, told in result.stderr.replace("\n", " ")) == (2, True), result.stderr
