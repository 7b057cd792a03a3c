"""Duplicates as positive pairs, and the split of every component."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stscurate.errors import InputError
from stscurate.methods.components import components
from stscurate.pairing.corpus import Corpus
from stscurate.pairing.links import Duplicate, every_two, known_links, to_roots
from stscurate.pairing.rows import pair_row
from stscurate.pairing.splits import deal, deal_by_repository, deal_by_time
from stscurate.records import Tally

Edge = tuple[int, int]


@dataclass(frozen=True)
class Positives:
    """The pairs of duplicates, and of each issue its component, whether its text is long enough, and its split."""

    links: list[Duplicate]
    component: list[int]
    usable: list[bool]
    split: dict[int, str]  # by component

    def rows(self, corpus: Corpus) -> list[dict[str, Any]]:
        """The rows of `pairs`."""
        return [
            pair_row(
                corpus,
                *sorted((link.duplicate, link.canonical)),
                label=1,
                split=self.split[self.component[link.duplicate]],
                origin=f"positive:{link.evidence}",
                component=corpus.ids[self.component[link.duplicate]],
                repository=corpus.repositories[link.duplicate],
                tier=link.tier,
            )
            for link in self.links
        ]

    def pools(self, corpus: Corpus) -> dict[tuple[str, str], list[int]]:
        """The issues that pairs may be made of, by repository and split."""
        pools: dict[tuple[str, str], list[int]] = defaultdict(list)
        for at, name in enumerate(self.component):
            if self.usable[at] and name in self.split:
                pools[corpus.repositories[at], self.split[name]].append(at)
        return pools


def find_positives(
    corpus: Corpus,
    table: pa.Table,
    tally: Tally,
    *,
    shares: Sequence[float],
    split_by: str,
    near_duplicates: float,
    all_pairs: bool,
    min_chars: int,
    seed: int,
) -> Positives:
    """Those of the table `links` whose components stand in one split; options as of `make_pairs`.

    InputError where there are none.
    """
    links = known_links(corpus, table, tally)
    component = _components(corpus, links, near_duplicates, tally)
    usable = [len(text) >= min_chars for text in corpus.normal]
    if not all(usable):
        tally.count("issues", "text_too_short", usable.count(False))
    found = list(to_roots(corpus, links, tally))
    if all_pairs:
        found += every_two(corpus, links, found)
    positives = list(pairable(corpus, found, usable, tally))
    split = deal_components(corpus, positives, component, split_by, shares, seed) if positives else {}
    dealt = [link for link in positives if component[link.duplicate] in split]
    tally.drop("component_in_two_splits", len(positives) - len(dealt))
    if not dealt:
        raise InputError(
            f"There is no pair of duplicates (left out: {dict(tally.dropped) or 'nothing'}): "
            "collect more issues, or make pairs from their texts with stscurate sample-pairs."
        )
    return Positives(dealt, component, usable, split)


def edges(corpus: Corpus, links: list[Duplicate], threshold: float) -> tuple[list[Edge], list[Edge]]:
    """What joins issues: links and equal texts; near duplicates."""
    joined = [*corpus.equal(), *((link.duplicate, link.canonical) for link in links)]
    return joined, corpus.nearly_equal(threshold)


def _components(corpus: Corpus, links: list[Duplicate], threshold: float, tally: Tally) -> list[int]:
    """Each issue's component, over links, equal texts and near duplicates: the smallest index in it."""
    joined, near = edges(corpus, links, threshold)
    component = components(len(corpus), joined + near)
    tally.count("near_duplicates", "pairs_of_texts", len(near))
    fewer = len(set(components(len(corpus), joined))) - len(set(component))
    tally.count("near_duplicates", "components_merged_into_others", fewer)
    return component


def deal_components(
    corpus: Corpus, positives: list[Duplicate], component: list[int], split_by: str, shares: Sequence[float], seed: int
) -> dict[int, str]:
    """Component -> split, by the way named; components that stand in two splits are left out."""
    if split_by == "repository":
        repositories = Counter(corpus.repositories[link.duplicate] for link in positives)
        return deal_by_repository(corpus, component, repositories, shares, seed=seed)
    pairs = Counter(component[link.duplicate] for link in positives)
    if split_by == "time":
        return deal_by_time(corpus, component, pairs, shares)
    return deal(component, pairs, shares, seed=seed)


def pairable(corpus: Corpus, links: list[Duplicate], usable: list[bool], tally: Tally) -> Iterator[Duplicate]:
    """The links that make a pair: both texts long enough and not equal, each pair of texts once, by its surest."""
    used = set()
    for link in sorted(links, key=lambda link: (link.tier, link.duplicate, link.canonical)):
        key = corpus.key(link.duplicate, link.canonical)
        if not (usable[link.duplicate] and usable[link.canonical]):
            tally.drop("text_too_short")
        elif key[0] == key[1]:
            tally.drop("identical_texts")  # nothing to learn from them, and any model gets them right
        elif key in used:
            tally.drop("repeated_pair")
        else:
            used.add(key)
            yield link
