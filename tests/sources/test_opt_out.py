"""Who opted out stands in no byte of a run made of GH Archive, or of a set that got its texts back."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.local_github import LocalGitHub
from tests.sources.archives import REPOSITORY, closed, commented, issue, opened, write
from tests.sources.collecting import TIDEPOOL, issues_of, words_in

pytestmark = pytest.mark.usefixtures("github_schema")

SECRET, NOBODY = "Zanzibar", "QuietPerson"  # the words that must go, and who wrote them
WISHES = {"user": f"@{NOBODY.lower()}", "issue": f"{REPOSITORY}#2", "repository": "saltmarsh/egret"}


def hours(folder: Path) -> Path:
    """2 and 3 are duplicates of 1, and so says somebody else; the rest is written, said and closed by the subject."""
    of: dict[str, Any] = {"body": f"{SECRET} body", "title": f"{SECRET} title", "user": {"login": NOBODY}}
    elsewhere = {"repo": {"id": 5, "name": "saltmarsh/egret"}}
    write(
        folder / "2015-01-01-15.json.gz",
        opened(1),
        opened(2, **of),
        commented(2, "Duplicate of #1", of=of, key=1),
        commented(3, "Duplicate of #1", key=2),
        commented(3, f"{SECRET}, a dup of #1", by=NOBODY, key=3),
        closed(3, at="2015-01-01T16:01:00Z", by=NOBODY),
        opened(1, **of) | elsewhere,
        commented(4, f"Duplicate of #1 {SECRET}", by=NOBODY, key=4) | elsewhere,
        *(opened(number) for number in range(20, 26)),
    )
    return folder


def seed(hub: LocalGitHub) -> None:
    """The same as GitHub has it now."""
    own = {"user": NOBODY, "title": f"{SECRET} title", "body": f"{SECRET} body"}
    said = [comment("Duplicate of #1"), comment(f"{SECRET}, a dup of #1", NOBODY)]
    rows = [row(1), row(2, said[:1]) | own, row(3, said), *map(row, range(20, 26))]
    away = {"repository": "saltmarsh/egret"}
    hub.seed([*rows, row(1) | own | away, row(4, [comment(f"Duplicate of #1 {SECRET}", NOBODY)]) | away])
    hub.store.close((REPOSITORY, 3), actor=NOBODY)


def row(number: int, comments: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    changes = {"labels": ["bug"], "user": "wader", "comments": comments or [], "repository": REPOSITORY}
    return issue(number) | changes


def comment(body: str, user: str = "keeper") -> dict[str, Any]:
    return {"user": user, "author_association": "MEMBER", "created_at": "2015-01-01T16:00:00Z", "body": body}


@pytest.mark.parametrize("hydrate", [False, True])
@pytest.mark.parametrize("when", ["at first", "later"])
def test_a_run_of_the_archive_holds_nothing_of_those_who_opted_out(
    address: LocalGitHub, command: Command, tmp_path: Path, hydrate: bool, when: str
) -> None:
    """At once, or in a run that held them; then also where the file isn't named any more."""
    seed(address)
    (tmp_path / "out.txt").write_text("\n".join(WISHES.values()))
    call = ["collect-issues", "--from", hours(tmp_path / "hours"), "--out", tmp_path / "run", "--workers", 1]
    call += ["--hydrate"] * hydrate
    if when == "later":
        assert command(*call).exit_code == 0
        assert {f"{REPOSITORY}#2", "saltmarsh/egret#1"} <= issues_of(tmp_path / "run").keys()
        assert SECRET.lower() in words_in(tmp_path / "run")
        assert (NOBODY.lower() in words_in(tmp_path / "run")) == hydrate  # the archive's logins aren't kept
    assert command(*call, "--opt-out", tmp_path / "out.txt", "--yes").exit_code == 0
    for again in ([], ["--refresh"] if hydrate else ["--yes"]):
        assert command(*call, *again).exit_code == 0
        found = words_in(tmp_path / "run")
        assert (SECRET.lower() in found, NOBODY.lower() in found) == (False, False)
        rows = issues_of(tmp_path / "run")
        assert {f"{REPOSITORY}#1", f"{REPOSITORY}#3"} <= rows.keys()
        assert not {f"{REPOSITORY}#2", "saltmarsh/egret#1", "saltmarsh/egret#4"} & rows.keys()


@pytest.mark.parametrize("wish", WISHES)
def test_what_the_archive_does_not_show_to_be_left_out_github_does(
    address: LocalGitHub, command: Command, tmp_path: Path, wish: str
) -> None:
    """Another author than the archive's, a comment since, a repository's new name."""
    seed(address)
    address.store.comment((REPOSITORY, 3), f"{SECRET} since", author=NOBODY)
    address.store.edit((REPOSITORY, 21), body=f"{SECRET} since", author=NOBODY)
    address.store.rename("saltmarsh/egret", "saltmarsh/ibis")
    lines = WISHES | {"issue": f"{REPOSITORY}#21", "repository": "saltmarsh/ibis"}
    (tmp_path / "out.txt").write_text(lines[wish])
    quiet = write(
        tmp_path / "hours" / "2015-01-01-15.json.gz",
        opened(1),
        commented(3, "Duplicate of #1"),
        commented(3, "Duplicate of saltmarsh/egret#1", key=2),
        *(opened(number) for number in range(20, 26)),
    )
    call = ("collect-issues", "--from", quiet, "--out", tmp_path / "run", "--hydrate", "--negatives", 9)
    assert command(*call, "--opt-out", tmp_path / "out.txt").exit_code == 0
    found, rows = words_in(tmp_path / "run"), issues_of(tmp_path / "run")
    assert (f"{REPOSITORY}#21" in rows) == (wish == "repository")
    assert ("saltmarsh/ibis#1" in rows) == (wish == "issue")
    if wish == "user":
        assert (SECRET.lower() in found, NOBODY.lower() in found) == (False, False)


@pytest.mark.parametrize("when", ["at first", "later"])
def test_a_set_gets_no_text_back_of_those_who_opted_out(
    sample_issues: Path, address: LocalGitHub, command: Command, tmp_path: Path, when: str
) -> None:
    assert command("collect-issues", "--from", sample_issues, "--out", tmp_path / "made").exit_code == 0
    publish = ("publish", tmp_path / "made", "--to", tmp_path / "set", "--licence", "apache-2.0")
    assert command(*publish).exit_code == 0
    issues = {name for row in ids(tmp_path / "set") for name in row}
    mine = [f"{TIDEPOOL}#2", f"{TIDEPOOL}#17"]
    assert {*mine, "quillworks-tty/inkpot#12"} <= issues
    address.store.edit((TIDEPOOL, 2), body=f"{SECRET} body", author=NOBODY)
    for place in ((TIDEPOOL, 17), ("quillworks-tty/inkpot", 12)):
        address.store.edit(place, body=f"{SECRET} body")
    (tmp_path / "out.txt").write_text(f"@{NOBODY}\n{mine[1]}\nquillworks-tty/inkpot\n")
    call = ("rehydrate", tmp_path / "set", "--out", tmp_path / "run", "--json")
    if when == "later":
        assert command(*call).exit_code == 0
        assert SECRET.lower() in words_in(tmp_path / "run")
    first = command(*call, "--opt-out", tmp_path / "out.txt", "--yes")
    assert first.exit_code == 0
    left_out = sum(name in mine or name.startswith("quillworks-tty/") for name in issues)
    assert json.loads(first.stdout)["stages"][0]["dropped"] == {"opted_out": left_out}
    for again in ([], ["--yes"]):
        assert command(*call, *again).exit_code == 0
        found = words_in(tmp_path / "run")
        assert (SECRET.lower() in found, NOBODY.lower() in found) == (False, False)
        rows = issues_of(tmp_path / "run")
        assert len(rows) == len(issues) - left_out
    refused = command(*call, "--from", sample_issues)
    assert (refused.exit_code, "take them from GitHub" in refused.stderr) == (2, True)


def test_a_dump_leaves_issues_and_repositories_out_and_knows_no_users(
    sample_issues: Path, command: Command, tmp_path: Path
) -> None:
    assert command("collect-issues", "--from", sample_issues, "--out", tmp_path / "made").exit_code == 0
    publish = ("publish", tmp_path / "made", "--to", tmp_path / "set", "--licence", "apache-2.0")
    assert command(*publish).exit_code == 0
    (tmp_path / "out.txt").write_text(f"{TIDEPOOL}#2\nquillworks-tty/inkpot")
    call = ("rehydrate", tmp_path / "set", "--from", sample_issues, "--out", tmp_path / "run", "--opt-out")
    assert command(*call, tmp_path / "out.txt").exit_code == 0
    left = issues_of(tmp_path / "run")
    wanted = {name for row in ids(tmp_path / "set") for name in row}
    assert left.keys() == {
        name for name in wanted if name != f"{TIDEPOOL}#2" and not name.startswith("quillworks-tty/inkpot#")
    }
    (tmp_path / "out.txt").write_text("@somebody")
    result = command(*call, tmp_path / "out.txt", "--yes")
    assert (result.exit_code, "take them from GitHub" in result.stderr) == (2, True)


def ids(folder: Path) -> list[tuple[str, str]]:
    import pyarrow.parquet as pq

    rows = [row for path in folder.glob("data/ids/*.parquet") for row in pq.read_table(path).to_pylist()]
    return [(row["id1"], row["id2"]) for row in rows]
