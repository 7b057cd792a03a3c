"""What search-first costs against reading every issue, and which duplicates it finds: against the local GitHub.

    scripts/fetch-schemas && PYTHONPATH=. python benchmarks/github_points.py

The repositories are made up, their duplicates known: some have nothing but an event, a label, a comment or a closing
reason. Points are those that the server counts by GitHub's documented formula. Printed as Markdown.
"""

import argparse
import tempfile
from collections import Counter
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
    """One row a rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--issues", type=int, default=20_000)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.02, 0.05, 0.15])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(
        "| duplicates | estimate | counted | per 1,000 found | sweep per 1,000 | ratio | recall: "
        + ", ".join(KINDS)
        + " |"
    )
    print("|---:|---:|---:|---:|---:|---:|---|")
    for rate in arguments.rates:
        print(_row(arguments.issues, rate, arguments.seed), flush=True)


def _row(issues: int, rate: float, seed: int) -> str:
    made = make_repository(NAME, issues=issues, duplicate_rate=rate, seed=seed)
    clock = FakeClock()
    with LocalGitHub(clock=clock, limits=NO_LIMITS) as hub, tempfile.TemporaryDirectory() as folder:
        hub.seed(made.issues, marks=made.marks)
        listed = [Listed(NAME, ("duplicate",))]
        with GitHub("token", url=hub.url, clock=clock.time, sleep=clock.sleep) as github:
            (plan,) = make_plans(github, listed, negatives=1)
            before = hub.points()
            with Run.open(Path(folder) / "run") as run:
                collect_from_github(run, listed, github, negatives=1)
                links = run.table("links").to_pylist()
        points = hub.points() - before
    found = {(NAME, link["duplicate"]) for link in links} & set(made.duplicates)
    sweep, _ = estimate("sweep", issues, plan.candidates, plan.searches, 1, None)
    each = 1000 * points / len(found)
    each_swept = 1000 * sweep / len(made.duplicates)
    there, seen = Counter(made.shown_by.values()), Counter(made.shown_by[place] for place in found)
    recall = ", ".join(f"{seen[kind] / there[kind]:.2f}" for kind in KINDS)
    cells = [f"{rate:.0%}", plan.points, points, f"{each:.0f}", f"{each_swept:.0f}", f"{each_swept / each:.1f}", recall]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
