"""Which issues of a pool are most like an issue: by their words, or by an encoder's vectors.

A `Ranking` takes issues and gives for each, in the order asked, the others of the pool, the nearest first. Another way
to mine hard negatives is another such function.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.bm25 import Bm25
from stscurate.pairing.corpus import Corpus
from stscurate.progress import Progress, silent
from stscurate.services.encoder import Encoder

Ranking = Callable[[Sequence[int]], Iterator[tuple[int, list[int]]]]

_SCORES = 4_000_000  # of issues with the pool at a time: bounds the memory


def by_words(corpus: Corpus, pool: Sequence[int]) -> Ranking:
    """By BM25; issues that share no word aren't neighbours."""

    def rank(issues: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        scores = Bm25([corpus.texts[at] for at in pool]).scores
        for issue, ranked, row in _ranked(pool, issues, scores):
            yield issue, [pool[at] for at in ranked[row[ranked] > 0].tolist() if pool[at] != issue]

    return rank


class Encoded:
    """The issues by an encoder: the vectors of one repository at a time, which bounds the memory.

    Every text of a repository is encoded in one call, whatever is paired: so another seed, split or share finds the
    vectors that were kept.
    """

    def __init__(self, corpus: Corpus, encoder: Encoder, *, progress: Progress = silent):
        self._corpus = corpus
        members = groupby(range(len(corpus)), key=lambda at: corpus.repositories[at])
        self._members = {name: [at for at in found if corpus.normal[at]] for name, found in members}
        self._row = {at: row for found in self._members.values() for row, at in enumerate(found)}

        @lru_cache(maxsize=1)
        def vectors(repository: str) -> NDArray[np.float32]:
            return encoder.encode([corpus.texts[at] for at in self._members[repository]], progress=progress)

        self._vectors = vectors

    def cosine(self, one: int, other: int) -> float:
        """Of two issues of one repository."""
        vectors = self._vectors(self._corpus.repositories[one])
        return float(vectors[self._row[one]] @ vectors[self._row[other]])

    def ranking(self, pool: Sequence[int]) -> Ranking:
        """By the cosine; the pool is of one repository."""

        def rank(issues: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
            vectors = self._vectors(self._corpus.repositories[pool[0]])[[self._row[at] for at in pool]]
            for issue, ranked, _ in _ranked(pool, issues, lambda places: vectors[list(places)] @ vectors.T):
                yield issue, [pool[at] for at in ranked.tolist() if pool[at] != issue]

        return rank


def _ranked(
    pool: Sequence[int], issues: Sequence[int], scores: Callable[[Sequence[int]], NDArray[np.floating]]
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.floating]]]:
    """(issue, places of the pool with the highest score first, scores in the pool's order), computed in blocks."""
    place = {member: at for at, member in enumerate(pool)}
    at_once = max(1, _SCORES // len(pool))
    for start in range(0, len(issues), at_once):
        block = issues[start : start + at_once]
        for issue, row in zip(block, scores([place[issue] for issue in block]), strict=True):
            yield issue, np.argsort(-row, kind="stable"), row  # equal neighbours stay in the pool's order
