"""What GH Archive gave, confirmed by GitHub: here a local one that answers by GitHub's schema."""

import json
from pathlib import Path
from typing import Any

import pytest

from stscurate.services.answers import Answers
from stscurate.sources.gharchive import collect_from_archive, read_archive
from stscurate.store import Run
from tests.conftest import Command
from tests.local_github import LocalGitHub
from tests.local_github.limits import FakeClock
from tests.sources.archives import REPOSITORY, closed, commented, issue, opened, write
from tests.sources.collecting import client, issues_of, links_of

pytestmark = pytest.mark.usefixtures("github_schema")


def hours(folder: Path) -> Path:
    """Duplicates 2 to 6 of 1, one original (9) that no event shows, and six others."""
    write(
        folder / "2015-01-01-15.json.gz",
        opened(1),
        *(commented(number, "Duplicate of #1", key=number) for number in (2, 3, 4, 5)),
        commented(6, "Duplicate of #9", key=6),
        *(opened(number) for number in range(20, 26)),
        closed(26, at="2015-01-01T15:30:00Z", labels=[{"name": "Duplicate"}]),  # by its label alone
        commented(7, "Duplicate of #1", key=7) | {"repo": {"id": 4, "name": "saltmarsh/gone"}},
    )
    return folder


def row(number: int, *comments: str, association: str = "MEMBER") -> dict[str, Any]:
    said = [
        {"user": "keeper", "author_association": association, "created_at": "2015-01-01T16:00:00Z", "body": body}
        for body in comments
    ]
    plain = {
        "labels": ["bug"],
        "user": "wader",
        "comments": said,
        "repository": REPOSITORY,
        "title": f"Today's title {number}",
    }
    return issue(number) | plain


@pytest.fixture
def today() -> Any:
    """GitHub now: 3 was edited so that nothing is said any more, 4 deleted, 5 moved away."""
    with LocalGitHub(clock=FakeClock()) as hub:
        numbers = dict.fromkeys((2, 4, 5), "Duplicate of #1") | {6: "Duplicate of #9"}
        hub.seed([row(number, said) for number, said in numbers.items()])
        hub.seed([row(number) for number in (1, 3, 9, *range(20, 27))], marks={(REPOSITORY, 26): (REPOSITORY, 1)})
        hub.store.delete((REPOSITORY, 4))
        hub.store.transfer((REPOSITORY, 5), "saltmarsh/egret")
        yield hub


def hydrated(hub: LocalGitHub, folder: Path, source: Path, **options: Any) -> Any:
    with Run.open(folder) as run, Answers(folder / "answers.sqlite") as answers, client(hub, answers) as github:
        read_archive(run, source, workers=1)
        return collect_from_archive(run, github=github, **options)


def test_what_is_gone_or_not_said_any_more_is_dropped_and_counted(today: LocalGitHub, tmp_path: Path) -> None:
    entry = hydrated(today, tmp_path / "run", hours(tmp_path / "hours"), negatives=0.5)
    rows = issues_of(tmp_path / "run")
    assert {f"{REPOSITORY}#{number}" for number in (1, 2, 3, 6, 9, 26)} <= rows.keys()
    assert {row["title"] for row in rows.values()} == {f"Today's title {row['number']}" for row in rows.values()}
    assert links_of(tmp_path / "run") == {
        f"{REPOSITORY}#2": [(f"{REPOSITORY}#1", "comment", 1)],
        f"{REPOSITORY}#6": [(f"{REPOSITORY}#9", "comment", 1)],
        f"{REPOSITORY}#26": [(f"{REPOSITORY}#1", "event", 1)],
    }
    assert entry.tally.counts["links_of_the_archive"] == {"confirmed": 2, "not_confirmed": 3}
    # six candidates: three negatives asked for, so three others aren't; 7 and its original were in a repository gone
    assert entry.tally.dropped == {"deleted": 1, "transferred": 1, "not_hydrated": 3, "repository_gone": 2}
    assert len(rows) == 9


def test_a_repository_by_several_names_is_fetched_once(today: LocalGitHub, tmp_path: Path) -> None:
    today.store.rename(REPOSITORY, "saltmarsh/reed")
    source = hours(tmp_path / "hours")
    late = commented(3, "Duplicate of SaltMarsh/Heron#1", key=50) | {"repo": {"id": 99, "name": "saltmarsh/reed"}}
    write(source / "2015-01-01-16.json.gz", late)
    hydrated(today, tmp_path / "run", source)
    rows = Run(tmp_path / "run").table("issues").to_pylist()  # no issue stands twice
    assert {row["repository"] for row in rows} == {"saltmarsh/reed"}


def test_a_second_call_and_one_after_a_failure_ask_nothing_twice(today: LocalGitHub, tmp_path: Path) -> None:
    source = hours(tmp_path / "hours")
    hydrated(today, tmp_path / "run", source)
    sent = today.requests()
    entry = hydrated(today, tmp_path / "run", source)
    assert (entry.fresh, today.requests()) == (False, sent)
    with (
        Run.open(tmp_path / "again") as run,
        Answers(tmp_path / "run" / "answers.sqlite") as answers,
        client(today, answers) as github,
    ):
        read_archive(run, source, workers=1)
        collect_from_archive(run, github=github)
    assert today.requests() == sent


def test_the_command_hydrates_and_refreshes(
    command: Command, address: LocalGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address.seed([row(number, "Duplicate of #1") for number in (2, 4)])
    address.seed([row(number) for number in (1, 3, 5, 6, 9, *range(20, 27))])
    call = (
        "collect-issues",
        "--from",
        hours(tmp_path / "hours"),
        "--out",
        tmp_path / "run",
        "--workers",
        1,
        "--hydrate",
    )
    assert command(*call, "--json").exit_code == 0
    address.store.delete((REPOSITORY, 4))
    stages = json.loads(command(*call, "--refresh", "--json").stdout)["stages"]
    assert stages[0]["fresh"] is False
    assert stages[1]["dropped"]["deleted"] == 1
