"""What the archive gave asked of GitHub again: only what is there today, as it is today, is kept."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil

from stscurate.records import Tally
from stscurate.services.github import GitHub
from stscurate.sources.comments import Link
from stscurate.sources.dumps import Issue
from stscurate.sources.github.fetch import Collector, Fetched, Place
from stscurate.sources.github.queries import Queries
from stscurate.sources.github.repositories import describe
from stscurate.sources.lists import OptOut


@dataclass
class Candidates:
    """What is to be asked about, by repository: issues with a link or a mark, what links name, and all others."""

    links: dict[str, set[tuple[int, Place]]] = field(default_factory=lambda: defaultdict(set))
    duplicates: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    originals: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    others: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, issue: Issue, links: list[Link], labels: frozenset[str]) -> None:
        """Sort an issue of the archive in."""
        marked = issue.state_reason == "duplicate" or any(label.lower() in labels for label in issue.labels)
        group = self.duplicates if links or marked else self.others
        group[issue.repository].add(issue.number)
        for link in links:
            self.links[issue.repository].add((issue.number, (link.repository, link.number)))
            self.originals[link.repository].add(link.number)


def hydrated(
    candidates: Candidates,
    github: GitHub,
    queries: Queries,
    *,
    negatives: float,
    opt_out: OptOut,
    moved: Mapping[str, str],
) -> Iterator[Fetched]:
    """The issues of each repository as GitHub has them, those that are gone dropped and counted by why.

    Beside the candidates and their originals, so many of the other issues as `negatives` per candidate are asked for,
    evenly by number; the rest is dropped.
    """
    names = sorted({*candidates.duplicates, *candidates.originals}, key=lambda name: (name.lower(), name))
    groups: dict[str, list[str]] = defaultdict(list)  # present name -> those that the archive and its comments use
    gone = Tally()
    asked = [name for name in names if not opt_out.repository(name)]
    described = dict.fromkeys(names) | describe(github, asked)
    for name, repository in described.items():
        if repository and not opt_out.repository(repository.name):
            groups[repository.name].append(name)
        else:
            reason = "repository_gone" if name in asked and not repository else "opted_out"
            _drop(gone, reason, len(candidates.duplicates[name] | candidates.originals[name]))
    yield Fetched([], gone, set())
    known = {**moved, **{name.lower(): present for present, group in groups.items() for name in group}}
    with ThreadPoolExecutor(1) as work:
        for present, group in groups.items():
            collector = Collector(github, queries, present, known, opt_out, work)
            yield _fetched(collector, candidates, group, negatives)


def _fetched(collector: Collector, candidates: Candidates, names: list[str], negatives: float) -> Fetched:
    """What is there of one repository."""
    duplicates, originals, others = (
        {number for name in names for number in numbers[name]}
        for numbers in (candidates.duplicates, candidates.originals, candidates.others)
    )
    collector.take_numbers(duplicates, comments=True, heading="candidates")
    collector.take_numbers(originals)
    collector.follow()
    rest = sorted(others - originals)
    wanted = min(ceil(negatives * len(duplicates)), len(rest))
    collector.take_numbers((rest[at * len(rest) // wanted] for at in range(wanted)), heading="for_negatives")
    fetched = collector.fetched()
    _drop(fetched.tally, "not_hydrated", len(rest) - wanted)
    for heading in ("candidates", "originals", "for_negatives"):
        for reason, count in fetched.tally.counts.get(heading, {}).items():
            if reason != "fetched":
                _drop(fetched.tally, reason, count)
    links = {link for name in names for link in candidates.links[name]}
    _count_confirmed(links, fetched, collector.moved)
    return fetched


def _count_confirmed(links: set[tuple[int, Place]], fetched: Fetched, moved: Mapping[str, str]) -> None:
    """How many of the archive's links GitHub's own answers give too."""
    found = {
        (link["duplicate"], link["canonical_repository"].lower(), link["canonical"])
        for made in fetched.made
        for link in made.links
    }
    for number, (named, original) in sorted(links):
        there = (number, moved.get(named.lower(), named).lower(), original) in found
        fetched.tally.count("links_of_the_archive", "confirmed" if there else "not_confirmed")


def _drop(tally: Tally, reason: str, rows: int) -> None:
    tally.rows_in += rows
    tally.drop(reason, rows)
