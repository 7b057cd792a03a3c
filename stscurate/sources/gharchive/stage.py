"""Two stages of GH Archive: `archive`, its files read into events, and `issues`, those events merged by issue."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.methods.templates import Template, templates_of
from stscurate.progress import Progress, silent
from stscurate.records import EVENTS, Tally
from stscurate.services.github import GitHub
from stscurate.sources.collect import Made, rows_of, tables_of
from stscurate.sources.comments import duplicate_links
from stscurate.sources.gharchive.hours import archive_files, count_missing, is_archive
from stscurate.sources.gharchive.hydrate import Candidates, hydrated
from stscurate.sources.gharchive.merging import find_wanted, first_bodies, merged_issues
from stscurate.sources.gharchive.reading import PARTS, Task, read_files
from stscurate.sources.github.queries import queries_of
from stscurate.sources.github.tombstones import Tombstones
from stscurate.sources.lists import Listed, OptOut, hash_of
from stscurate.store import Run, Stage

_SHARD = 2_000  # issues
_USUAL_LABELS = ("duplicate",)


def read_archive(
    run: Run,
    path: Path,
    *,
    repositories: Sequence[Listed] | None = None,
    opt_out: OptOut = OptOut(),  # noqa: B008 - it can't be changed
    workers: int | None = None,
    progress: Progress = silent,
) -> Entry:
    """Read the events of issues of an hour's file, or a folder of them, into the run's table `events`.

    repositories: only theirs; all without any. workers: processes, one a file; as many as cores without it. The
    result is the same with any number of them, and finished files aren't read again after a kill.
    opt_out: what is to be left out, now and by later calls (see `tombstones`).
    InputError for a file that isn't the archive's.
    """
    files = archive_files(path)
    if not is_archive(path):
        raise InputError(f"{path} isn't GH Archive: it doesn't begin with an event in JSON. Give hours as downloaded.")
    tombstones = Tombstones.begin(run.folder, opt_out)
    opt_out = tombstones.opt_out
    listed = None if repositories is None else frozenset(found.name.lower() for found in repositories)
    stage = run.stage(
        "archive",
        tables=["events"],
        inputs={path.resolve().name: fingerprint(path), "opt-out": hash_of(opt_out)},
        settings={"source": path.resolve().name, "repositories": None if listed is None else sorted(listed)},
    )
    if stage.entry:
        return stage.entry
    tombstones.write(run.folder)
    tasks = [
        Task(index, file, file.name if path.is_file() else file.relative_to(path).as_posix(), listed, opt_out)
        for index, file in enumerate(files)
        if not stage.has(index * PARTS)
    ]
    done = len(files) - len(tasks)
    for part in read_files(tasks, workers or len(os.sched_getaffinity(0))):
        stage.write(part.file * PARTS + part.number, {"events": part.events}, part.tally)
        done += part.number == 0
        progress("files", done, len(files))
    tally = Tally()
    count_missing(files, tally)
    stage.write(len(files) * PARTS, {"events": EVENTS.empty_table()}, tally)
    return stage.commit()


def collect_from_archive(
    run: Run,
    *,
    repositories: Sequence[Listed] | None = None,
    opt_out: OptOut = OptOut(),  # noqa: B008 - it can't be changed
    moved: Mapping[str, str] | None = None,
    github: GitHub | None = None,
    negatives: float = 1.0,
    progress: Progress = silent,
) -> Entry:
    """Merge the run's events into the tables `issues` and `links`. What comes of it are candidates.

    repositories: all their issues are kept; without any, those that may be in a pair. github: candidates are
    confirmed by it, and those that are gone dropped; negatives: then so many other issues per candidate.
    opt_out: beside what the run was told before, nothing of which is asked of GitHub or kept of its answers.
    """
    tombstones = Tombstones.begin(run.folder, opt_out, github)
    moved = {old.lower(): new for old, new in sorted((moved or {}).items())}
    labels = frozenset(label.lower() for found in repositories or () for label in found.labels) or _USUAL_LABELS
    name = str(run.entries["archive"].key["settings"]["source"])
    settings = {"source": f"gharchive:{name}", "moved": moved, "labels": sorted(labels), "hydrate": github is not None}
    inputs = {"events": run.fingerprint("events")}
    if github:
        settings |= {"negatives": negatives, "collection": github.kept.collection}
        inputs["opt-out"] = hash_of(tombstones.opt_out)
    stage = run.stage("issues", tables=["issues", "links"], inputs=inputs, settings=settings)
    if stage.entry:
        return stage.entry
    if github:
        tombstones.cleanse(run.folder, github)
    merge = _Merge(run, stage, f"gharchive:{name}", moved, frozenset(labels), progress)
    merge.run(everything=repositories is not None, hydrate=github is not None)
    if github:
        merge.hydrate(github, negatives, tombstones.opt_out)
        tombstones.end(github)
    merge.finish()
    return stage.commit()


class _Merge:
    """The stage `issues` at work: what it has written so far, and which places it has met."""

    def __init__(
        self, run: Run, stage: Stage, source: str, moved: Mapping[str, str], labels: frozenset[str], progress: Progress
    ):
        self.events = sorted((run.folder / "events").glob("*.parquet"))
        self.stage = stage
        self.source = source
        self.moved = moved
        self.labels = labels
        self.progress = progress
        self.templates: Mapping[str, Template] | None = None  # a shard of GitHub's own answers shows its own
        self.candidates = Candidates()
        self.there: set[tuple[str, int]] = set()
        self.named: list[tuple[str, int]] = []  # the originals of all links
        self.shard = 0

    def run(self, *, everything: bool, hydrate: bool) -> None:
        """Merge the events by issue, and write the issues; those that are to be hydrated are only noted."""
        wanted = find_wanted(self.events, everything=everything, closed=hydrate, moved=self.moved, labels=self.labels)
        if not hydrate:
            self.templates = templates_of(first_bodies(self.events, wanted, moved=self.moved))
        made: list[Made] = []
        tally = Tally()
        for issue, found in merged_issues(self.events, wanted, self.stage.scratch, moved=self.moved):
            tally.add(found)
            if issue and hydrate:
                self.candidates.add(issue, duplicate_links(issue, Tally(), moved=self.moved), self.labels)
            elif issue:
                made.append(rows_of(issue, self.source, self.moved, tally))
                if len(made) == _SHARD:
                    self.write(made, tally)
                    made, tally = [], Tally()
        self.write(made, tally)

    def hydrate(self, github: GitHub, negatives: float, opt_out: OptOut) -> None:
        """Write what GitHub has of the candidates, a shard a repository."""
        found = hydrated(
            self.candidates, github, queries_of(github), negatives=negatives, opt_out=opt_out, moved=self.moved
        )
        for fetched in found:
            self.write(fetched.made, fetched.tally)

    def write(self, made: list[Made], tally: Tally) -> None:
        """Write a shard, unless a call that was killed has."""
        if not self.stage.has(self.shard):
            self.stage.write(self.shard, tables_of(made, tally, self.templates), tally)
        self.there |= {(each.issue["repository"].lower(), each.issue["number"]) for each in made}
        links = (link for each in made for link in each.links)
        self.named += [(link["canonical_repository"].lower(), link["canonical"]) for link in links]
        self.shard += 1
        self.progress("issues", len(self.there), None)

    def finish(self) -> None:
        """Count the links whose original no event has shown."""
        tally = Tally()
        missing = sum(place not in self.there for place in self.named)
        if missing:
            tally.count("links", "original_not_in_archive", missing)
        self.stage.write(self.shard, tables_of([], tally), tally)
