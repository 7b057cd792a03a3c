"""Pairs that aren't duplicates: same repository, same split, another component, no reference to each other.

Half of them are drawn at random. The other half join an issue that has a duplicate to a lexical neighbour, so that
shared words alone don't give the answer, and so that having a duplicate somewhere doesn't either. The nearest three
neighbours are left alone: among them unnoticed duplicates are most likely.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import comb
from random import Random

import numpy as np
from numpy.typing import NDArray

from stscurate.pairing.corpus import Corpus

_PASSED_OVER, _RANKS = 3, 20  # neighbours left alone, and the last rank used
_BLOCK = 256  # anchors compared with the pool at a time
_MOST_FEATURES = 200_000  # words of a repository
_TRIES = 200  # random pairs looked at for each one wanted

Candidates = Iterator[tuple[int, int]]


def draw_negatives(
    corpus: Corpus,
    pool: Sequence[int],
    component: Sequence[int],
    *,
    wanted: int,
    used: set[tuple[str, str]],
    random: Random,
) -> Iterator[tuple[int, int, str]]:
    """Up to `wanted` pairs of two issues of the pool, the smaller index first, and "lexical" or "random".

    `used` holds the keys of all pairs so far, and gets those of the new ones.
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
    near = _lexical(corpus, pool, anchors, allowed, random)
    far = _random(pool, _TRIES * min(wanted, comb(len(pool), 2)), random)  # more than all pairs may be wanted
    for origin, limit, candidates in (("lexical", wanted // 2, near), ("random", wanted, far)):
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
    """(anchor, the others of the pool that share words with it, nearest by TF-IDF first)."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=_MOST_FEATURES, dtype=np.float32)
    try:
        matrix = vectorizer.fit_transform(texts)
    except ValueError:  # no text holds a word of two letters
        return
    place = {member: at for at, member in enumerate(pool)}
    for start in range(0, len(anchors), _BLOCK):
        block = anchors[start : start + _BLOCK]
        similarity: NDArray[np.float32] = (matrix[[place[anchor] for anchor in block]] @ matrix.T).toarray()
        for anchor, row in zip(block, similarity, strict=True):
            ranked = np.argsort(-row, kind="stable")  # equal neighbours stay in the pool's order
            yield anchor, [pool[at] for at in ranked[row[ranked] > 0].tolist() if pool[at] != anchor]
