"""What search-first costs against reading every issue, and which duplicates it finds: against the local GitHub.

    scripts/fetch-schemas && PYTHONPATH=. python benchmarks/github_points.py

The repositories are made up, their duplicates known: some have nothing but an event, a label, a comment or a closing
reason. Points are those that the server counts by GitHub's documented formula. Printed as Markdown.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

from stscurate.services.github import GitHub
from stscurate.sources.github import Plan, make_plans
from stscurate.sources.github.costs import sweep_cost
from stscurate.sources.github.fetch import Collector
from stscurate.sources.github.queries import queries_of
from stscurate.sources.lists import Listed, OptOut
from tests.local_github import LocalGitHub
from tests.local_github.invented import make_repository
from tests.local_github.limits import NO_LIMITS, FakeClock

NAME = "a/b"
WAYS: tuple[Literal["search", "sweep"], ...] = ("search", "sweep")
KINDS = ("event", "label", "comment", "reason", "all")


def main() -> None:
    """Two rows a rate: ours and a plain sweep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--issues", type=int, default=20_000)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.02, 0.05, 0.15])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    columns = ["points, told before", "points", "requests", "points per 1,000", "requests per 1,000"]
    columns += [f"recall: {kind}" for kind in KINDS]
    print(f"| duplicates | way | {' | '.join(columns)} |\n|---:|---|{'---:|' * len(columns)}")
    for rate in arguments.rates:
        for row in _rows(arguments.issues, rate, arguments.seed):
            print(row, flush=True)


def _rows(issues: int, rate: float, seed: int) -> Iterator[str]:
    made = make_repository(NAME, issues=issues, duplicate_rate=rate, seed=seed)
    there = Counter(made.shown_by.values())
    clock = FakeClock()
    with LocalGitHub(clock=clock, limits=NO_LIMITS) as hub:
        hub.seed(made.issues, marks=made.marks)
        for way in WAYS:
            plan, points, sent, links = _collected(hub, clock, way)
            found = {(NAME, link["duplicate"]) for link in links} & set(made.duplicates)
            seen = Counter(made.shown_by[place] for place in found)
            each = (f"{1000 * points / len(found):.0f}", f"{1000 * sent / len(found):.0f}")
            recall = [f"{seen[kind] / there[kind]:.2f}" for kind in KINDS]
            cells = [f"{rate:.0%}", way, plan.points, points, sent, *each, *recall]
            yield f"| {' | '.join(map(str, cells))} |"


def _collected(
    hub: LocalGitHub, clock: FakeClock, way: Literal["search", "sweep"]
) -> tuple[Plan, int, int, list[dict[str, Any]]]:
    """(plan, points and requests that the server counted, links) of one collection, the counting query included."""
    points, sent = hub.points(), hub.requests()
    with (
        GitHub("token", url=hub.url, clock=clock.time, sleep=clock.sleep) as github,
        ThreadPoolExecutor(1) as work,
    ):
        (plan,) = make_plans(github, [Listed(NAME, ("duplicate",))], negatives=1)
        if way == "sweep":
            costs = sweep_cost(plan.issues)
            plan = replace(plan, way=way, points=costs[0], requests=costs[1])
        elif plan.way != way:
            raise SystemExit("a search isn't worth it there: take more issues")
        collector = Collector(github, queries_of(github), NAME, {}, OptOut(), work)
        fetched = collector.run(plan, negatives=1, max_issues=None)
    links = [link for made in fetched.made for link in made.links]
    return plan, hub.points() - points, hub.requests() - sent, links


if __name__ == "__main__":
    main()
