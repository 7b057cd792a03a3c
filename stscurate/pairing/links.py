"""Duplicate links between known issues, and the original at the end of each chain of them."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa

from stscurate.methods.components import components
from stscurate.pairing.corpus import Corpus
from stscurate.records import Tally


@dataclass(frozen=True)
class Duplicate:
    """Said of two issues, by index: the first is a duplicate of the second."""

    duplicate: int
    canonical: int
    tier: int
    evidence: str


def known_links(corpus: Corpus, links: pa.Table, tally: Tally) -> list[Duplicate]:
    """The links whose issues are both there; "canonical_missing" are counted."""
    found = []
    names = ("repository", "duplicate", "canonical_repository", "canonical", "tier", "evidence")
    for row in links.select(names).to_pylist():
        tally.rows_in += 1
        duplicate = corpus.index.get(f"{row['repository']}#{row['duplicate']}".lower())
        canonical = corpus.index.get(f"{row['canonical_repository']}#{row['canonical']}".lower())
        if duplicate is None or canonical is None:
            tally.drop("canonical_missing" if canonical is None else "duplicate_missing")
        else:
            found.append(Duplicate(duplicate, canonical, row["tier"], row["evidence"]))
    return sorted(found, key=lambda link: (link.duplicate, link.canonical))


def to_roots(corpus: Corpus, links: list[Duplicate], tally: Tally) -> Iterator[Duplicate]:
    """Each link carried on to the root of its chain, no surer than the chain's weakest link.

    A chain follows an issue's surest link, the older original where two are as sure. Where it runs into a cycle
    the oldest issue of the cycle is the root.
    """
    onward: dict[int, Duplicate] = {}
    for link in links:
        known = onward.get(link.duplicate)
        if known is None or (link.tier, _age(corpus, link.canonical)) < (known.tier, _age(corpus, known.canonical)):
            onward[link.duplicate] = link
    roots: dict[int, tuple[int, int]] = {}
    for link in links:
        root, tier = _root(corpus, onward, roots, link.canonical)
        if root == link.duplicate:
            tally.drop("root_of_a_cycle")
            continue
        if root != link.canonical:
            tally.count("chains", "carried_to_the_root")
        yield Duplicate(link.duplicate, root, max(tier, link.tier), link.evidence)


def every_two(corpus: Corpus, links: list[Duplicate], known: list[Duplicate]) -> Iterator[Duplicate]:
    """Every two issues that links join by any way, but for those known; no surer than the surest way's weakest link."""
    seen = {frozenset((link.duplicate, link.canonical)) for link in known}
    for tier in sorted({link.tier for link in links}):
        joined = components(len(corpus), ((link.duplicate, link.canonical) for link in links if link.tier <= tier))
        groups: dict[int, list[int]] = defaultdict(list)
        for at, name in enumerate(joined):
            groups[name].append(at)
        for members in groups.values():
            for low, high in combinations(members, 2):
                if frozenset((low, high)) not in seen:
                    seen.add(frozenset((low, high)))
                    yield Duplicate(high, low, tier, "same_component")


def _root(
    corpus: Corpus, onward: dict[int, Duplicate], roots: dict[int, tuple[int, int]], start: int
) -> tuple[int, int]:
    """(root, least sure tier on the way) from `start`; what is known is kept in `roots`: no chain is walked twice."""
    walked: dict[int, None] = {}  # in order
    at = start
    while at not in roots and at not in walked and at in onward:
        walked[at] = None
        at = onward[at].canonical
    if at in walked:  # back in the chain: from there on it is a cycle
        cycle = list(walked)[list(walked).index(at) :]
        oldest = min(cycle, key=lambda member: _age(corpus, member))
        roots.update(dict.fromkeys(cycle, (oldest, max(onward[member].tier for member in cycle))))
    else:
        roots.setdefault(at, (at, 1))
    for member in reversed(walked):
        if member not in roots:
            root, tier = roots[onward[member].canonical]
            roots[member] = (root, max(tier, onward[member].tier))
    return roots[start]


def _age(corpus: Corpus, at: int) -> tuple[float, int]:
    created = corpus.created[at]
    return (created.timestamp() if created else float("inf"), at)
