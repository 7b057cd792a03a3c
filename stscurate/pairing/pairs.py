"""The stage `pairs`: duplicates as positive pairs, others as negative ones, split by component."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.methods.components import components
from stscurate.pairing.corpus import Corpus
from stscurate.pairing.links import Duplicate, every_two, known_links, to_roots
from stscurate.pairing.negatives import draw_negatives
from stscurate.pairing.rows import fill_licences, pair_row
from stscurate.pairing.splits import SPLIT_BY, deal, deal_by_repository, deal_by_time
from stscurate.progress import Progress, silent
from stscurate.records import SPLITS, Tally, from_rows
from stscurate.store import Run

_SHARD = 10_000  # pairs


def make_pairs(
    run: Run,
    *,
    negatives: float = 1.0,
    lexical_share: float = 0.5,
    shares: Sequence[float] = (0.8, 0.1, 0.1),
    split_by: str = "component",
    near_duplicates: float = 0.8,
    all_pairs: bool = False,
    min_chars: int = 20,
    seed: int = 0,
    progress: Progress = silent,
) -> Entry:
    """Make the table `pairs` of the run's `issues` and `links`, with the licences of its `repositories` if it has them.

    negatives: negative pairs per positive one, in each split and repository; lexical_share of them, 0 to 1, are
    neighbours by BM25. shares: of train, validation and test among the positives. Whole components are dealt, by
    chance, by their latest issue's time (the newest test) or by repository (`split_by`). A component holds what links,
    equal texts and near duplicates join: texts whose sets of word sequences have a Jaccard similarity of
    `near_duplicates` or more; so no such two stand in two splits or make a negative pair. all_pairs: every two issues
    that links join are a positive pair, not only duplicate and original. min_chars: a text with fewer is left out.
    text1 is the issue that comes first by repository and number, whatever the label. InputError where an option is out
    of range or there are no duplicates to pair.
    """
    _check(negatives, lexical_share, shares, split_by, min_chars)
    licences = ["repositories"] if run.has("repositories") else []
    stage = run.stage(
        "pairs",
        tables=["pairs"],
        inputs={name: run.fingerprint(name) for name in ("issues", "links", *licences)},
        settings={
            "negatives": negatives,
            "lexical_share": lexical_share,
            "shares": list(shares),
            "split_by": split_by,
            "near_duplicates": near_duplicates,
            "all_pairs": all_pairs,
            "min_chars": min_chars,
        },
        seed=seed,
    )
    if stage.entry:
        return stage.entry
    tally = Tally()
    corpus = Corpus.of(run.table("issues"))
    links = known_links(corpus, run.table("links"), tally)
    component = _components(corpus, links, near_duplicates, tally)
    usable = [len(text) >= min_chars for text in corpus.normal]
    found = list(to_roots(corpus, links, tally))
    if all_pairs:
        found += every_two(corpus, links, found)
    positives = list(_positives(corpus, found, usable, tally))
    split = _deal(corpus, positives, component, split_by, shares, seed) if positives else {}
    dealt = [link for link in positives if component[link.duplicate] in split]
    tally.drop("component_in_two_splits", len(positives) - len(dealt))
    if not dealt:
        raise InputError(
            f"{run.folder} has no pair of duplicates (left out: {dict(tally.dropped) or 'nothing'}): "
            "collect more issues, or make pairs from their texts with stscurate sample-pairs."
        )
    rows = [_positive_row(corpus, link, component, split) for link in dealt]
    pools: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at in range(len(corpus)):
        if usable[at] and component[at] in split:
            pools[corpus.repositories[at], split[component[at]]].append(at)
    positive_rows = list(rows)
    for drawn in _negatives(
        corpus,
        positive_rows,
        pools,
        component,
        tally,
        negatives=negatives,
        lexical_share=lexical_share,
        seed=seed,
    ):
        rows += drawn
        progress("pairs", len(rows), None)
    rows.sort(key=lambda row: (row["repository"], corpus.index[row["id1"].lower()], corpus.index[row["id2"].lower()]))
    _prove_disjoint(rows, corpus, component)
    fill_licences(rows, run.table("repositories") if licences else None)
    _count(rows, tally)
    for shard, start in enumerate(range(0, len(rows), _SHARD)):
        if not stage.has(shard):
            table = from_rows(rows[start : start + _SHARD], "pairs")
            stage.write(shard, {"pairs": table}, Tally() if shard else tally)
    return stage.commit()


def _check(negatives: float, lexical_share: float, shares: Sequence[float], split_by: str, min_chars: int) -> None:
    if not 0 <= negatives < math.inf:
        raise InputError(f"negatives is {negatives}: give the number of negative pairs per positive one, 0 or more.")
    if not 0 <= lexical_share <= 1:
        raise InputError(f"lexical_share is {lexical_share}: give a share of the negative pairs, 0 to 1.")
    if split_by not in SPLIT_BY:
        raise InputError(f"split_by is {split_by!r}: give one of {', '.join(SPLIT_BY)}.")
    if len(shares) != len(SPLITS) or min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise InputError(f"shares are {list(shares)}: give three of {', '.join(SPLITS)} that add up to 1.")
    if min_chars < 1:
        raise InputError(f"min_chars is {min_chars}: an empty text can't be paired, so give 1 or more.")


def _components(corpus: Corpus, links: list[Duplicate], threshold: float, tally: Tally) -> list[int]:
    """Each issue's component, over links, equal texts and near duplicates: the smallest index in it."""
    joined = [*corpus.equal(), *((link.duplicate, link.canonical) for link in links)]
    near = corpus.nearly_equal(threshold)
    component = components(len(corpus), joined + near)
    tally.count("near_duplicates", "pairs_of_texts", len(near))
    fewer = len(set(components(len(corpus), joined))) - len(set(component))
    tally.count("near_duplicates", "components_merged_into_others", fewer)
    return component


def _deal(
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


def _positives(corpus: Corpus, links: list[Duplicate], usable: list[bool], tally: Tally) -> Iterator[Duplicate]:
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


def _negatives(
    corpus: Corpus,
    positives: list[dict[str, Any]],
    pools: dict[tuple[str, str], list[int]],
    component: list[int],
    tally: Tally,
    *,
    negatives: float,
    lexical_share: float,
    seed: int,
) -> Iterator[list[dict[str, Any]]]:
    """The negative rows of each repository and split, in their order."""
    used = {corpus.key(corpus.index[row["id1"].lower()], corpus.index[row["id2"].lower()]) for row in positives}
    before: Counter[str] = Counter()  # positives of the split: rounding in many repositories must not add up
    for group, count in sorted(Counter((row["repository"], row["split"]) for row in positives).items()):
        split = group[1]
        wanted = round(negatives * (before[split] + count)) - round(negatives * before[split])
        before[split] += count
        random = Random(f"{seed} {group}")
        drawn = draw_negatives(
            corpus, pools[group], component, wanted=wanted, lexical_share=lexical_share, used=used, random=random
        )
        rows = [_negative_row(corpus, *pair, split=split) for pair in drawn]
        if len(rows) < wanted:
            tally.count("negatives", "wanted_but_not_found", wanted - len(rows))
        yield rows


def _positive_row(corpus: Corpus, link: Duplicate, component: list[int], split: dict[int, str]) -> dict[str, Any]:
    root = component[link.duplicate]
    return pair_row(
        corpus,
        *sorted((link.duplicate, link.canonical)),
        label=1,
        split=split[root],
        origin=f"positive:{link.evidence}",
        component=corpus.ids[root],
        repository=corpus.repositories[link.duplicate],
        tier=link.tier,
    )


def _negative_row(corpus: Corpus, low: int, high: int, origin: str, *, split: str) -> dict[str, Any]:
    return pair_row(
        corpus,
        low,
        high,
        label=0,
        split=split,
        origin=f"negative:{origin}",
        component=None,  # the two stand in different ones
        repository=corpus.repositories[low],
        tier=None,
    )


def _prove_disjoint(rows: list[dict[str, Any]], corpus: Corpus, component: list[int]) -> None:
    """Raise if an issue, a text or a component stands in two splits: a fault of this module, never of the data."""
    home: dict[str, str] = {}
    for row in rows:
        for name in (row["id1"], row["id2"]):
            at = corpus.index[name.lower()]
            for key in (f"issue {name}", f"text {corpus.normal[at]}", f"component {component[at]}"):
                if home.setdefault(key, row["split"]) != row["split"]:
                    raise AssertionError(f"{key[:80]} stands in {home[key]} and in {row['split']}")


def _count(rows: list[dict[str, Any]], tally: Tally) -> None:
    for row in rows:
        tally.count("split", f"{row['split']} label {row['label']}")
        tally.count("origin", row["origin"])
        if row["tier"]:
            tally.count("tier", row["tier"])
        for flag in row["flags"]:
            tally.count("flags", flag)
