"""What differs between two runs, against plain dictionaries and by hand."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stscurate.diffing import diff_runs
from stscurate.disk import fingerprint
from stscurate.records import Tally, from_rows
from stscurate.store import Run
from tests.conftest import Command
from tests.pairing.made import issue, link
from tests.publishing.samples import pair

Rows = list[dict[str, Any]]


def write(folder: Path, *, settings: dict[str, Any] | None = None, shard: int = 100, **tables: Rows) -> Run:
    """A run with these tables, each of a stage of its own."""
    with Run.open(folder) as run:
        for name, rows in tables.items():
            tally = Tally(dropped=Counter(too_short=len(rows)))
            stage = run.stage(name, tables=[name], inputs={}, settings=settings or {})
            for at, start in enumerate(range(0, max(len(rows), 1), shard)):
                part = from_rows(rows[start : start + shard], name)
                stage.write(at, {name: part}, tally if at == 0 else Tally())
            stage.commit()
    return Run(folder)


def test_a_run_is_equal_to_itself_and_to_its_copy_in_other_shards(tmp_path: Path) -> None:
    rows = [issue(n) for n in range(1, 8)]
    one = write(tmp_path / "one", issues=rows)
    other = write(tmp_path / "other", issues=rows, shard=2)
    assert diff_runs(one, one).equal
    found = diff_runs(one, other)
    assert found.equal
    assert one.fingerprint("issues") != other.fingerprint("issues")
    assert found.tables[0].rows == (7, 7)


def test_issues_are_compared_by_repository_and_number(tmp_path: Path) -> None:
    old = [issue(1), issue(2, labels=["a"]), issue(3), issue(4)]
    new = [
        issue(5),
        issue(4) | {"repository": "O/R"},  # the same to GitHub
        issue(2, labels=["b"], state="open", state_reason="reopened", clean_text="Other words now."),
        issue(1),
    ]
    found = diff_runs(
        write(tmp_path / "old", issues=old, settings={"source": "a", "moved": {}}),
        write(tmp_path / "new", issues=new, settings={"source": "b", "moved": {}}),
    )
    (table,) = found.tables
    assert (table.rows, table.added, table.gone, table.changed) == ((4, 4), 1, 1, 2)
    assert table.changed_in == {"repository": 1, "labels": 1, "state": 1, "text": 1}
    assert [(row["what"], row["row"]) for row in table.examples] == [
        ("added", "o/r#5"),
        ("gone", "o/r#3"),
        ("changed", "O/R#4"),
        ("changed", "o/r#2"),
    ]
    assert table.examples[3]["labels"] == [["a"], ["b"]]
    assert table.examples[3]["state"] == ["closed", "open"]
    assert found.stages == [{"stage": "issues", "what": "setting source", "first": "a", "second": "b"}]


def test_splits_moved_and_scores_changed_are_told_with_their_size(tmp_path: Path) -> None:
    ids = {"id1": "o/r#1", "id2": "o/r#2"}
    old = [pair("p", "a", "b", split="train", label=1, **ids), pair("q", "c", "d", score=0.5, split="train")]
    new = [pair("r", "a2", "b", split="test", label=1, **ids), pair("q", "c", "d", score=0.75, split="train")]
    score: dict[str, Any] = {"spread": None, "annotators": 1, "agreement": None, "method": "mean"}
    scores = [[{"pair_id": name, "score": value, **score} for name, value in zip("pq", values, strict=True)]
              for values in ((0.1, 0.2), (0.2, 0.5))]  # fmt: skip
    found = diff_runs(
        write(tmp_path / "old", pairs=old, scores=scores[0]), write(tmp_path / "new", pairs=new, scores=scores[1])
    )
    pairs, by_score = found.tables
    assert (pairs.added, pairs.gone, pairs.changed) == (0, 0, 2)
    assert pairs.moves == {"split: train -> test": 1}
    assert pairs.sizes == {"score": {"mean": 0.25, "most": 0.25}}
    assert pairs.changed_in == {"pair_id": 1, "text1": 1, "split": 1, "score": 1}
    assert by_score.sizes["score"] == pytest.approx({"mean": 0.2, "most": 0.3})


def test_random_runs_against_plain_dictionaries(tmp_path: Path) -> None:
    for seed in range(5):
        generator = random.Random(seed)
        old = [link(n, generator.randrange(500, 520)) for n in range(1, 120)]
        new = [row | {"tier": generator.choice([row["tier"], 2])} for row in old if generator.random() < 0.8]
        new += [link(n, 1) for n in range(200, 200 + generator.randrange(20))]
        generator.shuffle(new)
        runs = (write(tmp_path / f"old{seed}", links=old, shard=17), write(tmp_path / f"new{seed}", links=new))
        (table,) = diff_runs(*runs, rows=1_000).tables
        plain = [{(row["duplicate"], row["canonical"]): row for row in rows} for rows in (old, new)]
        both = plain[0].keys() & plain[1].keys()
        assert table.added == len(plain[1].keys() - both)
        assert table.gone == len(plain[0].keys() - both)
        assert table.changed == sum(plain[0][key] != plain[1][key] for key in both)
        assert len(table.examples) == table.added + table.gone + table.changed
        assert table.moves == ({"tier: 1 -> 2": table.changed} if table.changed else {})


def test_rows_with_the_same_key_are_counted_one_by_one(tmp_path: Path) -> None:
    old, new = [link(1, 2), link(1, 2, tier=2)], [link(1, 2), link(1, 2, tier=2), link(1, 2, tier=3)]
    (table,) = diff_runs(write(tmp_path / "old", links=old), write(tmp_path / "new", links=new)).tables
    assert (table.added, table.gone, table.changed) == (1, 0, 0)


def test_tables_and_stages_that_one_run_lacks_are_added_and_gone(tmp_path: Path) -> None:
    old = write(tmp_path / "old", issues=[issue(1)])
    new = write(tmp_path / "new", links=[link(1, 2)])
    found = diff_runs(old, new)
    assert [(table.table, table.added, table.gone) for table in found.tables] == [("issues", 0, 1), ("links", 1, 0)]
    assert [(row["stage"], row["first"], row["second"]) for row in found.stages] == [
        ("issues", True, False),
        ("links", False, True),
    ]


def test_what_was_dropped_and_by_which_version_counts_too(tmp_path: Path) -> None:
    old = write(tmp_path / "old", issues=[issue(1)])
    new = write(tmp_path / "new", issues=[issue(1), issue(2)])
    manifest = tmp_path / "new" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"numpy": "', '"numpy": "9.'))
    whats = [row["what"] for row in diff_runs(old, new).stages]
    assert whats == ["version numpy", "dropped too_short"]


def test_the_command_counts_first_and_fails_only_if_told(command: Command, tmp_path: Path) -> None:
    write(tmp_path / "old", issues=[issue(n) for n in range(1, 10)])
    write(tmp_path / "new", issues=[issue(n, title="New\ntitle") for n in range(1, 9)])
    call = ("diff", tmp_path / "old", tmp_path / "new")
    result = command(*call, "--rows", 2)
    assert result.exit_code == 0
    assert "issues, rows changed in: title 8" in result.stdout
    assert result.stdout.count("title: t -> New title") == 2
    found = json.loads(command(*call, "--json").stdout)
    assert (found["equal"], found["tables"][0]["changed"], found["tables"][0]["gone"]) == (False, 8, 1)
    assert found["tables"][0]["examples"][1]["title"] == ["t", "New\ntitle"]
    failed = command(*call, "--fail")
    assert (failed.exit_code, "differs from" in failed.stderr) == (1, True)
    same = command("diff", tmp_path / "old", tmp_path / "old", "--fail")
    assert (same.exit_code, "The runs hold the same" in same.stdout) == (0, True)


def test_what_is_no_run_or_was_changed_is_refused(command: Command, tmp_path: Path) -> None:
    write(tmp_path / "run", issues=[issue(1)])
    write(tmp_path / "other", issues=[issue(2)])
    for path in (tmp_path, tmp_path / "nowhere"):
        result = command("diff", tmp_path / "run", path)
        assert (result.exit_code, f"{path} isn't a run" in result.stderr) == (2, True)
    (tmp_path / "run" / "issues" / "00000.parquet").write_bytes(b"")
    result = command("diff", tmp_path / "run", tmp_path / "other")
    assert (result.exit_code, "isn't as it was made" in result.stderr) == (2, True)


def test_runs_of_another_version_are_compared_by_the_columns_they_share(tmp_path: Path) -> None:
    write(tmp_path / "old", issues=[issue(1), issue(2)])
    write(tmp_path / "new", issues=[issue(1), issue(3)])
    path = tmp_path / "old" / "issues" / "00000.parquet"
    before = fingerprint(path.parent)
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns("mentions"), path)
    manifest = tmp_path / "old" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(before, fingerprint(path.parent)))
    found = diff_runs(Run(tmp_path / "old"), Run(tmp_path / "new"))
    (table,) = found.tables
    assert (table.columns, table.changed, table.added, table.gone) == (["mentions"], 0, 1, 1)
    assert not found.equal


def test_hashes_are_cut_short_for_people_alone(command: Command, tmp_path: Path) -> None:
    write(tmp_path / "old", settings={"model": "ab" * 32, "whole": True}, issues=[issue(1)])
    write(tmp_path / "new", settings={"model": "cd" * 32, "whole": False}, issues=[issue(1)])
    shown = command("diff", tmp_path / "old", tmp_path / "new").stdout
    assert [line.split() for line in shown.splitlines() if " setting " in line] == [
        ["issues", "setting", "model", "abababababab...", "cdcdcdcdcdcd..."],
        ["issues", "setting", "whole", "yes", "no"],
    ]
    found = json.loads(command("diff", tmp_path / "old", tmp_path / "new", "--json").stdout)
    assert [(row["first"], row["second"]) for row in found["stages"]] == [("ab" * 32, "cd" * 32), (True, False)]
