"""Votes of an embedding model: the cosine of the two texts' vectors. Only its order means something."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from stscurate.annotators.base import Pair, Plan, Row, distinct_texts, vote_row
from stscurate.progress import Progress
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder
from stscurate.services.engine import Engine


class EmbeddingAnnotator:
    """Cosines by a sentence-transformers model; texts are cut where the model cuts them.

    Each pair has one vote, order "both", scale "relative".
    """

    def __init__(self, name: str, model: str, *, engine: Engine | None = None):
        self.name = name
        self._model = model
        self._engine = engine
        found = Encoder(model).model
        self.prompts: dict[str, dict[str, Any]] = {}
        self.per_pair = 1
        self.inputs = {f"model:{name}": found.fingerprint}
        self.settings: dict[str, Any] = {"name": name, "model": found.name, "scoring": "cosine"}

    def plan(self, pairs: Sequence[Pair], answers: Answers) -> Plan:
        """Texts to encode, and those whose vectors are kept: of whole batches, which change with the texts."""
        texts = distinct_texts(pairs)
        known = Encoder(self._model, answers=answers).known(texts)
        return Plan(self.name, "texts", len(texts) - known, known)

    def vote(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
        """One vote a pair; the vectors are kept batch by batch."""
        encoder = Encoder(self._model, answers=answers, engine=self._engine)
        texts = distinct_texts(pairs)
        index = {text: row for row, text in enumerate(texts)}
        vectors, cut = encoder.encode(texts, progress=progress), encoder.cut(texts)
        for pair in pairs:
            one, two = index[pair.text1], index[pair.text2]
            yield [
                vote_row(
                    pair,
                    self.name,
                    "cosine",
                    "",
                    order="both",
                    scale="relative",
                    raw=float(np.dot(vectors[one].astype(np.float64), vectors[two].astype(np.float64))),
                    cut=int(cut[one] + cut[two]),
                )
            ]
