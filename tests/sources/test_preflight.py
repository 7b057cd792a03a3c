"""A list of repositories checked against what a local GitHub has, and mended by its reserves."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stscurate.sources.lists import read_repositories
from tests.conftest import Command
from tests.local_github import LocalGitHub
from tests.local_github.invented import make_repository

pytestmark = pytest.mark.usefixtures("github_schema")


def table(name: str, licence: str = "MIT", **more: Any) -> str:
    given = {"name": name, "licence": licence, "duplicate_labels": ["duplicate"], "why": 'A "why", 为什么.', **more}
    return "\n".join(["[[repository]]", *(f"{key} = {json.dumps(value)}" for key, value in given.items())]) + "\n"


@pytest.fixture(scope="module")
def large() -> list[Any]:
    """Repositories of 1,500 issues, 150 of them duplicates or so."""
    return [make_repository(f"big/r{n}", issues=1_500, duplicate_rate=0.1, seed=n) for n in range(4)]


@pytest.fixture
def hub(large: list[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalGitHub]:
    with LocalGitHub() as hub:
        hub.store.add_repository("big/r0", licence="MIT")
        hub.store.add_repository("big/r2", licence="NOASSERTION")
        hub.store.add_repository("big/r3", licence=None)
        for made in large:
            hub.seed(made.issues, marks=made.marks)
        hub.store.rename("big/r1", "big/renamed")
        hub.store.repositories["big/r3"].archived = True
        hub.store.add_repository("small/quiet", has_issues=False)
        small = make_repository("small/few", issues=60, duplicate_rate=0.3)
        hub.seed(small.issues, marks=small.marks)
        monkeypatch.setenv("GITHUB_API_URL", hub.url)
        monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret0secret0")
        yield hub


def checked(command: Command, folder: Path, *tables: str, **options: str) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "list.toml").write_text("\n".join(tables))
    more = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    call = ("collect-issues", "--repos", folder / "list.toml", "--out", folder / "run", "--preflight", *more)
    result = command(*call, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_reserves_take_the_places_of_those_that_drop_out_in_their_order(
    hub: LocalGitHub, command: Command, tmp_path: Path, large: list[Any]
) -> None:
    found = checked(
        command,
        tmp_path,
        table("small/few"),
        table("big/r0", domain="editor"),
        table("nobody/nowhere"),
        table("small/quiet"),
        table("big/r3"),
        table("nobody/reserve", reserve=True),
        table("big/r2", reserve=True),
        table("big/r1", reserve=True),
    )
    few = found["repositories"][0]["pairs"]
    assert 0 < few < 100
    assert found["replaced"] == [
        {"out": "small/few", "reason": f"{few} pairs", "in": "big/r2"},
        {"out": "nobody/nowhere", "reason": "not there", "in": "big/r1"},
    ]
    assert found["without_reserve"] == [
        {"out": "small/quiet", "reason": "has no issues"},
        {"out": "big/r3", "reason": "archived"},
    ]
    assert found["kept"] == ["big/r2", "big/r0", "big/r1"]
    rows = {row["repository"]: row for row in found["repositories"]}
    assert rows["big/r1"]["now"] == "big/renamed"
    for name, made in (("big/r0", large[0]), ("big/r1", large[1])):
        truth = len(made.duplicates)
        assert abs(rows[name]["pairs"] - truth) < 0.25 * truth  # an estimate: a tenth can't be searched for
        assert rows[name]["issues"] == 1_500
    licences = {name: (row["licence"], row["of the list"]) for name, row in rows.items()}
    assert licences["big/r0"] == ("MIT", "MIT")
    assert licences["big/r1"] == ("Apache-2.0", "MIT (differs)")
    assert licences["big/r2"] == ("-", "MIT")  # GitHub can't name it
    written = tomllib.loads(Path(found["list"]).read_text())["repository"]
    given = {row["name"]: row for row in tomllib.loads((tmp_path / "list.toml").read_text())["repository"]}
    assert written == [{k: v for k, v in given[name].items() if k != "reserve"} for name in found["kept"]]
    assert [listed.name for listed in read_repositories(Path(found["list"]))] == found["kept"]


def test_one_counting_query_each_and_none_twice(hub: LocalGitHub, command: Command, tmp_path: Path) -> None:
    tables = (table("big/r0"), table("big/r1"), table("nobody/nowhere"), table("small/few", reserve=True))
    first = checked(command, tmp_path, *tables)
    assert hub.requests() == 1 + 3  # what they are, and one each of those that are there
    assert checked(command, tmp_path, *tables) == first
    assert hub.requests() == 4
    call = ("collect-issues", "--repos", first["list"], "--out", tmp_path / "run", "--dry-run", "--json")
    planned = json.loads(command(*call).stdout)
    assert [row["repository"] for row in planned["asks"]] == ["big/r0", "big/renamed"]


def test_what_drops_out_is_told_to_people(hub: LocalGitHub, command: Command, tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text("\n".join([table("big/r0"), table("small/few"), table("big/r3")]))
    (tmp_path / "out.txt").write_text("big/r0\n")
    call = ("collect-issues", "--repos", tmp_path / "list.toml", "--out", tmp_path / "run", "--preflight")
    shown = command(*call).stdout
    assert "big/r3 drops out (archived), and no reserve is left to take its place." in shown
    assert "The reserves have run out: 1 of 3 repositories remain. Add tables with reserve = true" in shown
    refused = command(*call, "--opt-out", tmp_path / "out.txt")
    assert (refused.exit_code, "big/r0 drops out (opted out)" in refused.stdout) == (2, True)
    assert "No repository of" in refused.stderr
    lines = command(*call[:2], tmp_path / "run" / "repositories.toml", *call[3:])
    assert (lines.exit_code, "would be overwritten" in lines.stderr) == (2, True)


def test_names_alone_are_a_list_too_and_one_repository_counts_once(
    hub: LocalGitHub, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "names.txt").write_text("https://github.com/big/r1\nbig/renamed\nbig/r0\n")
    call = ("collect-issues", "--repos", tmp_path / "names.txt", "--out", tmp_path / "run", "--preflight", "--json")
    found = json.loads(command(*call).stdout)
    assert found["kept"] == ["big/r1", "big/r0"]
    assert found["without_reserve"] == [{"out": "big/renamed", "reason": "the same as big/r1"}]
    assert read_repositories(Path(found["list"]))[0].name == "big/r1"
