"""A model's similarities on a gold set, and what else is to be known about them: lengths, cuts, leaks."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stscurate.evaluation.gold import GoldSet
from stscurate.methods.calibration.saved import Calibration, lengths_of
from stscurate.methods.leaks import TRAINING_TEXTS, leaked_rows, text_digest
from stscurate.methods.similarity import alignment, pair_cosines, uniformity
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder

_ALIKE = 0.8  # gold above it is a positive pair of the alignment: above 4 of 5, as in SimCSE
_UNIFORM = 4_000  # distinct texts at most that uniformity is taken over: it costs their square


@dataclass(frozen=True)
class Scored:
    """What a model makes of a set of n pairs."""

    model: str
    gold: GoldSet
    similarities: NDArray[np.float64]  # (n,), any scale
    tokens: NDArray[np.int64]  # (n,) of the longer text of each pair, before any cut
    tokens_cut_share: float  # of the tokens of the set's texts, those that the model didn't see
    clean: NDArray[np.bool_] | None  # (n,) neither text was trained on; None where nothing is known of that
    alignment: float | None = None  # see methods.similarity; None where there are no vectors, or no positive pair
    uniformity: float | None = None


class EmbeddingScorer:
    """Cosines of a sentence-transformers model, or with a `calibration` what it makes of them.

    train_texts: what the model was trained on, besides what its folder tells. accept_corpus: see Calibration.hold_to.
    """

    def __init__(
        self,
        name: str,
        *,
        answers: Answers | None = None,
        train_texts: Iterable[str] | None = None,
        calibration: Calibration | None = None,
        accept_corpus: bool = False,
    ):
        self._encoder = Encoder(name, answers=answers)
        self._calibration, self._accept_corpus = calibration, accept_corpus
        self._known = _trained_on(self._encoder.model.path, train_texts)

    @property
    def name(self) -> str:
        """The model's name as it stands in results."""
        return self._encoder.model.name

    def score(self, gold: GoldSet, *, seed: int = 0, progress: Progress = silent) -> Scored:
        """Cosines of the set's pairs. seed: of the texts drawn for uniformity, where there are many."""
        texts = list(dict.fromkeys(text for pair in gold.pairs for text in pair))
        place = {text: row for row, text in enumerate(texts)}
        vectors = self._encoder.encode(texts, progress=progress)
        counts = self._encoder.token_counts(texts)
        sides = np.array([[place[text] for text in pair] for pair in gold.pairs])
        left, right = vectors[sides[:, 0]], vectors[sides[:, 1]]
        alike = gold.gold > _ALIKE + 1e-9  # 4 of 5 itself is not above it, however it is rounded
        return Scored(
            model=self.name,
            gold=gold,
            similarities=self._similarities(texts, vectors, sides),
            tokens=counts[sides].max(axis=1),
            tokens_cut_share=float(self._encoder.cut(texts).sum() / counts.sum()),
            clean=None if self._known is None else ~leaked_rows(gold.pairs, self._known),
            alignment=alignment(left[alike], right[alike]) if alike.any() else None,
            uniformity=_uniformity(vectors, seed) if len(texts) > 1 else None,
        )

    def _similarities(
        self, texts: list[str], vectors: NDArray[np.float32], sides: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        left, right = sides.T
        if self._calibration is None:
            return pair_cosines(vectors[left], vectors[right])
        self._calibration.hold_to(self._encoder.model, self._encoder.reads, texts, accept_corpus=self._accept_corpus)
        lengths = lengths_of(self._encoder, texts)
        return self._calibration.method.similarity(vectors[left], lengths[left], vectors[right], lengths[right])


def _uniformity(vectors: NDArray[np.float32], seed: int) -> float:
    if len(vectors) > _UNIFORM:
        vectors = vectors[np.random.default_rng(seed).choice(len(vectors), _UNIFORM, replace=False)]
    return uniformity(vectors)


def _trained_on(folder: Path, train_texts: Iterable[str] | None) -> set[str] | None:
    """Digests of the texts that the model is known to have seen; None where nothing is known."""
    digests = None if train_texts is None else {text_digest(text) for text in train_texts}
    kept = folder / TRAINING_TEXTS
    return (digests or set()) | set(kept.read_text().split()) if kept.is_file() else digests
