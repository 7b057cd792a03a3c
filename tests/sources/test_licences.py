"""The licence of a repository's code, from the lists and from GitHub, and on the rows of pairs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from stscurate.records import Tally, from_rows
from stscurate.sources import note_licences
from stscurate.sources.lists import Listed
from stscurate.store import Run
from tests.conftest import Command
from tests.local_github import LocalGitHub
from tests.pairing.made import issue, link, paired
from tests.sources.collecting import INKPOT, TIDEPOOL


def with_issues(run: Run, *repositories: str) -> None:
    stage = run.stage("issues", tables=["issues", "links"], inputs={}, settings={})
    issues = [issue(n, repository=name) for name in repositories for n in (1, 2, 3, 4)]
    links = [link(f"{name}#2", f"{name}#1") for name in repositories]
    links.append(link(f"{repositories[0]}#3", f"{repositories[-1]}#3"))
    stage.write(0, {"issues": from_rows(issues, "issues"), "links": from_rows(links, "links")}, Tally())
    stage.commit()


def test_the_users_list_goes_before_the_packages_and_github_is_asked_for_the_rest(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(names: Sequence[str]) -> dict[str, str | None]:
        asked.extend(names)
        return {"un/known": "ISC", "un/named": None}

    listed = [Listed("Mine/One", (), "CC0-1.0"), Listed("golang/go", (), "MIT"), Listed("un/known", ())]
    with Run.open(tmp_path / "run") as run:
        with_issues(run, "mine/one", "golang/go", "rust-lang/rust", "un/known", "un/named")
        entry = note_licences(run, listed=listed, ask=ask)
        rows = [tuple(row.values()) for row in run.table("repositories").to_pylist()]
        assert not note_licences(run, listed=listed, ask=ask).fresh
    assert rows == [
        ("golang/go", "MIT", "list"),
        ("mine/one", "CC0-1.0", "list"),
        ("rust-lang/rust", "Apache-2.0 OR MIT", "list"),
        ("un/known", "ISC", "github"),
        ("un/named", None, None),
    ]
    assert asked == ["un/known", "un/named"]
    assert entry.tally.counts == {"licence_from": {"list": 3, "github": 1, "unknown": 1}}


def test_each_pair_names_the_licences_of_its_repositories(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        with_issues(run, "rust-lang/rust", "un/known", "golang/go")
        note_licences(run)
    _, rows = paired(tmp_path / "run", [], [])
    found = {(row["id1"], row["id2"]): row["licence"] for row in rows if row["label"] == 1}
    assert found == {
        ("rust-lang/rust#1", "rust-lang/rust#2"): "Apache-2.0 OR MIT",
        ("golang/go#1", "golang/go#2"): "BSD-3-Clause",
        ("un/known#1", "un/known#2"): None,
        ("golang/go#3", "rust-lang/rust#3"): "(Apache-2.0 OR MIT) AND BSD-3-Clause",
    }


@pytest.mark.usefixtures("github_schema")
def test_a_collection_asks_github_once_for_the_licences(
    address: LocalGitHub, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address.store.repository(TIDEPOOL).licence = "MPL-2.0"  # type: ignore[union-attr]
    address.store.repository(INKPOT).licence = None  # type: ignore[union-attr]
    (tmp_path / "repos.txt").write_text(f"{TIDEPOOL}\n{INKPOT}\n")
    call = ("collect-issues", "--repos", tmp_path / "repos.txt", "--out", tmp_path / "run")
    assert command(*call).exit_code == 0
    pairs = Run(tmp_path / "run").table("pairs").to_pylist()
    assert {(row["repository"], row["licence"]) for row in pairs} == {(TIDEPOOL, "MPL-2.0"), (INKPOT, None)}
    sent = address.requests()
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("PATH", "")
    assert command(*call).exit_code == 0
    assert address.requests() == sent
