"""A curve of relevance in a folder, ready to say how likely the two texts of other pairs are relevant to each other."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from stscurate.disk import fingerprint
from stscurate.errors import InputError, StscurateError
from stscurate.methods.calibration.base import Floats, Ints, Vectors
from stscurate.methods.calibration.saved import Calibration
from stscurate.methods.pair_similarity import pair_lengths, pair_similarity
from stscurate.methods.relevance import RelevanceCurve
from stscurate.methods.similarity import pair_cosines
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers
from stscurate.services.encoders import Identified, TextEncoder, open_encoder
from stscurate.services.reranker import Reranker

CURVE = "relevance.json"
CALIBRATION = "calibration"  # a copy of the one whose similarity the curve was fitted to


@dataclass(frozen=True)
class Relevance:
    """A `curve`, and whose similarity it was fitted to.

    of: what relevance.json says of that: `model` (its tokens are the lengths) and `model_fingerprint`; `reranker` and
    `reranker_fingerprint` where the similarity is that one's number, else None. calibration: of the model's cosines.
    """

    curve: RelevanceCurve
    of: dict[str, Any]
    calibration: Calibration | None
    place: Path

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What `audit relevance` left in a folder. InputError where there is none."""
        try:
            found = json.loads((folder / CURVE).read_text("utf-8"))
            names = ("intercept", "similarity", "log2_length1", "log2_length2")
            bias, slope, first, second = (float(found["curve"][name]) for name in names)
            of = dict(found["similarity_of"])
            if not {"model", "model_fingerprint", "reranker", "reranker_fingerprint", "calibration"} <= of.keys():
                raise ValueError("it doesn't say what it was fitted to")
        except (OSError, ValueError, LookupError, TypeError):
            raise InputError(
                f"{folder} holds no curve: name the folder that `stscurate audit relevance` wrote."
            ) from None
        fitted = Calibration.load(folder / CALIBRATION) if of["calibration"] else None
        return cls(RelevanceCurve((bias, slope, first, second)), of, fitted, folder)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the curve and of what it says that it was fitted to, as a stage's input."""
        return fingerprint(self.place / CURVE)

    @property
    def settings(self) -> dict[str, Any]:
        """As a stage's settings."""
        return {name: self.of[name] for name in ("model", "calibration", "reranker")}

    def hold_to(
        self,
        model: Identified,
        reads: int | None,
        texts: Sequence[str],
        *,
        reranker: Identified | None = None,
        accept_corpus: bool = False,
    ) -> None:
        """InputError where the curve was fitted to another model's numbers, or its calibration to another corpus."""
        if model.fingerprint != self.of["model_fingerprint"]:
            raise InputError(
                f"The curve {self.place} is of {self.of['model']}, and these vectors are of another model, "
                f"{model.name}: take that one, or fit a curve to this one with `stscurate audit relevance`."
            )
        if self.of["reranker"] and (not reranker or reranker.fingerprint != self.of["reranker_fingerprint"]):
            raise InputError(
                f"The curve {self.place} is of the numbers of {self.of['reranker']}: name that --reranker."
            )
        if self.calibration:
            self.calibration.hold_to(model, reads, texts, accept_corpus=accept_corpus)

    def by_vectors(self, left: Vectors, left_lengths: Ints, right: Vectors, right_lengths: Ints) -> Floats:
        """Probabilities of n pairs by their unit vectors, (n, d), and the tokens that the model sees of each, (n,)."""
        if self.calibration:
            similarity = self.calibration.method.similarity(left, left_lengths, right, right_lengths)
        else:
            similarity = pair_cosines(left, right)
        return self.curve.probability(similarity, left_lengths, right_lengths)

    def opened(self, specs: Sequence[str], answers: Answers | None = None) -> tuple[TextEncoder, Reranker | None]:
        """The encoder and the reranker of the curve, of those that `specs` name, or by the names that it has.

        InputError where neither finds one of them.
        """
        encoder = self._first([*specs, self.of["model"]], "model", lambda spec: open_encoder(spec, answers=answers))
        if not self.of["reranker"]:
            return encoder, None
        names = [*specs, self.of["reranker"]]
        return encoder, self._first(names, "reranker", lambda spec: Reranker(spec, answers=answers))

    def _first(self, specs: Sequence[str], which: str, opened: Any) -> Any:
        for spec in specs:
            try:
                found = opened(spec)
            except StscurateError:  # another kind of model, or a name that means nothing here or on the Hub
                continue
            if found.model.fingerprint == self.of[f"{which}_fingerprint"]:
                return found
        raise InputError(
            f"The curve {self.place} is of {self.of[which]}, which isn't found here: name it as an annotator too "
            f"(--llm {'embedding' if which == 'model' else 'reranker'}:FOLDER)."
        )

    def probability(
        self,
        pairs: Sequence[tuple[str, str]],
        models: tuple[TextEncoder, Reranker | None],
        *,
        accept_corpus: bool = False,
        progress: Progress = silent,
    ) -> Floats:
        """Of n pairs, (n,), by the models that `opened` gave. Errors as of `encode` and `Calibration.hold_to`."""
        encoder, reranker = models
        lengths = pair_lengths(encoder, pairs)
        if reranker:
            similarity, _ = reranker.score(pairs, progress=progress)
        else:
            similarity = pair_similarity(
                encoder, pairs, self.calibration, accept_corpus=accept_corpus, progress=progress
            )
        return self.curve.probability(similarity, lengths[:, 0], lengths[:, 1])
