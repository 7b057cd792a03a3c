"""The stage `issues` of a set that was published by ids: its issues alone, fetched by number or read from a dump."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.methods.references import known_as
from stscurate.methods.templates import Template, digest_of
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.services.github import GitHub
from stscurate.sources.collect import rows_of, tables_of
from stscurate.sources.dumps import Issue, issue_of, read_issues
from stscurate.sources.github.queries import MOST_ALIASES, Node, ids_query, queries_of, row_of, user_of
from stscurate.sources.github.repositories import describe
from stscurate.sources.github.tombstones import Tombstones
from stscurate.sources.lists import OptOut, hash_of
from stscurate.store import Run

_SHARD = 2_000  # issues

Place = tuple[str, int]
Batch = tuple[list[Issue], Tally]


def fetch_again(
    run: Run,
    wanted: Sequence[Place],
    *,
    github: GitHub | None = None,
    dump: Path | None = None,
    templates: Mapping[str, Template] | None = None,
    opt_out: OptOut = OptOut(),  # noqa: B008 - it can't be changed
    progress: Progress = silent,
) -> Entry:
    """Make the table `issues` of those that are wanted, (repository, number), as far as they are still there.

    They come from `github` or from `dump` (see `dumps`). An issue is kept under the name that it was wanted by, also
    where its repository was renamed since. Those that are gone are counted as dropped, by why. templates: what to take
    out of the texts, by repository, as found when the set was made: a part of the issues doesn't show it.
    opt_out: what is to be left out, now and by later calls (see `tombstones`); InputError where it names users, and
    the issues come from a dump, which is read without their names.
    """
    templates = templates or {}
    tombstones = Tombstones.begin(run.folder, opt_out, github)
    opt_out = tombstones.opt_out
    if dump and opt_out.all_accounts:
        raise InputError(
            f"{run.folder} is to leave users out (--opt-out), and a dump's issues are read without their names: "
            "take them from GitHub."
        )
    names = sorted(set(wanted))
    digest = hashlib.sha256("\n".join(f"{repository}#{number}" for repository, number in names).encode()).hexdigest()
    inputs = {"wanted": digest} | ({dump.resolve().name: fingerprint(dump)} if dump and dump.exists() else {})
    if templates:
        inputs["templates"] = digest_of(templates)
    if opt_out:
        inputs["opt-out"] = hash_of(opt_out)
    source = f"dump:{dump.resolve().name}" if dump else "github"
    settings = {"source": source, "wanted": len(names)}
    stage = run.stage("issues", tables=["issues", "links"], inputs=inputs, settings=settings)
    if stage.entry:
        return stage.entry
    if github:
        tombstones.cleanse(run.folder, github)
    else:
        tombstones.write(run.folder)
    left = [place for place in names if not opt_out.issue(*place)]
    done = 0
    batches = _from_dump(dump, left) if dump else _from_github(github, left, opt_out)
    if len(left) < len(names):
        batches = chain([_left_out(len(names) - len(left))], batches)
    for shard, (issues, tally) in enumerate(batches):
        if not stage.has(shard):
            made = [rows_of(issue, source, {}, tally) for issue in issues]
            stage.write(shard, tables_of(made, tally, templates), tally)
        done += tally.rows_in
        progress("issues", done, len(names))
    if github:
        tombstones.end(github)
    return stage.commit()


def _left_out(count: int) -> Batch:
    tally = Tally(rows_in=count)
    tally.drop("opted_out", count)
    return [], tally


def _from_dump(path: Path, wanted: Sequence[Place]) -> Iterator[Batch]:
    names = {(repository.lower(), number): repository for repository, number in wanted}
    for issues, _ in read_issues(path, size=_SHARD):
        keys = [(issue.repository.lower(), issue.number) for issue in issues]
        found = [issue for issue, key in zip(issues, keys, strict=True) if names.pop(key, None)]
        yield found, Tally(rows_in=len(found))
    tally = Tally(rows_in=len(names))
    tally.drop("not_in_the_dump", len(names))
    yield [], tally


def _from_github(github: GitHub | None, wanted: Sequence[Place], opt_out: OptOut) -> Iterator[Batch]:
    if github is None:
        raise TypeError("give github or dump")
    numbers: dict[str, list[int]] = defaultdict(list)
    for repository, number in wanted:
        numbers[repository].append(number)
    described = describe(github, list(numbers))
    query = queries_of(github).issues
    for repository, due in numbers.items():
        present = described[repository]
        if present and opt_out.repository(present.name):
            yield _left_out(len(due))
            continue
        if present is None:
            tally = Tally(rows_in=len(due))
            tally.drop("repository_gone", len(due))
            yield [], tally
            continue
        for start in range(0, len(due), _SHARD):
            yield _issues(github, query, repository, present.name, due[start : start + _SHARD], opt_out)


def _issues(
    github: GitHub, query: str, repository: str, present: str, numbers: Sequence[int], opt_out: OptOut
) -> Batch:
    """Issues of one repository, named as it was, by its `present` name."""
    tally = Tally(rows_in=len(numbers))
    owner, name = present.split("/")
    chunks = [numbers[at : at + MOST_ALIASES] for at in range(0, len(numbers), MOST_ALIASES)]
    updated: dict[str, str] = {}
    for data in github.map(lambda chunk: github.graphql(ids_query(chunk), {"owner": owner, "name": name}), chunks):
        updated |= {node["id"]: node["updatedAt"] for node in (data.get("repository") or {}).values() if node}
    nodes = github.nodes(query, updated, updated=updated)
    moved = {present.lower(): repository}
    there = [node for node in nodes.values() if node and node.get("number")]
    tally.drop("gone", len(numbers) - len(there))
    left = [node for node in there if not _is_left_out(node, present, opt_out)]
    tally.drop("opted_out", len(there) - len(left))
    found = [_issue(node, moved, tally) for node in left]
    return sorted(found, key=lambda issue: issue.number), tally


def _is_left_out(node: Node, repository: str, opt_out: OptOut) -> bool:
    return opt_out.user((user_of(node["author"]) or {}).get("login")) or opt_out.issue(repository, node["number"])


def _issue(node: Node, moved: Mapping[str, str], tally: Tally) -> Issue:
    row: dict[str, Any] = row_of(node, [])
    repository = known_as(node["repository"]["nameWithOwner"], moved)
    return issue_of(row, f"{repository}#{node['number']}", moved, tally)
