"""What search-first costs against reading every issue, and which duplicates it finds: against the local GitHub.

    scripts/fetch-schemas && PYTHONPATH=. python benchmarks/github_points.py

The repositories are made up, their duplicates known: some have nothing but an event, a label, a comment or a closing
reason. Points are those that the server counts by GitHub's documented formula. Printed as Markdown.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from stscurate.services.github import GitHub
from stscurate.sources.github import collect_from_github, make_plans
from stscurate.sources.github.plan import estimate
from stscurate.sources.lists import Listed
from stscurate.store import Run
from tests.local_github import LocalGitHub
from tests.local_github.invented import make_repository
from tests.local_github.limits import NO_LIMITS, FakeClock

NAME = "a/b"
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
    clock = FakeClock()
    with LocalGitHub(clock=clock, limits=NO_LIMITS) as hub, tempfile.TemporaryDirectory() as folder:
        hub.seed(made.issues, marks=made.marks)
        listed = [Listed(NAME, ("duplicate",))]
        with GitHub("token", url=hub.url, clock=clock.time, sleep=clock.sleep) as github:
            (plan,) = make_plans(github, listed, negatives=1)
            points, sent = hub.points(), hub.requests()
            with Run.open(Path(folder) / "run") as run:
                collect_from_github(run, listed, github, negatives=1)
                links = run.table("links").to_pylist()
        points, sent = hub.points() - points, hub.requests() - sent
    found = {(NAME, link["duplicate"]) for link in links} & set(made.duplicates)
    there, seen = Counter(made.shown_by.values()), Counter(made.shown_by[place] for place in found)
    recall = [f"{seen[kind] / there[kind]:.2f}" for kind in KINDS]
    yield _told(rate, "search first", plan.points, points, sent, len(found), recall)
    # Every page of a sweep costs the same, and it finds all: so it needn't be run to be counted.
    swept, pages = estimate("sweep", issues, plan.candidates, plan.searches, 1, None)
    yield _told(rate, "sweep", swept, swept, pages, len(made.duplicates), ["1.00"] * len(KINDS))


def _told(rate: float, way: str, told: int, points: int, sent: int, found: int, recall: list[str]) -> str:
    each = (f"{1000 * points / found:.0f}", f"{1000 * sent / found:.0f}")
    return f"| {' | '.join(map(str, [f'{rate:.0%}', way, told, points, sent, *each, *recall]))} |"


if __name__ == "__main__":
    main()
