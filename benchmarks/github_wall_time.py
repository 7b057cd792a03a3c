"""Wall time of collecting from GitHub at 50 ms a request, no limits: ours, PyGithub, and a loop over `page=`.

    scripts/fetch-schemas && pip install PyGithub && PYTHONPATH=. python benchmarks/github_wall_time.py

Ours brings each issue with its comments, labels and events, keeps every answer as the command does, and leaves the
finished tables; the other two, one request after another, bring the issues alone. The local GitHub runs in a process
of its own and replays answers that it has given before. The floor is what the requests would take if nothing but
their time counted; "bare" sends the very same requests, as many at once, and throws the answers away, which shows
what the server, HTTP and this machine add. Beside them stand the seconds at 0 ms a request, and the processor's
seconds in the client's process.
"""

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import requests
from github import Auth, Github

from stscurate.services.answers import Answers
from stscurate.services.github import GitHub
from stscurate.sources.github import collect_from_github
from stscurate.sources.lists import Listed
from stscurate.store import Run
from tests.local_github import LocalGitHub
from tests.local_github.answers import Asked
from tests.local_github.apart import Apart, hub_apart
from tests.local_github.invented import make_repository
from tests.local_github.limits import NO_LIMITS

AT_ONCE = (1, 2, 4, 8)


def build(names: list[str], issues: int, delay: float) -> LocalGitHub:
    """The hub with its repositories, for the other process."""
    hub = LocalGitHub(limits=NO_LIMITS, delay=delay, replay=True)
    for seed, name in enumerate(names):
        made = make_repository(name, issues=issues, duplicate_rate=0.05, seed=seed)
        hub.seed(made.issues, marks=made.marks)
    return hub


def ours(url: str, names: list[str], concurrency: int) -> int:
    """Collect into a run that is thrown away; so many negatives are wanted that everything is read."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Run.open(Path(folder) / "run") as run,
        Answers(run.folder / "answers.sqlite", synced=False) as answers,
        GitHub("token", url=url, answers=answers, concurrency=concurrency) as github,
    ):
        return collect_from_github(run, [Listed(name, ("duplicate",)) for name in names], github, negatives=100).rows


def bare(url: str, asked: list[Asked], at_once: int) -> int:
    """What ours has asked, in the same order and by as many threads: the counting, the schema, then the pages."""
    first, chains = [], defaultdict(list)
    for each in asked:
        body = {"query": each.query, "variables": each.variables}
        if "after" in each.variables:
            chains[each.variables["name"]].append(body)
        else:
            first.append([body])
    with requests.Session() as session, ThreadPoolExecutor(at_once) as pool:
        session.headers["Authorization"] = "Bearer token"

        def send(bodies: list[dict[str, Any]]) -> int:
            return sum(len(session.post(f"{url}/graphql", json=body, timeout=60).content) > 0 for body in bodies)

        return sum(pool.map(send, first[:-1])) + send(first[-1]) + sum(pool.map(send, chains.values()))


def pygithub(url: str, names: list[str]) -> int:
    """All issues by PyGithub's iterator."""
    client = Github(auth=Auth.Token("token"), base_url=url, per_page=100, seconds_between_requests=0, lazy=True)
    return sum(1 for name in names for _ in client.get_repo(name).get_issues(state="all"))


def by_page(url: str, names: list[str]) -> int:
    """All issues by counting pages up."""
    found = 0
    with requests.Session() as session:
        session.headers["Authorization"] = "Bearer token"
        for name in names:
            page = 1
            while rows := session.get(
                f"{url}/repos/{name}/issues", params={"state": "all", "per_page": "100", "page": str(page)}, timeout=60
            ).json():
                found, page = found + len(rows), page + 1
    return found


class Measured(NamedTuple):
    """One collection: its requests, its seconds, and those of the processor in this process."""

    asked: list[Asked]
    seconds: float
    processor: float


def measured(hub: Apart, way: Callable[[], int]) -> Measured:
    """Run a way once."""
    began, spent = time.perf_counter(), time.process_time()
    way()
    seconds, spent = time.perf_counter() - began, time.process_time() - spent
    return Measured(hub.take_log(), seconds, spent)


def main() -> None:
    """Measure all in turn, several times, and print a Markdown table of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=int, default=8)
    parser.add_argument("--issues", type=int, default=500)
    parser.add_argument("--milliseconds", type=int, default=50, help="what a request takes")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    length = arguments.milliseconds / 1000
    names = [f"made/up{number}" for number in range(arguments.repositories)]
    found: dict[tuple[tuple[str, int], float], list[Measured]] = defaultdict(list)
    for delay in (0.0, length):
        with hub_apart(partial(build, names, arguments.issues, delay)) as hub:
            asked = measured(hub, partial(ours, hub.url, names, 1)).asked  # warms the server up
            ways: dict[tuple[str, int], Callable[[], int]] = {}
            for at_once in AT_ONCE:
                ways["ours", at_once] = partial(ours, hub.url, names, at_once)
                ways["bare", at_once] = partial(bare, hub.url, asked, at_once)
            ways["PyGithub", 1] = partial(pygithub, hub.url, names)
            ways["page=", 1] = partial(by_page, hub.url, names)
            for _ in range(arguments.repeats):
                for way, collect in ways.items():
                    found[way, delay].append(measured(hub, collect))
    print("| way | at once | requests | floor, s | median, s | above the floor | at 0 ms, s | processor, s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for way in ways:
        name, at_once = way
        runs = found[way, length]
        sent = len(runs[0].asked)
        seconds = statistics.median(run.seconds for run in runs)
        processor = statistics.median(run.processor for run in runs)
        none = statistics.median(run.seconds for run in found[way, 0.0])
        floor = sent * length / at_once
        print(
            f"| {name} | {at_once} | {sent} | {floor:.2f} | {seconds:.2f} | {seconds / floor - 1:+.0%} "
            f"| {none:.2f} | {processor:.2f} |"
        )


if __name__ == "__main__":
    main()
