"""The stage `issues` from GitHub itself: a shard a repository, and one of originals that stand in another."""

import dataclasses
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.services.github import GitHub
from stscurate.sources.collect import tables_of
from stscurate.sources.dumps import Issue
from stscurate.sources.github.fetch import Collector, Fetched, Place
from stscurate.sources.github.plan import Plan, make_plans
from stscurate.sources.github.queries import queries_of
from stscurate.sources.lists import Listed, OptOut
from stscurate.store import Run

_AT_ONCE = 4  # repositories whose issues are held in memory


def collect_from_github(
    run: Run,
    repositories: Sequence[Listed],
    github: GitHub,
    *,
    negatives: float = 1.0,
    max_issues: int | None = None,
    opt_out: OptOut = OptOut(),  # noqa: B008 - it can't be changed
    moved: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> Entry:
    """Collect duplicates, their originals and issues for negatives into the run's tables `issues` and `links`.

    negatives: further issues per duplicate. max_issues: of a repository, originals aside. moved: old -> new name
    of renamed repositories, beside those that GitHub tells of.

    What a broken-off collection has fetched is used again. A client with another `collection` counts and searches
    anew, and fetches those issues anew that have changed; what is gone from GitHub is gone from the tables then.
    """
    stage = run.stage(
        "issues",
        tables=["issues", "links"],
        inputs={"opt-out": _hash(opt_out)},
        settings={
            "source": "github",
            "collection": github.collection,
            "repositories": [[listed.name, *listed.labels] for listed in repositories],
            "negatives": negatives,
            "max_issues": max_issues,
            "moved": {old.lower(): new for old, new in sorted((moved or {}).items())},
        },
    )
    if stage.entry:
        return stage.entry
    plans = make_plans(github, repositories, negatives=negatives, max_issues=max_issues, opt_out=opt_out)
    queries = queries_of(github)
    known_as = {old.lower(): new for old, new in (moved or {}).items()}
    known_as |= {name.lower(): plan.repository for plan in plans for name in plan.listed}

    def collector(plan: Plan) -> Collector:
        return Collector(github, queries, plan.repository, known_as, opt_out)

    def fetch(plan: Plan) -> Fetched:
        return collector(plan).run(plan, negatives=negatives, max_issues=max_issues)

    there: set[Place] = set()
    elsewhere: set[Place] = set()
    total = sum(plan.points for plan in plans)
    github.heard = lambda: progress(_label(github), github.points, max(total, github.points))
    for shard, fetched in enumerate(github.map(fetch, plans, at_once=_AT_ONCE)):
        if not stage.has(shard):
            stage.write(shard, tables_of(fetched.issues, "github", known_as, fetched.tally), fetched.tally)
        there |= {(issue.repository, issue.number) for issue in fetched.issues}
        elsewhere |= fetched.elsewhere
    if not stage.has(len(plans)):
        collectors = {plan.repository: collector(plan) for plan in plans}
        issues, tally = _originals_elsewhere(collectors, elsewhere, there)
        stage.write(len(plans), tables_of(issues, "github", known_as, tally), tally)
    return stage.commit()


def _originals_elsewhere(
    collectors: Mapping[str, Collector], wanted: set[Place], there: set[Place]
) -> tuple[list[Issue], Tally]:
    """Originals of other repositories' duplicates. Those of repositories that aren't listed are only counted."""
    tally = Tally()
    issues: list[Issue] = []
    numbers: dict[str, list[int]] = defaultdict(list)
    for repository, number in sorted(wanted - there):
        numbers[repository].append(number)
    for repository, due in numbers.items():
        if repository in collectors:
            collector = collectors[repository]
            collector.asked.update(number for name, number in there if name == repository)
            collector.take_numbers(due)
            collector.follow()
            fetched = collector.fetched()
            issues += fetched.issues
            tally.add(fetched.tally)
        else:
            tally.count("originals", "in_repositories_not_listed", len(due))
    return issues, tally


def _label(github: GitHub) -> str:
    return f"{github.points_left or 0:,} points left, all again in {github.resets_in / 60:.0f} min; spent"


def _hash(opt_out: OptOut) -> str:
    """What is left out shapes the result; the manifest isn't to name it."""
    plain = [sorted(value) for value in dataclasses.astuple(opt_out)]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
