"""What is gone from GitHub, and who asked to be left out, stands in no byte of a run any more, and stays out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stscurate.sources.github.tombstones import Tombstones, redacted
from stscurate.sources.lists import OptOut, account_of
from tests.conftest import Command
from tests.local_github import LocalGitHub
from tests.sources.collecting import MADE, TIDEPOOL, everything, issues_of, words_in

pytestmark = pytest.mark.usefixtures("github_schema")

SECRET = "Zanzibar"  # in the texts that must go
NOBODY = "quietperson"


@pytest.fixture(params=["search", "sweep"])
def place(request: pytest.FixtureRequest, made: Any, address: LocalGitHub) -> Iterator[tuple[str, int, int]]:
    """A repository, a duplicate there and its original."""
    address.seed(made.issues, marks=made.marks)
    if request.param == "sweep":
        yield TIDEPOOL, 12, 4
    else:
        duplicate = next(duplicate for duplicate, kind in made.shown_by.items() if kind == "comment")
        yield MADE, duplicate[1], made.duplicates[duplicate][1]


@pytest.fixture
def call(command: Command, tmp_path: Path, place: tuple[str, int, int]) -> Any:
    (tmp_path / "repos.txt").write_text(place[0])

    def run(*more: object, out: str = "run") -> Any:
        arguments = ("collect-issues", "--repos", tmp_path / "repos.txt", "--out", tmp_path / out, "--json", *more)
        result = command(*arguments)
        assert result.exit_code == 0, result.stderr
        return result

    return run


@pytest.mark.parametrize("how", ["delete", "transfer", "delete the original"])
def test_what_is_gone_is_purged_by_a_refresh(
    address: LocalGitHub, place: tuple[str, int, int], call: Any, tmp_path: Path, how: str
) -> None:
    repository, duplicate, original = place
    lost = (repository, original if "original" in how else duplicate)
    address.store.edit(lost, body=f"{SECRET} " * 500, author=NOBODY)
    address.store.comment(lost, f"{SECRET} too", author=f"{NOBODY}-2")
    call()
    assert SECRET.lower() in words_in(tmp_path / "run")
    if how == "transfer":
        address.store.transfer(lost, "some/where")
    else:
        address.store.delete(lost)
    call("--refresh")
    found = words_in(tmp_path / "run")
    assert SECRET.lower() not in found
    assert NOBODY not in found
    reason = "transferred" if how == "transfer" else "deleted"
    tombstones = json.loads((tmp_path / "run" / "tombstones.json").read_text())["left_out"]
    assert tombstones == [{"repository": repository, "number": lost[1], "reason": reason}]
    call("--refresh")
    assert f"{repository}#{lost[1]}" not in issues_of(tmp_path / "run")


@pytest.mark.parametrize(
    ("how", "again"),
    [
        ("author", "--yes"),
        ("commenter", "--refresh"),
        ("closer", "--refresh"),
        ("issue", "--yes"),
    ],
)
def test_who_asks_later_to_be_left_out_is_purged(
    address: LocalGitHub, place: tuple[str, int, int], call: Any, tmp_path: Path, how: str, again: str
) -> None:
    """By the next refresh; or by --yes, which asks GitHub for nothing more."""
    repository, duplicate, _ = place
    subject = (repository, duplicate)
    match how:
        case "author" | "issue":
            address.store.edit(subject, body=f"{SECRET} again", author=NOBODY)
        case "commenter":
            address.store.comment(subject, f"{SECRET} again", author=NOBODY)
            address.store.comment(subject, "Duplicate of #1", author="another", association="MEMBER")
        case "closer":
            address.store.close(subject, actor=NOBODY, reason="duplicate")
    call()
    assert NOBODY in words_in(tmp_path / "run")
    wish = f"{repository}#{duplicate}" if how == "issue" else f"@{NOBODY.title()}"
    (tmp_path / "out.txt").write_text(wish)
    call("--opt-out", tmp_path / "out.txt", again)
    found = words_in(tmp_path / "run")
    assert NOBODY not in found
    assert SECRET.lower() not in found
    call("--opt-out", tmp_path / "out.txt", out="new")
    assert issues_of(tmp_path / "run") == issues_of(tmp_path / "new")
    assert NOBODY not in words_in(tmp_path / "new")
    before = issues_of(tmp_path / "run")
    call("--refresh")  # the file isn't named, and they stay out
    assert issues_of(tmp_path / "run") == before
    assert NOBODY not in words_in(tmp_path / "run")


def test_a_repository_that_is_left_out_goes_whole(address: LocalGitHub, command: Command, tmp_path: Path) -> None:
    address.store.edit((TIDEPOOL, 12), body=f"{SECRET} " * 500, author=NOBODY)
    (tmp_path / "repos.txt").write_text(f"{TIDEPOOL}\nquillworks-tty/inkpot\n")
    (tmp_path / "out.txt").write_text(TIDEPOOL)
    call = ("collect-issues", "--repos", tmp_path / "repos.txt", "--out", tmp_path / "run")
    assert command(*call).exit_code == 0
    assert command(*call, "--refresh", "--opt-out", tmp_path / "out.txt").exit_code == 0
    found = words_in(tmp_path / "run")
    assert SECRET.lower() not in found
    assert NOBODY not in found
    assert {row["repository"] for row in issues_of(tmp_path / "run").values()} == {"quillworks-tty/inkpot"}


def test_redaction_leaves_ids_and_takes_words() -> None:
    opt_out = OptOut(users=frozenset({"a", "helper[bot]"}), issues=frozenset({("x/y", 3)}))
    left_out = {"__typename": "User", "login": "left out"}
    home = {"nameWithOwner": "X/y"}
    mine = {"id": "I", "number": 1, "title": "T", "body": "B", "author": {"login": "A"}, "repository": home}
    assert redacted(mine, opt_out) == {"id": "I", "number": 1, "repository": home, "author": left_out}
    other = {**mine, "number": 3, "author": {"login": "b"}}
    assert redacted([other], opt_out) == [{"id": "I", "number": 3, "repository": home, "author": left_out}]
    assert redacted({**other, "number": 4}, opt_out) == {**other, "number": 4}
    comment = {"author": {"login": "a"}, "body": "B", "createdAt": "then"}
    assert redacted({"nodes": [comment, None]}, opt_out) == {
        "nodes": [{"author": left_out, "body": "", "createdAt": "then"}, None]
    }
    bot = {"actor": {"__typename": "Bot", "login": "helper"}, "createdAt": "then"}
    assert redacted(bot, opt_out) == {"actor": left_out, "createdAt": "then"}
    rest = {"number": 3, "title": "T", "repository_url": "https://api.github.com/repos/x/y", "pull_request": {"url": 1}}
    assert redacted(rest, opt_out) == {"number": 3, "pull_request": True, "author": left_out}


def test_tombstones_are_read_as_they_were_written(tmp_path: Path) -> None:
    opt_out = OptOut(frozenset({"somebody"}), frozenset({"a/b"}), frozenset({("c/d", 7)}))
    tombstones = Tombstones(opt_out, {("e/f", 8): "deleted", ("e/f", 9): "not_found"})
    tombstones.bury({("E/f", 10): "transferred"}, [("E/F", 9)])
    tombstones.write(tmp_path)
    found = Tombstones.read(tmp_path)
    assert found.gone == {("e/f", 8): "deleted", ("e/f", 10): "transferred"}
    assert found.opt_out == OptOut(
        repositories=opt_out.repositories, issues=opt_out.issues, accounts=frozenset({account_of("Somebody")})
    )
    assert found.opt_out.user("SomeBody")
    assert not found.opt_out.user("somebody2")
    assert b"somebody" not in everything(tmp_path)
