"""Pairs that aren't duplicates: same repository, same split, another component, no reference to each other.

A share of them join an issue that has a duplicate to a lexical neighbour, by BM25, so that shared words alone don't
give the answer, and so that having a duplicate somewhere doesn't either. The nearest three neighbours are left alone:
among them unnoticed duplicates are most likely. The others are drawn at random.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import comb
from random import Random

import numpy as np

from stscurate.methods.bm25 import Bm25
from stscurate.pairing.corpus import Corpus

_PASSED_OVER, _RANKS = 3, 20  # neighbours left alone, and the last rank used
_SCORES = 4_000_000  # of anchors with the pool at a time: bounds the memory
_TRIES = 200  # random pairs looked at for each one wanted

Candidates = Iterator[tuple[int, int]]


def draw_negatives(
    corpus: Corpus,
    pool: Sequence[int],
    component: Sequence[int],
    *,
    wanted: int,
    lexical_share: float,
    used: set[tuple[str, str]],
    random: Random,
) -> Iterator[tuple[int, int, str]]:
    """Up to `wanted` pairs of two issues of the pool, the smaller index first, and "lexical" or "random".

    lexical_share: of `wanted`, 0 to 1; random pairs take the place of those that aren't found. `used` holds the keys
    of all pairs so far, and gets those of the new ones.
    """
    sizes = Counter(component)
    anchors = [at for at in pool if sizes[component[at]] > 1] or pool

    def allowed(one: int, other: int) -> bool:
        return (
            component[one] != component[other]
            and not corpus.refer_to_each_other(one, other)
            and corpus.key(one, other) not in used
        )

    taken = 0
    lexical = int(wanted * lexical_share + random.random())  # rounded by chance: many small pools add up to the share
    near = _lexical(corpus, pool, anchors, allowed, random)
    far = _random(pool, _TRIES * min(wanted, comb(len(pool), 2)), random)  # more than all pairs may be wanted
    for origin, limit, candidates in (("lexical", lexical, near), ("random", wanted, far)):
        while taken < limit:
            found = next((pair for pair in candidates if allowed(*pair)), None)
            if found is None:
                break
            used.add(corpus.key(*found))
            taken += 1
            yield (*found, origin)


def _random(pool: Sequence[int], tries: int, random: Random) -> Candidates:
    for _ in range(tries if len(pool) > 1 else 0):
        low, high = sorted(random.sample(pool, 2))
        yield low, high


def _lexical(
    corpus: Corpus, pool: Sequence[int], anchors: Sequence[int], allowed: Callable[[int, int], bool], random: Random
) -> Candidates:
    """For each anchor, in random order, a pair with one of its allowed neighbours."""
    order = list(anchors)
    random.shuffle(order)
    for anchor, neighbours in _neighbours([corpus.texts[at] for at in pool], pool, order):
        near = list(islice((other for other in neighbours if allowed(anchor, other)), _RANKS))
        if near:
            low, high = sorted((anchor, random.choice(near[_PASSED_OVER:] or near[-1:])))
            yield low, high


def _neighbours(texts: list[str], pool: Sequence[int], anchors: list[int]) -> Iterator[tuple[int, list[int]]]:
    """(anchor, the others of the pool that share words with it, nearest first)."""
    collection = Bm25(texts)
    place = {member: at for at, member in enumerate(pool)}
    at_once = max(1, _SCORES // len(texts))
    for start in range(0, len(anchors), at_once):
        block = anchors[start : start + at_once]
        for anchor, row in zip(block, collection.scores([place[anchor] for anchor in block]), strict=True):
            ranked = np.argsort(-row, kind="stable")  # equal neighbours stay in the pool's order
            yield anchor, [pool[at] for at in ranked[row[ranked] > 0].tolist() if pool[at] != anchor]
