"""Pairs of texts -> numbers by a cross-encoder, which reads both texts at once; kept so that a kill loses one batch."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError, first_line
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers, answer_key
from stscurate.services.encoder import quiet
from stscurate.services.models import locate
from stscurate.services.whole import check_whole, told_missing

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_COUNTED_AT_ONCE = 1024  # pairs per call of the tokenizer


class Reranker:
    """A sentence-transformers cross-encoder by name; loaded at its first use, in float32.

    InputError for an unknown model, one without a trained head, or one that gives several numbers a pair.
    """

    def __init__(self, name: str, *, answers: Answers | None = None, batch_size: int = 32):
        self.model = locate(name)
        self._answers = answers
        self._batch_size = batch_size

    @property
    def bounded(self) -> bool:
        """Whether the numbers lie within 0 and 1, since the model's own activation is a sigmoid."""
        return type(self._network.activation_fn).__name__ == "Sigmoid"

    def score(
        self, pairs: Sequence[tuple[str, str]], *, progress: Progress = silent
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The number of each pair, (n,), and the tokens of it that the model doesn't see, (n,).

        As of a language model (`services.languagemodel`), batches are formed of what isn't known yet, from short to
        long, and committed whole.
        """
        lengths = dict(zip(pairs, self._lengths(pairs), strict=True))
        limit = self._network.max_seq_length
        keys = {pair: self._key(pair) for pair in lengths}
        kept = self._answers.get(keys.values()) if self._answers else {}
        found = {pair: float(np.frombuffer(kept[key], "<f8")[0]) for pair, key in keys.items() if key in kept}
        due = sorted(lengths.keys() - found.keys(), key=lambda pair: (lengths[pair], pair))
        for start in range(0, len(due), self._batch_size):
            batch = due[start : start + self._batch_size]
            progress("rerankings", len(found), len(keys))
            given = self._network.predict(batch, batch_size=len(batch), show_progress_bar=False)
            numbers = np.asarray(given, dtype="<f8").reshape(len(batch))
            if self._answers:
                self._answers.put(
                    "reranking", {keys[pair]: n.tobytes() for pair, n in zip(batch, numbers, strict=True)}
                )
            found.update(zip(batch, numbers.tolist(), strict=True))
        progress("rerankings", len(keys), len(keys))
        cut = [max(lengths[pair] - limit, 0) if limit else 0 for pair in pairs]
        return np.array([found[pair] for pair in pairs]), np.array(cut, dtype=np.int64)

    def token_counts(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.int64]:
        """Tokens of each pair before any cut, special ones included, (n,)."""
        return np.array(self._lengths(pairs), dtype=np.int64)

    def known(self, pairs: Sequence[tuple[str, str]], answers: Answers) -> int:
        """Of how many of the different pairs `answers` holds the number."""
        return len(answers.get(self._key(pair) for pair in set(pairs)))

    def _key(self, pair: tuple[str, str]) -> str:
        limit = self._network.max_seq_length
        return answer_key(reranker=self.model.fingerprint, limit=limit, precision="fp32", pair=pair)

    def _lengths(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        counts: list[int] = []
        for start in range(0, len(pairs), _COUNTED_AT_ONCE):
            one, two = zip(*pairs[start : start + _COUNTED_AT_ONCE], strict=True)
            found = self._network.tokenizer(list(one), list(two), truncation=False, padding=False, verbose=False)
            counts += [len(ids) for ids in found["input_ids"]]
        return counts

    @cached_property
    def _network(self) -> "CrossEncoder":
        path, name = self.model.path, self.model.name
        if not (path / "config.json").exists() and not (path / "modules.json").exists():
            raise InputError(f"{name} holds no model (no config.json): name a cross-encoder's folder.")
        with quiet():
            from sentence_transformers import CrossEncoder

            try:
                with told_missing() as missing:
                    network = CrossEncoder(str(path), local_files_only=True)
            except Exception as error:  # the libraries raise many kinds for a damaged folder
                raise InputError(
                    f"{name} can't be loaded as a cross-encoder ({first_line(error)}): copy or save it again."
                ) from None
        heads = [head for head in network.config.architectures or [] if "SequenceClassification" in head]
        pools = any(path.glob("*_Pooling"))  # an embedding model
        if not heads and (pools or not (path / "modules.json").exists()):  # its head would be a random one
            raise InputError(f"{name} has no head that was trained to compare two texts: name a cross-encoder.")
        check_whole(name, missing)
        if network.num_labels != 1:
            raise InputError(f"{name} gives {network.num_labels} numbers a pair: name a cross-encoder that gives one.")
        return network.float().eval()
