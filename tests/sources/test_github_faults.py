"""Collecting from a GitHub that breaks, and in a process that is killed: the same bytes in the end."""

import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stscurate.errors import ServiceError
from stscurate.services.answers import Answers
from stscurate.services.github import GitHub
from stscurate.sources.github import collect_from_github
from stscurate.sources.lists import Listed
from stscurate.store import Run
from tests.conftest import ROOT
from tests.local_github import LocalGitHub, faults
from tests.local_github.answers import Asked, Fault
from tests.local_github.limits import FakeClock, Limits
from tests.sources.collecting import LABELS, MADE, TIDEPOOL, client, collected, digest

pytestmark = pytest.mark.usefixtures("github_schema")

# -- faults

FAULTS: dict[str, Callable[[], Fault]] = {
    "429": lambda: faults.limited(429),
    "429 with retry-after": lambda: faults.limited(429, retry_after=7),
    "403": lambda: faults.limited(403),
    "403 with retry-after": lambda: faults.limited(403, retry_after=7),
    "200 with RATE_LIMITED": faults.rate_limited,
    "partial data": lambda: faults.partial(3),
    "502 as HTML": faults.bad_gateway,
    "truncated JSON": faults.truncated,
    "connection reset": faults.reset,
    "connection reset within the body": lambda: faults.reset(within=True),
    "slow body": lambda: faults.slow(0.25),
    "null cursor": faults.endless,
    "repeated cursor": lambda: faults.endless(cursor="same"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_leaves_the_same_bytes(
    made: Any, sample_issues: Path, undisturbed: dict[str, Any], tmp_path: Path, name: str
) -> None:
    for repository, size in ((MADE, 40), (TIDEPOOL, 10)):
        with LocalGitHub(clock=FakeClock()) as hub:
            hub.seed(made.issues, marks=made.marks)
            hub.seed(sample_issues)
            if name == "slow body":  # in real time, as sockets are
                hub.fail(FAULTS[name](), at=(1, 4))
                collected(hub, tmp_path / f"{size}", [repository], page_size=size, timeout=0.2)
            else:
                hub.fail(FAULTS[name](), every=2)
                collected(hub, tmp_path / f"{size}", [repository], page_size=size)
        assert digest(tmp_path / f"{size}") == undisturbed[repository]


@pytest.mark.parametrize("skew", [-90_000.0, 90_000.0])
def test_clocks_that_differ_leave_the_same_bytes_and_no_endless_wait(
    sample_issues: Path, undisturbed: dict[str, Any], tmp_path: Path, skew: float
) -> None:
    """The hour's points are spent twice on the way: what the headers name is waited for by their own clock."""
    clock = FakeClock()
    with LocalGitHub(clock=clock, skew=skew, limits=Limits(graphql_an_hour=4)) as hub:
        hub.seed(sample_issues)
        collected(hub, tmp_path / "run", [TIDEPOOL], page_size=10)
    assert digest(tmp_path / "run") == undisturbed[TIDEPOOL]
    assert max(clock.slept) <= 3_700


@pytest.mark.parametrize("repository", [MADE, TIDEPOOL])
def test_issues_that_come_while_others_are_read_change_nothing(
    large: LocalGitHub, sample_issues: Path, undisturbed: dict[str, Any], tmp_path: Path, repository: str
) -> None:
    large.seed(sample_issues)

    def change() -> None:
        large.store.insert(repository, title="New", body="Duplicate of #2", labels=["duplicate"])
        number = min(large.store.repositories[repository].issues)
        large.store.edit((repository, number), updated_at=datetime(2026, 1, 1, tzinfo=UTC))

    large.fail(faults.meanwhile(change), when=lambda asked: asked.number > 1)
    collected(large, tmp_path / "run", [repository], page_size=40 if repository == MADE else 10)
    assert digest(tmp_path / "run") == undisturbed[repository]


def test_as_many_at_once_as_may_be_leave_the_same_bytes(
    large: LocalGitHub, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    with (
        Run.open(tmp_path / "run") as run,
        Answers(tmp_path / "run" / "answers.sqlite") as answers,
        client(large, answers, page_size=7, concurrency=12) as github,
    ):
        collect_from_github(run, [Listed(MADE, LABELS)], github)
    assert digest(tmp_path / "run") == undisturbed[MADE]


def test_repositories_beside_each_other_send_no_more_at_once_than_may_be(sample_issues: Path, tmp_path: Path) -> None:
    with LocalGitHub(delay=0.005) as hub:
        hub.seed(sample_issues)
        names = sorted(home.name for home in hub.store.repositories.values())
        listed = [Listed(name, LABELS) for name in names]
        for at_once in (1, 3):
            hub.meter.most_at_once = 0
            with (
                Run.open(tmp_path / f"{at_once}") as run,
                GitHub("t", url=hub.url, page_size=5, concurrency=at_once) as github,
            ):
                collect_from_github(run, listed, github)
            assert hub.meter.most_at_once == at_once
    assert len(names) > 3
    assert digest(tmp_path / "1") == digest(tmp_path / "3")


def test_a_cursor_that_stays_broken_is_named_and_what_was_fetched_is_kept(hub: LocalGitHub, tmp_path: Path) -> None:
    hub.fail(faults.endless(), when=lambda asked: bool(asked.variables.get("after")))
    with pytest.raises(ServiceError, match=r"repository\.issues .*no cursor.*is kept"):
        collected(hub, tmp_path / "run", [TIDEPOOL], page_size=10)
    hub.rules.clear()
    before = hub.requests()
    collected(hub, tmp_path / "run", [TIDEPOOL], page_size=10)
    assert hub.requests() - before == 2


# -- kills

# A process that has loaded everything and collects in children of its own, each of which may be killed.
DRIVER = """
import os, sys
from pathlib import Path
from stscurate.services.answers import Answers
from stscurate.services.github import GitHub
from stscurate.sources.github import collect_from_github
from stscurate.sources.lists import Listed
from stscurate.store import Run

url, repository, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        folder = Path(line.strip())
        with Run.open(folder) as run, Answers(folder / "answers.sqlite") as answers:
            print("began", os.getpid(), flush=True)
            with GitHub("t", url=url, answers=answers, page_size=size, concurrency=1) as github:
                collect_from_github(run, [Listed(repository, ("duplicate",))], github)
        os._exit(0)
    print("ended", os.waitpid(child, 0)[1], flush=True)
"""


@pytest.mark.parametrize(("repository", "size"), [(MADE, 40), (TIDEPOOL, 10)])
def test_a_kill_between_any_two_requests_costs_that_request_alone(
    made: Any, sample_issues: Path, undisturbed: dict[str, Any], tmp_path: Path, repository: str, size: int
) -> None:
    with LocalGitHub() as hub:
        hub.seed(made.issues, marks=made.marks)
        hub.seed(sample_issues)
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, hub.url, repository, str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert driver.stdin
        assert driver.stdout
        began = {"request": 0}
        process: queue.Queue[int] = queue.Queue()

        def collect(folder: Path, kill_at: int | None) -> int:
            """Start a collection, kill it while its k-th request is under way; the exit status."""
            began["request"] = len(hub.log)
            hub.rules[:] = [lambda asked: kill if kill_at and asked.number == began["request"] + kill_at else None]
            assert driver.stdin
            assert driver.stdout
            print(folder, file=driver.stdin, flush=True)
            process.put(int(driver.stdout.readline().removeprefix("began")))
            ended = int(driver.stdout.readline().removeprefix("ended"))
            if kill_at is None:
                process.get_nowait()
            return ended

        def kill(asked: Asked, answer: Callable[[], Any]) -> Any:
            os.kill(process.get(timeout=60), signal.SIGKILL)  # the request may come before its process is told
            return answer()

        assert collect(tmp_path / "whole", None) == 0
        whole = len(hub.log)
        assert 5 <= whole <= 30
        for at in range(1, whole + 1):
            folder = tmp_path / str(at)
            before = len(hub.log)
            assert collect(folder, at) == signal.SIGKILL
            assert collect(folder, None) == 0
            assert len(hub.log) - before == whole + 1
            assert digest(folder) == undisturbed[repository]
        driver.stdin.close()
        assert driver.wait(20) == 0
        driver.stdout.close()


def test_a_full_disk_ends_in_a_sentence_and_the_same_command_goes_on(
    address: LocalGitHub, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    """Files may grow to so many bytes only: the file of answers, or a table, is cut off there."""
    (tmp_path / "repos.txt").write_text(TIDEPOOL)
    call = ["collect-issues", "--repos", str(tmp_path / "repos.txt"), "--out", str(tmp_path / "run")]
    limited = "import resource, sys\nfrom stscurate.cli import main\n"
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)\nmain()"
    for size in (20_000, 60_000):
        done = subprocess.run(
            [sys.executable, "-c", limited, str(size), *call], capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert done.returncode == 1, done.stderr
        assert done.stderr.startswith("stscurate: ")
        assert done.stderr.count("\n") == 1
    done = subprocess.run(
        [sys.executable, "-m", "stscurate", *call], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert digest(tmp_path / "run")[:2] == undisturbed[TIDEPOOL][:2]
