"""The pairing done again without its chance, to see what became of each link: the same functions, watched."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from stscurate.errors import InputError
from stscurate.methods.components import components
from stscurate.methods.near_duplicates import shingles
from stscurate.pairing.corpus import Corpus
from stscurate.pairing.links import Duplicate, every_two, known_links, to_roots
from stscurate.pairing.positives import deal_components, edges, pairable
from stscurate.records import Tally
from stscurate.store import Run

_Given = TypeVar("_Given")


@dataclass
class _Watched(Tally):
    """A tally that remembers the order of what was dropped."""

    order: list[Any] = field(default_factory=list)

    def drop(self, reason: str, rows: int = 1) -> None:
        """Count and remember."""
        super().drop(reason, rows)
        self.order += [reason] * rows


@dataclass(frozen=True)
class Fate:
    """What became of a link: the pair it was carried on to, by index, and why that was dropped; None where kept."""

    link: Duplicate
    pair: Duplicate | None
    reason: str | None


class Replay:
    """What `make_pairs` found on its way, by the settings that the run's pairs were made by."""

    def __init__(self, run: Run):
        done = run.entries.get("pairs")
        if done is None or "near_duplicates" not in done.key["settings"]:
            raise InputError(f"The pairs of {run.folder} weren't made of issues: only a pair_id can be traced there.")
        self.settings: dict[str, Any] = done.key["settings"]
        self.seed = int(done.key["seed"])
        self.corpus = Corpus.of(run.table("issues"))
        self.table = run.table("links")
        self.links = known_links(self.corpus, self.table, Tally())
        self.usable = [len(text) >= self.settings["min_chars"] for text in self.corpus.normal]

    @cached_property
    def neighbours(self) -> dict[int, dict[int, str]]:
        """Issue -> issues that it is joined to, and by what; a link goes before an equal text before a near one."""
        found: dict[int, dict[int, str]] = defaultdict(dict)
        joined, near = edges(self.corpus, self.links, self.settings["near_duplicates"])
        linked = {frozenset((link.duplicate, link.canonical)) for link in self.links}
        for pairs, by in ((joined, "equal texts"), (near, "near duplicates")):
            for one, other in pairs:
                if one != other:
                    what = "link" if frozenset((one, other)) in linked else by
                    found[one].setdefault(other, what)
                    found[other].setdefault(one, what)
        return found

    @cached_property
    def component(self) -> list[int]:
        """Each issue's component: the smallest index in it."""
        pairs = ((one, other) for one, others in self.neighbours.items() for other in others)
        return components(len(self.corpus), pairs)

    @cached_property
    def fates(self) -> list[Fate]:
        """Of each known link."""
        pairs = [pair for pair, _ in self._carried if pair]
        if self.settings["all_pairs"]:
            pairs += every_two(self.corpus, self.links, pairs)
        pairs.sort(key=lambda pair: (pair.tier, pair.duplicate, pair.canonical))  # as `pairable` goes through them
        tally = _Watched()
        reasons: dict[Duplicate, list[str | None]] = defaultdict(list)
        kept = []
        for pair, what in _watched(pairable(self.corpus, pairs, self.usable, tally), pairs, tally):
            reasons[pair].append(what if isinstance(what, str) else None)
            if not isinstance(what, str):
                kept.append(pair)
        self._split: dict[int, str] = {}
        if kept:
            way = self.settings["split_by"], self.settings["shares"]
            self._split = deal_components(self.corpus, kept, self.component, *way, self.seed)
        fates = []
        for link, (carried, why) in zip(self.links, self._carried, strict=True):
            if carried:
                why = reasons[carried].pop(0)
                if why is None and self.component[carried.duplicate] not in self._split:
                    why = "component_in_two_splits"
            fates.append(Fate(link, carried, why))
        return fates

    @property
    def split(self) -> dict[int, str]:
        """Component -> split."""
        _ = self.fates
        return self._split

    @cached_property
    def _carried(self) -> list[tuple[Duplicate | None, str | None]]:
        """For each known link the pair of duplicate and root, or why there is none."""
        tally = _Watched()
        found = _watched(to_roots(self.corpus, self.links, tally), self.links, tally)
        return [(None, what) if isinstance(what, str) else (what, None) for _, what in found]

    def way(self, one: int, other: int) -> list[int]:
        """The shortest way from one issue to the other by what joins them; empty outside of one component."""
        before: dict[int, int] = {one: one}
        due = deque([one])
        while due and other not in before:
            at = due.popleft()
            for following in sorted(self.neighbours[at]):
                if following not in before:
                    before[following] = at
                    due.append(following)
        if other not in before:
            return []
        way = [other]
        while way[-1] != one:
            way.append(before[way[-1]])
        return way[::-1]

    def joined_by(self, one: int, other: int) -> str:
        """What joins two neighbours, in words."""
        by = self.neighbours[one][other]
        if by == "link":
            link = min(
                (link for link in self.links if {link.duplicate, link.canonical} == {one, other}),
                key=lambda link: link.tier,
            )
            return f"a link of tier {link.tier} ({link.evidence})"
        if by == "near duplicates":
            sets = shingles(self.corpus.texts[one]), shingles(self.corpus.texts[other])
            return f"near duplicates (Jaccard {len(sets[0] & sets[1]) / len(sets[0] | sets[1]):.2f})"
        return by

    def why_unknown(self, row: int) -> str:
        """Why row `row` of the table of links is no known link."""
        tally = Tally()
        known_links(self.corpus, self.table.slice(row, 1), tally)
        return next(iter(tally.dropped))

    def positives_in(self, repository: str, split: str) -> int:
        """How many positive pairs a repository has in a split, for each of which negatives were wanted."""
        pairs = {fate.pair for fate in self.fates if fate.pair and fate.reason is None}
        counted = Counter(
            (self.corpus.repositories[pair.duplicate], self.split[self.component[pair.duplicate]]) for pair in pairs
        )
        return counted[repository, split]


def link_rows(table: pa.Table, names: Sequence[str]) -> list[tuple[int, dict[str, Any]]]:
    """(row, values) of the links that name any of these issues, in lower case."""
    wanted = set(names)
    found = []
    for row, link in enumerate(table.to_pylist()):
        sides = {f"{link['repository']}#{link['duplicate']}", f"{link['canonical_repository']}#{link['canonical']}"}
        if wanted & {side.lower() for side in sides}:
            found.append((row, link))
    return found


def _watched(results: Iterable[Any], given: Sequence[_Given], tally: _Watched) -> list[tuple[_Given, Any]]:
    """Each of `given`, which a function takes in order, with what came of it or the reason why it was dropped."""
    for result in results:
        tally.order.append(result)
    return list(zip(given, tally.order, strict=True))
