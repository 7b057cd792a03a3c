"""Wall time of collecting from GitHub at 50 ms a request, without limits: ours, PyGithub, and a loop over `page=`.

    scripts/fetch-schemas && pip install PyGithub && PYTHONPATH=. python benchmarks/github_wall_time.py

Ours brings each issue with its comments, labels and events; the other two, one request after another, bring the issues
alone. The local GitHub runs in a process of its own and replays answers that it has given before, so that its own
work isn't measured. The floor is what the requests would take if nothing but their 50 ms counted.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import requests
from github import Auth, Github

from stscurate.services.github import GitHub
from stscurate.sources.github import collect_from_github
from stscurate.sources.lists import Listed
from stscurate.store import Run
from tests.local_github import LocalGitHub
from tests.local_github.apart import hub_apart
from tests.local_github.invented import make_repository
from tests.local_github.limits import NO_LIMITS

DELAY = 0.05  # seconds


def build(names: list[str], issues: int) -> LocalGitHub:
    """The hub with its repositories, for the other process."""
    hub = LocalGitHub(limits=NO_LIMITS, delay=DELAY, replay=True)
    for seed, name in enumerate(names):
        made = make_repository(name, issues=issues, duplicate_rate=0.05, seed=seed)
        hub.seed(made.issues, marks=made.marks)
    return hub


def ours(url: str, names: list[str], concurrency: int) -> int:
    """Collect into a run that is thrown away; so many negatives are wanted that everything is read."""
    with (
        tempfile.TemporaryDirectory() as folder,
        GitHub("token", url=url, concurrency=concurrency) as github,
        Run.open(Path(folder) / "run") as run,
    ):
        return collect_from_github(run, [Listed(name, ("duplicate",)) for name in names], github, negatives=100).rows


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


def main() -> None:
    """Measure the three in turn and print a Markdown table of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=int, default=8)
    parser.add_argument("--issues", type=int, default=500)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    names = [f"made/up{number}" for number in range(arguments.repositories)]
    with hub_apart(partial(build, names, arguments.issues)) as hub:
        ways: dict[str, Callable[[], int]] = {
            "ours": partial(ours, hub.url, names, arguments.concurrency),
            "PyGithub": partial(pygithub, hub.url, names),
            "page=": partial(by_page, hub.url, names),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        issues, sent = {}, {}
        for repeat in range(arguments.repeats + 1):
            for name, way in ways.items():
                began = time.perf_counter()
                issues[name] = way()
                if repeat:  # the first round warms the server up
                    seconds[name].append(time.perf_counter() - began)
                sent[name] = len(hub.take_log())
    print("| way | issues | requests | floor, s | median, s | against ours |\n|---|---:|---:|---:|---:|---:|")
    mine = statistics.median(seconds["ours"])
    for name in ways:
        at_once = min(arguments.concurrency, len(names)) if name == "ours" else 1
        floor, median = sent[name] * DELAY / at_once, statistics.median(seconds[name])
        print(f"| {name} | {issues[name]:,} | {sent[name]} | {floor:.2f} | {median:.2f} | {median / mine:.1f} |")


if __name__ == "__main__":
    main()
