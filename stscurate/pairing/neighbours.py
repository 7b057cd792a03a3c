"""Which issues of a pool are most like an issue: by their words, or by an encoder's vectors, calibrated.

A `Ranking` takes issues and gives for each, in the order asked, the others of the pool, the nearest first. Another way
to mine hard negatives is another such function.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.bm25 import Bm25
from stscurate.methods.calibration import FEWEST, METHODS, Method, Texts
from stscurate.methods.calibration.saved import Calibration, lengths_of
from stscurate.pairing.corpus import Corpus
from stscurate.progress import Progress, silent
from stscurate.services.encoder import Encoder

Similarity = Literal["auto", "cosine"]
Ranking = Callable[[Sequence[int]], Iterator[tuple[int, list[int]]]]

_SCORES = 4_000_000  # of issues with the pool at a time: bounds the memory


def by_words(corpus: Corpus, pool: Sequence[int]) -> Ranking:
    """By BM25; issues that share no word aren't neighbours."""

    def rank(issues: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        scores = Bm25([corpus.texts[at] for at in pool]).scores
        for issue, ranked, row in _ranked(pool, issues, scores):
            yield issue, [pool[at] for at in ranked[row[ranked] > 0].tolist() if pool[at] != issue]

    return rank


@dataclass(frozen=True)
class _Compared:
    """The issues of one repository as they are ranked (`by`, `texts`), and as the ceiling looks at them."""

    by: Method
    texts: Texts
    ceiling_by: Method
    ceiling_texts: Texts


class Encoded:
    """The issues by an encoder: the vectors of one repository at a time, which bounds the memory.

    Every text of a repository is encoded in one call, whatever is paired: so another seed, split or share finds the
    vectors that were kept. Neighbours and the ceiling are by `calibration`; without one the ceiling is by the cosine,
    and neighbours are by s-norm, fitted to the repository's own issues, where these are 400 or more, else, or with
    similarity="cosine", by the cosine too. InputError where the calibration is of another model or corpus.
    """

    def __init__(
        self,
        corpus: Corpus,
        encoder: Encoder,
        *,
        calibration: Calibration | None = None,
        similarity: Similarity = "auto",
        accept_corpus: bool = False,
        progress: Progress = silent,
    ):
        self._corpus, self._encoder, self._progress = corpus, encoder, progress
        self._calibration, self._similarity = calibration, similarity
        members = groupby(range(len(corpus)), key=lambda at: corpus.repositories[at])
        self._members = {name: [at for at in found if corpus.normal[at]] for name, found in members}
        self._row = {at: row for found in self._members.values() for row, at in enumerate(found)}
        if calibration:
            texts = [corpus.texts[at] for at in self._row]
            calibration.hold_to(encoder.model, encoder.reads, texts, accept_corpus=accept_corpus)
        self._compared = lru_cache(maxsize=1)(self._of)

    def similarity(self, one: int, other: int) -> float:
        """Of two issues of one repository, as the ceiling looks at it."""
        found = self._compared(self._corpus.repositories[one])
        left, right = (found.ceiling_texts[self._row[at]] for at in (one, other))
        cosine = np.asarray(left.vectors @ right.vectors)
        return float(found.ceiling_by.correct(cosine, left.own, right.own))

    def ranked_by(self, repository: str) -> tuple[str, int]:
        """The name of the similarity that neighbours in a repository are found by, and how many issues these are."""
        texts = len(self._members[repository])
        if self._calibration:
            return self._calibration.method.name, texts
        return ("s-norm" if self._similarity == "auto" and texts >= FEWEST else "cosine"), texts

    def ranking(self, pool: Sequence[int]) -> Ranking:
        """By similarity; the pool is of one repository."""

        def rank(issues: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
            found = self._compared(self._corpus.repositories[pool[0]])
            texts = found.texts[[self._row[at] for at in pool]]
            for issue, ranked, _ in _ranked(pool, issues, lambda places: found.by.block(texts[list(places)], texts)):
                yield issue, [pool[at] for at in ranked.tolist() if pool[at] != issue]

        return rank

    def _of(self, repository: str) -> _Compared:
        texts = [self._corpus.texts[at] for at in self._members[repository]]
        vectors = self._encoder.encode(texts, progress=self._progress)
        lengths = lengths_of(self._encoder, texts)
        if self._calibration:
            by = self._calibration.method
            compared = by.texts(vectors, lengths)
            return _Compared(by, compared, by, compared)
        bare = METHODS["cosine"].fit(vectors, lengths)
        fitted = METHODS[self.ranked_by(repository)[0]].fit(vectors, lengths)
        return _Compared(fitted, fitted.texts(vectors, lengths), bare, bare.texts(vectors, lengths))


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
