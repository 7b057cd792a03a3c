"""The stage `pairs`: duplicates as positive pairs, others as negative ones, split by component."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.pairing.corpus import Corpus
from stscurate.pairing.links import Duplicate, known_links, to_roots
from stscurate.pairing.negatives import draw_negatives
from stscurate.pairing.rows import pair_row
from stscurate.pairing.splits import deal
from stscurate.progress import Progress, silent
from stscurate.records import SPLITS, Tally, from_rows
from stscurate.store import Run

_SHARD = 10_000  # pairs


def make_pairs(
    run: Run,
    *,
    negatives: float = 1.0,
    shares: Sequence[float] = (0.8, 0.1, 0.1),
    min_chars: int = 20,
    seed: int = 0,
    progress: Progress = silent,
) -> Entry:
    """Make the table `pairs` of the run's `issues` and `links`.

    negatives: negative pairs per positive one, in each split and repository. shares: of train, validation and
    test among the positives; whole components are dealt, so that no issue and no text stands in two splits.
    min_chars: a text with fewer is left out. text1 is the issue that comes first by repository and number,
    whatever the label. InputError where an option is out of range or there are no duplicates to pair.
    """
    _check(negatives, shares, min_chars)
    stage = run.stage(
        "pairs",
        tables=["pairs"],
        inputs={name: run.fingerprint(name) for name in ("issues", "links")},
        settings={"negatives": negatives, "shares": list(shares), "min_chars": min_chars},
        seed=seed,
    )
    if stage.entry:
        return stage.entry
    tally = Tally()
    corpus = Corpus.of(run.table("issues"))
    links = known_links(corpus, run.table("links"), tally)
    component = corpus.components((link.duplicate, link.canonical) for link in links)
    usable = [len(text) >= min_chars for text in corpus.normal]
    positives = list(_positives(corpus, list(to_roots(corpus, links, tally)), usable, tally))
    if not positives:
        raise InputError(
            f"{run.folder} has no pair of duplicates (left out: {dict(tally.dropped) or 'nothing'}): "
            "collect more issues, or make pairs from their texts with stscurate sample-pairs."
        )
    split = deal(component, Counter(component[link.duplicate] for link in positives), shares, seed=seed)
    rows = [_positive_row(corpus, link, component, split) for link in positives]
    pools: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at in range(len(corpus)):
        if usable[at]:
            pools[corpus.repositories[at], split[component[at]]].append(at)
    used = {corpus.key(link.duplicate, link.canonical) for link in positives}
    for group, found in sorted(Counter((row["repository"], row["split"]) for row in rows).items()):
        wanted, random = round(negatives * found), Random(f"{seed} {group}")
        drawn = list(draw_negatives(corpus, pools[group], component, wanted=wanted, used=used, random=random))
        rows += [_negative_row(corpus, *pair, split=group[1]) for pair in drawn]
        if len(drawn) < wanted:
            tally.count("negatives", "wanted_but_not_found", wanted - len(drawn))
        progress("pairs", len(rows), None)
    rows.sort(key=lambda row: (row["repository"], corpus.index[row["id1"].lower()], corpus.index[row["id2"].lower()]))
    _prove_disjoint(rows, corpus)
    _count(rows, tally)
    for shard, start in enumerate(range(0, len(rows), _SHARD)):
        if not stage.has(shard):
            table = from_rows(rows[start : start + _SHARD], "pairs")
            stage.write(shard, {"pairs": table}, Tally() if shard else tally)
    return stage.commit()


def _check(negatives: float, shares: Sequence[float], min_chars: int) -> None:
    if not 0 <= negatives < math.inf:
        raise InputError(f"negatives is {negatives}: give the number of negative pairs per positive one, 0 or more.")
    if len(shares) != len(SPLITS) or min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise InputError(f"shares are {list(shares)}: give three of {', '.join(SPLITS)} that add up to 1.")
    if min_chars < 1:
        raise InputError(f"min_chars is {min_chars}: an empty text can't be paired, so give 1 or more.")


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


def _prove_disjoint(rows: list[dict[str, Any]], corpus: Corpus) -> None:
    """Raise if an issue or a text stands in two splits: that would be a fault of this module, never of the data."""
    home: dict[str, str] = {}
    for row in rows:
        for name in (row["id1"], row["id2"]):
            for key in (f"issue {name}", f"text {corpus.normal[corpus.index[name.lower()]]}"):
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
