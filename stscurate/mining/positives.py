"""Pairs -> positives, the texts to mine in, and which texts are one thing, so that neither is the other's negative."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.components import components
from stscurate.methods.near_duplicates import near_duplicates
from stscurate.methods.texts import normalise
from stscurate.records import Tally
from stscurate.tables import Source

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Positives:
    """Different texts; `pairs` of them, (anchor, positive) by place; the places of the `candidates`; groups, (n,)."""

    texts: list[str]
    pairs: list[tuple[int, int]]
    candidates: Ints
    groups: Ints
    tally: Tally


def positives_of(
    source: Source, corpus: Source | None, *, both_sides: bool, positive_score: float, near: float
) -> Positives:
    """The positive pairs of `source`, and the texts among which negatives may be found.

    Positive is a pair with the label 1, a score of `positive_score` or more, or neither. both_sides: first texts are
    candidates too. Texts of pairs of other splits than train are none, wherever they stand. One thing are: the two
    texts of a positive pair, all texts of positive pairs of one component, and near duplicates (Jaccard `near`).
    InputError where no pair is positive.
    """
    tally = Tally()
    tally.add(source.tally)
    places: dict[str, int] = {}
    held_out: set[str] = set()
    pairs: dict[tuple[int, int], None] = {}
    named: dict[str, list[int]] = {}
    offered: list[str] = []
    for row in source.table.to_pylist():
        texts = row["text1"], row["text2"]
        if row["split"] not in (None, "train"):
            held_out.update(normalise(text) for text in texts)
            tally.drop(f"split_{row['split']}")
            continue
        offered += texts if both_sides else texts[1:]
        if not _positive(row, positive_score):
            tally.drop("not_positive")
        elif normalise(texts[0]) == normalise(texts[1]):
            tally.drop("same_text")
        else:
            pair = places.setdefault(texts[0], len(places)), places.setdefault(texts[1], len(places))
            if pair in pairs:
                tally.drop("repeated_pair")
            pairs[pair] = None
            if row["component"] is not None:
                named.setdefault(row["component"], []).extend(pair)
    if not pairs:
        raise InputError(f"{source.name} has no positive pair to mine for: {_left_out(tally)}.")
    offered += corpus.table["text"].to_pylist() if corpus else []
    kept = [text for text in dict.fromkeys(offered) if normalise(text) not in held_out]
    tally.count("candidates", "texts", len(kept))
    tally.count("candidates", "held_out", len(dict.fromkeys(offered)) - len(kept))
    candidates = np.array([places.setdefault(text, len(places)) for text in kept], dtype=np.int64)
    edges = [*pairs, *(edge for members in named.values() for edge in pairwise(members))]
    groups = components(len(places), [*edges, *_equal(list(places), near)])
    return Positives(list(places), list(pairs), candidates, np.array(groups, dtype=np.int64), tally)


def _positive(row: dict[str, object], positive_score: float) -> bool:
    if row["label"] is not None:
        return row["label"] == 1
    return row["score"] is None or float(str(row["score"])) >= positive_score


def _equal(texts: list[str], near: float) -> Iterator[tuple[int, int]]:
    """Pairs of places whose texts are equal once normalised, or nearly the same."""
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        yield first.setdefault(normalise(text), place), place
    distinct = list(first.values())
    for one, other in near_duplicates([texts[place] for place in distinct], threshold=near)[0].tolist():
        yield distinct[one], distinct[other]


def _left_out(tally: Tally) -> str:
    return ", ".join(f"{rows} {reason}" for reason, rows in tally.dropped.items()) or "it is empty"
