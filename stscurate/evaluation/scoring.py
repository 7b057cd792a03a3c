"""A model's similarities on a gold set, and what else is to be known about them: lengths, cuts, leaks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stscurate.evaluation.gold import GoldSet
from stscurate.evaluation.models import Opening, is_reranker, open_reranker
from stscurate.evaluation.variants import Variants, fit_whitening
from stscurate.methods.calibration.base import unit
from stscurate.methods.calibration.saved import Calibration, lengths_of
from stscurate.methods.calibration.whitening import Whitening
from stscurate.methods.leaks import leaked_rows, text_digest, training_digests
from stscurate.methods.pair_similarity import distinct
from stscurate.methods.sentences import split_sentences
from stscurate.methods.similarity import alignment, pair_cosines, positives, uniformity
from stscurate.methods.static_vectors import StaticVectors
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers
from stscurate.services.embeddings_api import EmbeddingsApi
from stscurate.services.encoders import Identified, TextEncoder
from stscurate.services.models import Model

_UNIFORM = 4_000  # distinct texts at most that uniformity is taken over: it costs their square
_FITTED = 20_000  # training texts at most that whitening is fitted to

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Scored:
    """What a model makes of a set of n pairs."""

    model: str
    gold: GoldSet
    similarities: NDArray[np.float64]  # (n,), any scale
    tokens: NDArray[np.int64] | None  # (n,) of the longer text of each pair, before any cut; of both to a reranker
    tokens_cut_share: float | None  # of the tokens of the set's texts, those that the model didn't see
    clean: NDArray[np.bool_] | None  # (n,) neither text was trained on; None where nothing is known of that
    alignment: float | None = None  # see methods.similarity; None where there are no vectors, or no positive pair
    uniformity: float | None = None
    variant: str = ""  # what was made of the vectors first; "" for nothing
    words_unknown_share: float | None = None  # of word vectors: of the words, those without one
    texts_unknown: int | None = None  # and distinct texts without any word that has one


@dataclass(frozen=True)
class Unseen:
    """What of n texts a model doesn't see; None where that is unknown, or no question.

    tokens_cut_share: of their tokens. words_unknown_share: of word vectors, of the words; texts_unknown: distinct texts
    of which no word has a vector.
    """

    tokens_cut_share: float | None
    words_unknown_share: float | None = None
    texts_unknown: int | None = None


class Scorer(Protocol):
    """A model of any kind as it is held to gold."""

    def score(self, gold: GoldSet, *, seed: int = 0, progress: Progress = silent) -> list[Scored]:
        """What it makes of the set, in each variant, its own first. seed: of the texts drawn for uniformity."""

    def vectors(self, texts: Sequence[str], progress: Progress = silent) -> list[tuple[str, Vectors]]:
        """Name and unit vectors, (n, d), of each variant; none where it has no vectors."""

    def unseen(self, texts: Sequence[str]) -> Unseen:
        """What of distinct texts it doesn't see."""

    def clean(self, texts: Sequence[str]) -> NDArray[np.bool_] | None:
        """Whether it wasn't trained on each text, (n,); None where nothing is known of that."""


def open_scorer(
    spec: str,
    *,
    opening: Opening | None = None,
    variants: Variants | None = None,
    answers: Answers | None = None,
    train_texts: Sequence[str] | None = None,
    calibration: Calibration | None = None,
    accept_corpus: bool = False,
) -> Scorer:
    """The model that `spec` names, ready to be held to gold.

    train_texts: what it was trained on, besides what its folder tells. accept_corpus: see Calibration.hold_to.
    """
    if is_reranker(spec):
        return RerankerScorer(spec, answers=answers, train_texts=train_texts)
    return EmbeddingScorer(
        (opening or Opening()).encoder(spec, answers),
        variants=variants or Variants(),
        train_texts=train_texts,
        calibration=calibration,
        accept_corpus=accept_corpus,
    )


class EmbeddingScorer:
    """Cosines of an embedding model, or with a `calibration` what it makes of them; see open_scorer."""

    def __init__(
        self,
        encoder: TextEncoder,
        *,
        variants: Variants,
        train_texts: Sequence[str] | None = None,
        calibration: Calibration | None = None,
        accept_corpus: bool = False,
    ):
        self._encoder = encoder
        self._variants = variants
        self._train_texts = train_texts
        self._calibration, self._accept_corpus = calibration, accept_corpus
        self._known = _trained_on(encoder.model, train_texts)
        if variants.dimensions and (numbers := encoder.encode([]).shape[1]):  # an API tells none before it answers
            variants.check(numbers, encoder.model.name)

    def score(self, gold: GoldSet, *, seed: int = 0, progress: Progress = silent) -> list[Scored]:
        """As Scorer."""
        texts, sides = distinct(gold.pairs)
        variants = self.vectors(texts, progress)
        counts, unseen = self._encoder.token_counts(texts), self.unseen(texts)
        alike = positives(gold.gold)
        return [
            Scored(
                model=self._encoder.model.name,
                gold=gold,
                similarities=self._similarities(texts, vectors, sides),
                tokens=None if counts is None else counts[sides].max(axis=1),
                tokens_cut_share=unseen.tokens_cut_share,
                clean=None if self._known is None else ~leaked_rows(gold.pairs, self._known),
                alignment=_alignment(vectors, sides[alike]),
                uniformity=_uniformity(vectors, seed),
                variant=variant,
                words_unknown_share=unseen.words_unknown_share,
                texts_unknown=unseen.texts_unknown,
            )
            for variant, vectors in variants
        ]

    def vectors(self, texts: Sequence[str], progress: Progress = silent) -> list[tuple[str, Vectors]]:
        """As Scorer."""
        fitted = self._fitted if self._variants.whiten else None
        return list(self._variants.of(self._encoded(texts, progress), self._encoder.model.name, fitted))

    def unseen(self, texts: Sequence[str]) -> Unseen:
        """As Scorer."""
        counts = self._encoder.token_counts(texts)
        cut = _share(self._encoder.cut(texts), counts)
        if counts is None or not isinstance(self._encoder, StaticVectors):
            return Unseen(cut)
        unknown = self._encoder.unknown(texts)
        return Unseen(cut, _share(unknown, counts), int((unknown == counts).sum()))

    def clean(self, texts: Sequence[str]) -> NDArray[np.bool_] | None:
        """As Scorer."""
        return _unknown_to(self._known, texts)

    def _encoded(self, texts: Sequence[str], progress: Progress = silent) -> Vectors:
        if not (isinstance(self._encoder, EmbeddingsApi) and self._encoder.late_chunking):
            return self._encoder.encode(texts, progress=progress)
        distinct = list(dict.fromkeys(texts))
        chunks = self._encoder.encode_chunks([split_sentences(text) or [text] for text in distinct], progress=progress)
        means = dict(zip(distinct, unit(np.stack([part.mean(axis=0) for part in chunks])), strict=True))
        return np.stack([means[text] for text in texts])

    @cached_property
    def _fitted(self) -> Whitening | None:
        """Whitening of the training texts that are given, of some by chance where they are many; None without any."""
        texts = list(dict.fromkeys(self._train_texts or ()))
        if len(texts) > _FITTED:
            texts = [texts[row] for row in np.random.default_rng(0).choice(len(texts), _FITTED, replace=False)]
        return fit_whitening(self._encoded(texts)) if texts else None

    def _similarities(self, texts: list[str], vectors: Vectors, sides: NDArray[np.int64]) -> NDArray[np.float64]:
        left, right = sides.T
        if self._calibration is None:
            return pair_cosines(vectors[left], vectors[right])
        self._calibration.hold_to(self._encoder.model, self._encoder.reads, texts, accept_corpus=self._accept_corpus)
        lengths = lengths_of(self._encoder, texts)
        return self._calibration.method.similarity(vectors[left], lengths[left], vectors[right], lengths[right])


class RerankerScorer:
    """Numbers of a cross-encoder, which reads both texts of a pair in the order they stand in."""

    def __init__(self, spec: str, *, answers: Answers | None = None, train_texts: Sequence[str] | None = None):
        self._reranker = open_reranker(spec, answers)
        self._known = _trained_on(self._reranker.model, train_texts)

    def score(self, gold: GoldSet, *, seed: int = 0, progress: Progress = silent) -> list[Scored]:
        """As Scorer: one, since there are no vectors to make variants of."""
        numbers, cut = self._reranker.score(gold.pairs, progress=progress)
        counts = self._reranker.token_counts(gold.pairs)
        clean = None if self._known is None else ~leaked_rows(gold.pairs, self._known)
        return [Scored(self._reranker.model.name, gold, numbers, counts, _share(cut, counts), clean)]

    def vectors(self, texts: Sequence[str], progress: Progress = silent) -> list[tuple[str, Vectors]]:
        """None."""
        return []

    def unseen(self, texts: Sequence[str]) -> Unseen:
        """Unknown: it reads pairs."""
        return Unseen(None)

    def clean(self, texts: Sequence[str]) -> NDArray[np.bool_] | None:
        """As Scorer."""
        return _unknown_to(self._known, texts)


def _share(some: NDArray[np.int64] | None, of: NDArray[np.int64] | None) -> float | None:
    return None if some is None or of is None else float(some.sum() / max(of.sum(), 1))


def _unknown_to(known: set[str] | None, texts: Sequence[str]) -> NDArray[np.bool_] | None:
    return None if known is None else np.array([text_digest(text) not in known for text in texts], dtype=bool)


def _alignment(vectors: Vectors, alike: NDArray[np.int64]) -> float | None:
    """Over the positive pairs, (n, 2) places, of which both texts have a vector other than zeros; None without any."""
    there = alike[np.asarray(vectors.any(axis=1))[alike].all(axis=1)]
    return alignment(vectors[there[:, 0]], vectors[there[:, 1]]) if len(there) else None


def _uniformity(vectors: Vectors, seed: int) -> float | None:
    """Over the texts that have a vector other than zeros; None with fewer than two."""
    vectors = vectors[vectors.any(axis=1)]
    if len(vectors) < 2:
        return None
    if len(vectors) > _UNIFORM:
        vectors = vectors[np.random.default_rng(seed).choice(len(vectors), _UNIFORM, replace=False)]
    return uniformity(vectors)


def _trained_on(model: Identified, train_texts: Iterable[str] | None) -> set[str] | None:
    """Digests of the texts that the model is known to have seen; None where nothing is known."""
    digests = None if train_texts is None else {text_digest(text) for text in train_texts}
    kept = training_digests(model.path) if isinstance(model, Model) else None
    return digests if kept is None else kept | (digests or set())
