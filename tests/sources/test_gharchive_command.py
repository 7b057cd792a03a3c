"""The command that reads hours of GH Archive: pairs in the end, mistakes in one line."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.sources.archives import hours

Rows = dict[int, dict[str, Any]]


def test_the_command_reads_hours_and_makes_pairs(command: Command, tmp_path: Path) -> None:
    source = hours(tmp_path / "hours")
    call = ("collect-issues", "--from", source, "--out", tmp_path / "run", "--workers", 1)
    stages = json.loads(command(*call, "--json").stdout)["stages"]
    assert [stage["stage"] for stage in stages] == ["archive", "issues", "repositories", "pairs"]
    assert stages[-1]["outputs"]["pairs"]["rows"] > 0
    assert command(*call, "--format", "dump").exit_code == 2
    (tmp_path / "out.txt").write_text("@wader\n")
    (tmp_path / "repos.txt").write_text("quiet/place\n")
    other = ("collect-issues", "--from", source, "--out", tmp_path / "run2", "--format", "gharchive", "--workers", 1)
    options = ("--opt-out", tmp_path / "out.txt", "--repos", tmp_path / "repos.txt", "--json")
    found = json.loads(command(*other, *options).stdout)
    assert found["stages"][0]["dropped"] == {"not_listed": 8, "opted_out": 1}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--from", "HOURS", "--dry-run"), "GitHub alone"),
        (("--from", "HOURS", "--refresh"), "--hydrate"),
        (("--from", "SAMPLE", "--hydrate"), "for GH Archive"),
        (("--from", "SAMPLE", "--workers", "2"), "for GH Archive"),
        (("--from", "NONE", "--format", "gharchive"), "doesn't exist"),
        (("--from", "SAMPLE", "--format", "gharchive"), "isn't GH Archive"),
    ],
)
def test_mistakes_are_explained_in_one_line(
    command: Command, tmp_path: Path, sample_issues: Path, arguments: tuple[str, ...], told: str
) -> None:
    places = {"HOURS": hours(tmp_path / "hours"), "SAMPLE": sample_issues, "NONE": tmp_path / "none"}
    result = command("collect-issues", *(places.get(word, word) for word in arguments), "--out", tmp_path / "run")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert told in result.stderr


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.xz", "7.json", "sub/8.json"])
def test_a_folder_with_hours_and_dumps_is_refused(command: Command, tmp_path: Path, name: str) -> None:
    """Whichever comes first; the pretty-printed file of a backup tool too."""
    source = hours(tmp_path / "source")
    path = source / name
    path.parent.mkdir(exist_ok=True)
    row = json.dumps({"repository": "a/b", "number": 1, "title": "T"}, indent=2 if name.endswith("json") else None)
    path.write_bytes(lzma.compress(row.encode()) if name.endswith("xz") else row.encode())
    call = ("collect-issues", "--from", source, "--out", tmp_path / "run")
    result = command(*call)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f"(2015-01-01-15.json.gz) and dumps of issues ({path.name}): give each a folder" in result.stderr
    path.write_text('{"checksums": {}}' if name.endswith("json") else "")  # neither
    assert command(*call, "--workers", 1).exit_code == 0


@pytest.mark.parametrize("option", [("--format", "archive"), ("--workers", "0")])
def test_a_value_that_no_option_takes_is_a_mistake(command: Command, tmp_path: Path, option: tuple[str, str]) -> None:
    result = command("collect-issues", "--from", hours(tmp_path / "hours"), "--out", tmp_path / "run", *option)
    assert (result.exit_code, option[0] in result.stderr, (tmp_path / "run").exists()) == (2, True, False)
