"""Collecting from a local GitHub by the command line: the plan foretold, nothing asked twice, a run refreshed."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from stscurate.sources.github import collect_from_github, make_plans
from stscurate.sources.lists import Listed
from stscurate.store import Run
from tests.conftest import ROOT, Command
from tests.local_github import LocalGitHub
from tests.local_github.answers import Asked
from tests.local_github.invented import make_repository
from tests.local_github.limits import FakeClock
from tests.sources.collecting import INKPOT, LABELS, MADE, TIDEPOOL, client, digest, issues_of, links_of

pytestmark = pytest.mark.usefixtures("github_schema")

# -- the estimate


SHARES = {
    "usual": {},
    "events": {"with_event_only": 0.5, "label_only": 0.1, "comment_only": 0.1, "reason_only": 0.1},
    "labels": {"with_event_only": 0.05, "label_only": 0.6, "comment_only": 0.1, "reason_only": 0.1},
    "comments": {"with_event_only": 0.0, "label_only": 0.0, "comment_only": 0.9, "reason_only": 0.0},
    "reasons": {"with_event_only": 0.0, "label_only": 0.0, "comment_only": 0.05, "reason_only": 0.9},
    "askers": {"noise": 0.15},
    "nobody asks": {"noise": 0.0},
}


@pytest.mark.parametrize(
    ("issues", "rate", "shares", "negatives", "most"),
    [
        (50, 0.05, "usual", 1, None),
        (300, 0.05, "comments", 1, None),
        (600, 0.02, "events", 0, None),
        (600, 0.1, "reasons", 1, None),
        (600, 0.15, "nobody asks", 1, None),
        (1_500, 0.1, "askers", 3, None),
        (1_500, 0.1, "nobody asks", 3, None),
        (1_500, 0.15, "labels", 1, None),
        (1_500, 0.05, "usual", 1, 100),
        (3_000, 0.02, "askers", 1, None),
        (3_000, 0.1, "comments", 1, 250),
        (2_000, 0.15, "usual", 3, None),
    ],
)
def test_the_estimate_comes_within_a_fifth_of_what_the_server_counts(
    tmp_path: Path, issues: int, rate: float, shares: str, negatives: int, most: int | None
) -> None:
    made = make_repository(MADE, issues=issues, duplicate_rate=rate, seed=issues, **SHARES[shares])
    options: Any = {"negatives": negatives, "max_issues": most}
    with LocalGitHub(clock=FakeClock()) as hub:
        hub.seed(made.issues, marks=made.marks)
        with client(hub) as github:
            (plan,) = make_plans(github, [Listed(MADE, LABELS)], **options)
        assert (hub.points(), hub.requests()) == (1, 1)  # for counting
        with Run.open(tmp_path / "run") as run, client(hub, concurrency=1) as github:
            collect_from_github(run, [Listed(MADE, LABELS)], github, **options)
        points, sent = hub.points() - 3, hub.requests() - 3  # it was counted once more, and the schema asked for
    assert abs(plan.points - points) <= 0.2 * points
    assert abs(plan.requests - sent) <= max(0.2 * sent, 2)
    assert plan.least <= points <= plan.most
    assert plan.most - plan.least <= 0.6 * points


def test_a_repository_is_swept_where_that_costs_little_more_than_a_search(
    large: LocalGitHub, made: Any, tmp_path: Path
) -> None:
    """A sweep of 600 issues costs 18 points, and finds the duplicates that only an event tells of."""
    listed = [Listed(MADE, LABELS)]
    with client(large) as github:
        (few,), (more,), (many,) = (make_plans(github, listed, negatives=negatives) for negatives in (1, 20, 1_000))
        (capped,) = make_plans(github, listed, negatives=20, max_issues=500)  # swept, the newest would be missing
    assert (few.way, more.way, many.way, capped.way) == ("search", "sweep", "sweep", "search")
    assert few.points * 1.5 < more.points == many.points == 18 < capped.points * 1.5 < 18 * 1.5
    with Run.open(tmp_path / "run") as run, client(large, concurrency=1) as github:
        collect_from_github(run, listed, github, negatives=20)
    found = links_of(tmp_path / "run")
    assert {f"{MADE}#{number}" for (_, number), kind in made.shown_by.items() if kind == "event"} <= found.keys()


def test_a_plan_for_few_issues_is_cheaper_the_fewer(large: LocalGitHub) -> None:
    with client(large) as github:
        costs = [
            make_plans(github, [Listed(MADE, LABELS)], negatives=1, max_issues=most)[0].points
            for most in (None, 100, 10)
        ]
    assert sorted(costs, reverse=True) == costs
    assert costs[0] > costs[-1]


# -- the command


def test_the_command_collects_and_pairs_and_asks_nothing_twice(
    address: LocalGitHub, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repos.txt").write_text(f"{TIDEPOOL}\n{INKPOT}\n")
    call = ("collect-issues", "--repos", tmp_path / "repos.txt", "--out", tmp_path / "run")
    planned = json.loads(command(*call, "--dry-run", "--json").stdout)
    assert [row["plan"] for row in planned["asks"]] == ["sweep", "sweep"]
    assert planned["total"]["points"] == planned["total"]["least"] == planned["total"]["most"] == 8
    assert address.requests() == 2
    told = command(*call, "--dry-run").stdout
    assert "about 8 points and 4 requests" in told
    assert "points, about   points at least   points at most" in told
    assert address.requests() == 2
    result = command(*call)
    assert result.exit_code == 0
    assert Run(tmp_path / "run").table("pairs").num_rows > 20
    assert address.points() - 2 == 9  # an original that is gone was looked up too
    sent = address.requests()
    monkeypatch.delenv("GITHUB_TOKEN")  # what is finished needs none
    monkeypatch.setenv("PATH", "")
    assert command(*call).exit_code == 0
    assert address.requests() == sent
    assert not any(b"ghp_secret" in path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "one of --from and --repos"),
        (("--from", "a.jsonl", "--repos", "b.txt"), "one of --from and --repos"),
        (("--from", "a.jsonl", "--dry-run"), "give --repos"),
        (("--from", "a.jsonl", "--refresh"), "give --repos"),
        (("--from", "a.jsonl", "--preflight"), "give --repos"),
        (("--from", "a.jsonl", "--max-issues", "3"), "give --repos"),
        (("--from", "a.jsonl", "--opt-out", "c.txt"), "give --repos"),
        (("--repos", "missing.txt"), "isn't a file"),
    ],
)
def test_the_command_says_what_is_wrong(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    result = command("collect-issues", *arguments, "--out", tmp_path / "run")
    assert (result.exit_code, told in result.stderr) == (2, True)


def test_a_refreshed_run_has_what_is_there_now_for_the_price_of_what_changed(
    made: Any, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An issue is edited, one deleted, one marked, one new; then the result is that of a new run."""
    monkeypatch.setenv("GITHUB_TOKEN", "t")
    (tmp_path / "repos.txt").write_text(MADE)
    call = ("collect-issues", "--repos", tmp_path / "repos.txt", "--out")
    with LocalGitHub() as hub:
        hub.seed(made.issues, marks=made.marks)
        monkeypatch.setenv("GITHUB_API_URL", hub.url)
        assert command(*call, tmp_path / "run").exit_code == 0
        first, before = hub.points(), digest(tmp_path / "run")
        assert command(*call, tmp_path / "run", "--refresh").exit_code == 0
        assert digest(tmp_path / "run")[:2] == before[:2]
        second = hub.points()
        assert second - first < first

        (_, edited), (_, lost), (_, kept), *_ = [duplicate for duplicate in made.duplicates if duplicate in made.marks]
        original = made.duplicates[MADE, kept]
        hub.store.edit((MADE, edited), title="A title that wasn't there")
        hub.store.edit(original, body="Words that weren't there")
        hub.store.delete((MADE, lost))
        hub.store.insert(MADE, title="New", labels=["duplicate"])
        number = max(hub.store.repositories[MADE].issues)
        hub.store.mark_duplicate((MADE, number), original)
        refreshed = command(*call, tmp_path / "run", "--refresh", "--json")
        assert refreshed.exit_code == 0
        assert json.loads(refreshed.stdout)["stages"][0]["fresh"]
        assert command(*call, tmp_path / "new").exit_code == 0
    issues, links = issues_of(tmp_path / "run"), links_of(tmp_path / "run")
    assert issues[f"{MADE}#{edited}"]["title"] == "A title that wasn't there"
    assert issues[f"{original[0]}#{original[1]}"]["body"] == "Words that weren't there"
    assert f"{MADE}#{lost}" not in issues | links
    assert links[f"{MADE}#{number}"] == [(f"{original[0]}#{original[1]}", "event", 1)]
    assert digest(tmp_path / "run")[:2] == digest(tmp_path / "new")[:2]


def test_a_second_process_on_a_run_is_refused(address: LocalGitHub, tmp_path: Path) -> None:
    """While the first one waits for an answer of GitHub; it then ends as if nothing had been."""
    (tmp_path / "repos.txt").write_text(TIDEPOOL)
    call = [sys.executable, "-m", "stscurate", "collect-issues", "--repos", str(tmp_path / "repos.txt")]
    asked, go_on = threading.Event(), threading.Event()

    def hold(asked_for: Asked) -> None:
        asked.set()
        assert go_on.wait(60)

    address.rules.append(hold)
    with subprocess.Popen([*call, "--out", str(tmp_path / "run")], cwd=ROOT) as first:
        try:
            assert asked.wait(60)
            sent = address.requests()
            second = subprocess.run(
                [*call, "--out", str(tmp_path / "run")], cwd=ROOT, capture_output=True, text=True, check=False
            )
            assert (second.returncode, second.stdout) == (1, "")
            assert second.stderr == (
                f"stscurate: Another process is working in {tmp_path / 'run'}: "
                "wait for it to end, or name another --out.\n"
            )
            assert address.requests() == sent
        finally:
            go_on.set()
        assert first.wait(60) == 0
    assert len(issues_of(tmp_path / "run")) > 10
