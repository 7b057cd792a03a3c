"""What is told while a collection from GitHub runs: true to the limits, and to a terminal alone."""

import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stscurate.cli.console import Console
from stscurate.sources.github import collect_from_github
from stscurate.sources.github.telling import seconds_to_go
from stscurate.sources.lists import Listed
from stscurate.store import Run
from tests.local_github import LocalGitHub
from tests.local_github.limits import FakeClock, Limits
from tests.sources.collecting import LABELS, MADE, client

TOLD = re.compile(
    r"points spent; ([\d,]+) issues?(?:; ([\d,]+) points? left(?: until (\d\d:\d\d))?)?(?:; done about (\d\d:\d\d))?"
)


@pytest.mark.parametrize(
    ("points", "rate", "left", "resets_in", "seconds"),
    [
        (100, 2.0, 5_000, 600.0, 50.0),  # within what is left
        (100, 2.0, 0, 600.0, 650.0),  # after the reset
        (300, 2.0, 100, 600.0, 700.0),  # 100 now, a wait, 200 then
        (11_000, 5.0, 1_000, 1_800.0, 1_800.0 + 3_600.0 + 1_000.0),  # 1,000, then 5,000 in each of two hours
        (3_000, 1.0, 2_000, 600.0, 3_000.0),  # slower than the limit: 600 before the reset, and no wait
        (9_000, 1.0, 5_000, 3_600.0, 9_000.0),
    ],
)
def test_the_time_to_go_counts_the_waits_for_the_limit(
    points: int, rate: float, left: int, resets_in: float, seconds: float
) -> None:
    assert seconds_to_go(points, rate=rate, left=left, resets_in=resets_in) == pytest.approx(seconds)
    assert simulated(points, rate, left, resets_in) == pytest.approx(seconds, abs=2)


def simulated(points: float, rate: float, left: float, resets_in: float) -> int:
    """Second by second."""
    now = 0
    while points > 1e-9:
        if now and now >= resets_in:
            left, resets_in = 5_000, now + 3_600
        step = min(rate, left, points)
        points, left, now = points - step, left - step, now + 1
    return now


@pytest.mark.usefixtures("github_schema")
def test_issues_points_and_times_are_told_as_the_server_counts_them(made: Any, tmp_path: Path) -> None:
    """Half a minute a request, and fewer points an hour than are needed: it has to wait once."""
    clock = FakeClock()
    told: list[tuple[str, int, int | None]] = []
    with (
        LocalGitHub(clock=clock, limits=Limits(graphql_an_hour=8)) as hub,
        Run.open(tmp_path / "run") as run,
        client(hub, concurrency=1) as github,
    ):
        hub.seed(made.issues, marks=made.marks)
        hub.rules.append(lambda asked: clock.sleep(30))
        reset = hub.meter.bucket("graphql", clock.time()).reset
        entry = collect_from_github(
            run,
            [Listed(MADE, LABELS)],
            github,
            progress=lambda label, done, total: told.append((label, done, total)),
        )
        left = hub.meter.bucket("graphql", clock.time()).remaining
        assert told[-1][1] == hub.points() - 2  # the counting and the schema came before
    matches = [TOLD.fullmatch(label) for label, _, _ in told]
    found = [match.groups() for match in matches if match]
    assert len(found) == len(told)
    issues = [int(groups[0]) for groups in found]
    assert issues == sorted(issues)
    assert issues[-1] == entry.outputs["issues"]["rows"] > 50
    assert found[-1][1] == str(left)
    assert {groups[2] for groups in found if groups[1] == "0"} == {at(reset + 1)}
    ends = {groups[3] for groups in found if groups[3]}
    assert ends
    assert ends <= {at(clock.time() + 60 * minutes) for minutes in range(-4, 5)}


def at(seconds: float) -> str:
    return time.strftime("%H:%M", time.localtime(seconds))


@pytest.mark.parametrize(
    ("terminal", "quiet", "as_json", "shown"),
    [(True, False, False, True), (False, False, False, False), (True, True, False, False), (True, False, True, False)],
)
def test_a_line_is_drawn_on_a_terminal_alone_and_no_wider_than_it(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool, as_json: bool, shown: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    reader, writer = os.openpty() if terminal else os.pipe()
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        console = Console(as_json=as_json, quiet=quiet)
        console.progress("points spent; 5 issues; 10 points left", 3, 12)
        console.progress("short", 4, 12)
        print("end", file=stream, flush=True)
        drawn = ""
        while "end" not in drawn:  # a terminal gives it in pieces
            drawn += os.read(reader, 10_000).decode()
    os.close(reader)
    lines = ["points spent: 3 of 12 (25%), ", " " * 29, "short: 4 of 12 (33%)", "end"]
    assert drawn.strip().split("\r") == (lines if shown else ["end"])
