"""BM25: how well each text of a collection answers a text of it, by the words that they share."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.words import words

_MOST_WORDS = 200_000  # of a collection; the rarest beyond that are left out


class Bm25:
    """Okapi BM25 (Robertson and Zaragoza 2009) over the `words` of texts, with inverse frequencies that stay positive.

    score(q, d) = sum over the different words w of q: log(1 + (n - n_w + .5) / (n_w + .5)) f (k1 + 1) / (f + k1 (1 - b
    + b |d| / mean |d|)), where n_w of the n texts hold w, and d holds it f times. Words that q repeats count once: a
    query here is a whole text, in which a repeated word is seldom a stronger wish.
    """

    def __init__(self, texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75):
        from scipy.sparse import csr_array
        from sklearn.feature_extraction.text import CountVectorizer

        self._counter: CountVectorizer | None = None
        try:
            counter = CountVectorizer(analyzer=words, max_features=_MOST_WORDS, dtype=np.float64)
            counts = csr_array(counter.fit_transform(texts))
            self._counter = counter
        except ValueError:  # no text holds a word
            counts = csr_array((len(texts), 1))
        n, vocabulary = counts.shape
        holders = np.bincount(counts.indices, minlength=vocabulary)
        rarity = np.log1p((n - holders + 0.5) / (holders + 0.5))
        length = counts.sum(axis=1)
        penalty = np.repeat(k1 * (1 - b + b * length / (length.mean() or 1)), np.diff(counts.indptr))
        weights = counts.copy()
        weights.data = rarity[counts.indices] * counts.data * (k1 + 1) / (counts.data + penalty)
        self._weights = weights.T.tocsr()
        self._holds = counts.sign()

    def scores(self, queries: Sequence[int]) -> NDArray[np.float64]:
        """Score of every text of the collection for each of the texts with these indices: (queries, texts)."""
        return np.asarray((self._holds[list(queries)] @ self._weights).toarray())

    def answer(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Score of every text of the collection for each of other texts: (texts, texts of the collection).

        Words that the collection lacks say nothing.
        """
        if self._counter is None:
            return np.zeros((len(texts), self._weights.shape[1]))
        return np.asarray((self._counter.transform(texts).sign() @ self._weights).toarray())
