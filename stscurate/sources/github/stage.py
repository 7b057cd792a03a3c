"""The stage `issues` from GitHub itself: a shard a repository, and one of originals that stand in another."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow.parquet as pq

from stscurate.manifest import Entry
from stscurate.methods.templates import Template, templates_of
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.services.github import GitHub
from stscurate.sources.collect import Made, tables_of
from stscurate.sources.github.fetch import Collector, Fetched, Place
from stscurate.sources.github.plan import Plan, make_plans
from stscurate.sources.github.queries import queries_of
from stscurate.sources.github.telling import Telling
from stscurate.sources.github.tombstones import Tombstones
from stscurate.sources.lists import Listed, OptOut, hash_of
from stscurate.store import Run, Stage

# Repositories whose rows are held in memory: also where fewer requests may be under way, for then the answers of
# some are worked on during the requests of others.
_AT_ONCE = 8


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

    What a broken-off collection has fetched is used again. A client with another `collection`, and the last one as
    `previous`, asks what has changed since. What is gone from GitHub by then, and what opt_out names, goes from the
    tables and from the client's answers; see `tombstones`.
    """
    tombstones = Tombstones.begin(run.folder, opt_out, github)
    opt_out = tombstones.opt_out
    stage = run.stage(
        "issues",
        tables=["issues", "links"],
        inputs={"opt-out": hash_of(opt_out)},
        settings={
            "source": "github",
            "collection": github.kept.collection,
            "repositories": [[listed.name, *listed.labels] for listed in repositories],
            "negatives": negatives,
            "max_issues": max_issues,
            "moved": {old.lower(): new for old, new in sorted((moved or {}).items())},
        },
    )
    if stage.entry:
        return stage.entry
    tombstones.cleanse(run.folder, github)
    plans = make_plans(github, repositories, negatives=negatives, max_issues=max_issues, opt_out=opt_out)
    queries = queries_of(github)
    known_as = {old.lower(): new for old, new in (moved or {}).items()}
    known_as |= {name.lower(): plan.repository for plan in plans for name in plan.listed}
    telling = Telling(github, plans, progress)
    github.heard = telling.heard
    with ThreadPoolExecutor(1) as work:  # makes rows and writes shards while others wait for answers

        def collector(plan: Plan) -> Collector:
            buried = tombstones.buried(plan.repository)
            return Collector(github, queries, plan.repository, known_as, opt_out, work, telling.took, buried)

        def fetch(shard: int) -> tuple[Future[set[Place]], set[Place]]:
            fetched = collector(plans[shard]).run(plans[shard], negatives=negatives, max_issues=max_issues)
            telling.finished(plans[shard])
            return work.submit(_write, stage, shard, fetched, templates), fetched.elsewhere

        templates: dict[str, Template] = {}
        there: set[Place] = set()
        elsewhere: set[Place] = set()
        for written, others in github.map(fetch, range(len(plans)), at_once=_AT_ONCE):
            there |= written.result()
            elsewhere |= others
        collectors = {plan.repository: collector(plan) for plan in plans}
        there |= _write(stage, len(plans), _originals_elsewhere(collectors, elsewhere, there), templates)
        if github.kept.previous is not None:
            tombstones.bury(_gone(run, collectors, there), there)
            tombstones.write(run.folder)
    tombstones.end(github)
    return stage.commit()


def _gone(run: Run, collectors: Mapping[str, Collector], there: set[Place]) -> dict[Place, str]:
    """Issues of the finished stage that GitHub has no more, and why."""
    folder = run.folder / "issues"
    if not folder.is_dir():
        return {}
    old = pq.read_table(folder, columns=["repository", "number"], partitioning=None).to_pylist()
    missing = {(row["repository"], row["number"]) for row in old} - there
    found: dict[Place, str] = {}
    for repository, collector in collectors.items():
        due = sorted(number for name, number in missing if name == repository)
        found |= {(repository, number): why for number, why in collector.why_missing(due).items()}
    return found


def _write(stage: Stage, shard: int, fetched: Fetched, templates: dict[str, Template]) -> set[Place]:
    """Write a shard where it isn't there already; gives the places of its issues.

    templates: of the repositories so far, by name; that of a repository is known by its own shard.
    """
    found = templates_of((each.issue["repository"], each.issue["body"]) for each in fetched.made)
    templates |= {repository: template for repository, template in found.items() if repository not in templates}
    if not stage.has(shard):
        stage.write(shard, tables_of(fetched.made, fetched.tally, templates), fetched.tally)
    return {(each.issue["repository"], each.issue["number"]) for each in fetched.made}


def _originals_elsewhere(collectors: Mapping[str, Collector], wanted: set[Place], there: set[Place]) -> Fetched:
    """Originals of other repositories' duplicates. Those of repositories that aren't listed are only counted."""
    tally = Tally()
    made: list[Made] = []
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
            made += fetched.made
            tally.add(fetched.tally)
        else:
            tally.count("originals", "in_repositories_not_listed", len(due))
    return Fetched(made, tally, set())
