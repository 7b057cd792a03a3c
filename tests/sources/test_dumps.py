import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stscurate.errors import InputError
from stscurate.records import Tally
from stscurate.sources.dumps import Issue, placeholder, read_bodies, read_issues

ISSUE = {"repository": "a/b", "number": 1, "title": "It fails"}


def read(path: Path, size: int = 100) -> tuple[list[Issue], Tally]:
    tally = Tally()
    issues = []
    for batch, counted in read_issues(path, size=size):
        issues += batch
        tally.add(counted)
    return issues, tally


def lines(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "issues.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_field_but_number_title_and_repository_may_be_missing_or_null(tmp_path: Path) -> None:
    fields = ("body", "state", "state_reason", "labels", "user", "author_association", "created_at", "closed_at")
    nulls = ISSUE | dict.fromkeys([*fields, "html_url", "comments"]) | {"number": 2}
    (bare, null), tally = read(lines(tmp_path, ISSUE, nulls))
    for issue in (bare, null):
        assert (issue.body, issue.state, issue.author, issue.comments, issue.labels) == ("", "open", "ghost", [], [])
        assert (issue.created_at, issue.url, issue.association, issue.state_reason) == (None, None, None, None)
    assert tally.as_dict() == {"rows_in": 2, "dropped": {}, "counts": {}}


def test_a_rest_issue_is_read_whole(tmp_path: Path) -> None:
    comment = {"user": {"login": "app", "type": "Bot"}, "created_at": "2024-01-02T03:04:05Z", "body": "hi"}
    row = ISSUE | {
        "body": "b",
        "state": "closed",
        "state_reason": "duplicate",
        "labels": [{"name": "bug"}, "ui"],
        "user": {"login": "jo"},
        "closed_at": "2024-01-02T04:00:00+01:00",
        "closed_by": {"login": "max"},
        "comments": [
            comment,
            comment | {"user": {"login": "x[bot]"}},
            comment | {"user": "bors"},
            comment | {"user": None},
        ],
    }
    (issue,), _ = read(lines(tmp_path, row))
    assert issue.labels == ["bug", "ui"]
    assert issue.author == "user-c278ec5a69"  # SHA-256 of "jo"
    assert issue.closings == [(placeholder("max"), datetime(2024, 1, 2, 3, tzinfo=UTC))]
    assert [c.is_bot for c in issue.comments] == [True, True, True, False]
    assert issue.comments[3].author == "ghost"
    assert issue.comments[0].at == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_placeholders_are_stable_and_hide_the_login() -> None:
    assert placeholder("octocat") == placeholder("user-a6658157f0") == "user-a6658157f0"
    assert placeholder(None) == placeholder("") == "ghost"


@pytest.mark.parametrize(
    ("fields", "repository"),
    [
        ({"repository": "a/b"}, "a/b"),
        ({"repository": {"full_name": "a/b"}}, "a/b"),
        ({"repository_url": "https://api.github.com/repos/a/b"}, "a/b"),
        ({"repository": None, "html_url": "https://github.com/a/b.js/issues/1"}, "a/b.js"),
        ({"url": "https://api.github.com/repos/a/b/issues/1"}, "a/b"),
        ({"url": "https://git.example.com/api/v3/repos/a/b/issues/1"}, "a/b"),
    ],
)
def test_the_repository_is_found_in_any_of_four_fields(tmp_path: Path, fields: dict[str, Any], repository: str) -> None:
    (issue,), _ = read(lines(tmp_path, {"number": 1, "title": "t"} | fields))
    assert issue.repository == repository


def test_a_repository_is_one_whatever_the_capitals_of_its_name(tmp_path: Path) -> None:
    names = ["Ann/Box", "ann/box", "ANN/BOX", "b/c", "B/C"]
    rows = [ISSUE | {"repository": name, "number": number, "body": "x"} for number, name in enumerate(names, 1)]
    path = lines(tmp_path, *rows, ISSUE | {"repository": "anN/boX", "number": 2})
    found, tally = read(path, size=2)
    assert [issue.repository for issue in found] == ["Ann/Box"] * 3 + ["b/c"] * 2
    assert tally.dropped == {"repeated_issue": 1}
    assert [repository for repository, _ in read_bodies(path)] == [issue.repository for issue in found]


def test_folders_of_two_backup_tools_are_read(tmp_path: Path) -> None:
    said = {"user": {"login": "jo"}, "body": "dup of #2", "author_association": "MEMBER"}
    files: dict[str, Any] = {
        "repositories/b/issues/1.json": ISSUE | {"comments": 1, "comment_data": [said]},
        "repositories/b/issues/2.json": ISSUE | {"number": 2, "comments": 0, "comment_data": []},
        "repositories/b/labels/labels.json": [{"name": "bug"}],
        "repositories/b/milestones/1.json": ISSUE | {"open_issues": 3},
        "mirror/state.json": {"version": 2},
        "repositories/b/pulls/3.json": ISSUE | {"number": 3, "head": {}, "base": {}},
        "mirror/issues/4.json": {
            "type": "issue",
            "issue": {"number": 4, "title": "t", "repository_url": "https://api.github.com/repos/c/d", "comments": 1},
            "events": [
                {"event": "labeled", "actor": {"login": "jo"}},
                {"event": "commented", "actor": {"login": "jo"}, "created_at": "2024-01-01T00:00:00Z", **said},
                {"event": "closed", "actor": {"login": "jo"}, "created_at": "2024-01-01T00:01:00Z"},
            ],
        },
        "mirror/issues/5.json": {"issue": ISSUE | {"number": 5}, "events": [], "comments": [said]},
        "mirror/pulls/6.json": {"type": "pull", "pull": {"number": 6}, "events": [], "comments": []},
        ".git/7.json": ISSUE | {"number": 7},
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    (tmp_path / "mirror" / "README.md").write_text("about")
    issues, tally = read(tmp_path, size=2)
    assert [(i.repository, i.number, [c.body for c in i.comments]) for i in issues] == [
        ("c/d", 4, ["dup of #2"]),
        ("a/b", 5, ["dup of #2"]),
        ("a/b", 1, ["dup of #2"]),
        ("a/b", 2, []),
    ]
    assert issues[0].closings == [(placeholder("jo"), datetime(2024, 1, 1, 0, 1, tzinfo=UTC))]
    assert tally.rows_in == 10
    assert tally.dropped == {"other_file": 1, "not_an_issue": 3, "pull_request": 2}


def test_pull_requests_and_repeated_issues_are_dropped_and_counted(tmp_path: Path) -> None:
    again = ISSUE | {"title": "again", "repository": "A/B"}
    issues, tally = read(lines(tmp_path, ISSUE, ISSUE | {"number": 2, "pull_request": {"url": "u"}}, again), size=1)
    assert [i.title for i in issues] == ["It fails"]
    assert tally.as_dict()["dropped"] == {"pull_request": 1, "repeated_issue": 1}
    assert tally.rows_in == 3


def test_characters_that_no_table_holds_are_replaced_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_text(r'{"repository": "a/b", "number": 1, "title": "a\ud83db", "body": "x\u0000y \ud83d\ude00"}' + "\n")
    (issue,), tally = read(path)
    assert (issue.title, issue.body) == ("a\ufffdb", "x\ufffdy 😀")
    assert tally.counts["mended"] == {"texts_with_unstorable_characters": 2}


def test_compressed_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write(json.dumps(ISSUE))
    assert [i.number for i in read(path)[0]] == [1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"repository": "a/b", "number": 1, "title": "t"}\n{"number": ', r"issues.jsonl, line 2 isn't valid JSON"),
        ('{"repository": "a/b", "title": "t"}', r"line 1 isn't an issue: its number is None"),
        ('{"repository": "a/b", "number": true, "title": "t"}', r"line 1 isn't an issue: its number is True"),
        ('{"repository": "a/b", "number": 1}', r"line 1 isn't an issue: its title is None"),
        ('{"number": 1, "title": "t"}', r"line 1 doesn't say of which repository"),
        ("\n\n7", r"line 3 holds a int"),
        ("[]", r"line 1 holds a list"),
        ("", r"has no issue in it"),
    ],
)
def test_bad_input_is_named_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read(path)


def test_bad_files_of_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="doesn't exist"):
        read(tmp_path / "none")
    with pytest.raises(InputError, match="no issue in it"):
        read(tmp_path)
    (tmp_path / "1.json").write_text('{"number": 1,\n')
    with pytest.raises(InputError, match=r"1\.json, line 2 isn't valid JSON"):
        read(tmp_path)
    (tmp_path / "1.json").write_bytes(b'{"number": "\xff"}')
    with pytest.raises(InputError, match=r"1\.json isn't UTF-8"):
        read(tmp_path)
