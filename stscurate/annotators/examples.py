"""Examples for a question that are drawn from gold: for each pair the nearest that share no text with it."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from stscurate.annotators.base import Pair
from stscurate.annotators.cutting import head
from stscurate.annotators.prompts import Example, Prompt
from stscurate.errors import InputError
from stscurate.methods.bm25 import Bm25
from stscurate.methods.texts import normalise
from stscurate.tables import pairs_source
from stscurate.wording import counted


class Nearest:
    """The `shots` gold pairs nearest to a pair by BM25 over the words of both texts, the nearest last.

    Left out is every gold pair that shares a text with the pair, whatever its case and spaces: neither the pair's own
    gold nor a near twin of it is ever shown. Of equally near ones the first of the file is taken. max_tokens: of each
    text, the head is shown.
    """

    def __init__(self, gold: Sequence[tuple[str, str, float]], *, shots: int, max_tokens: int = 256):
        if shots < 1:
            raise InputError("--shots is 1 at least.")
        self.shots = shots
        self._gold = list(gold)
        self._max_tokens = max_tokens
        self._normal = [{normalise(text1), normalise(text2)} for text1, text2, _ in gold]
        self._index = Bm25([f"{text1}\n{text2}" for text1, text2, _ in gold])
        self.fingerprint = hashlib.sha256(json.dumps([shots, max_tokens, self._gold]).encode()).hexdigest()

    @classmethod
    def read(
        cls, path: Path, *, shots: int, columns: str | None = None, scale: str | None = None, max_tokens: int = 256
    ) -> "Nearest":
        """Of a file or a run of pairs with gold: its score, else its label. Options as in tables.pairs_source."""
        table = pairs_source(path, columns=columns, scale=scale).table
        gold = pc.coalesce(table["score"], table["label"].cast("float64"))
        rows = zip(table["text1"].to_pylist(), table["text2"].to_pylist(), gold.to_pylist(), strict=True)
        known = [row for row in rows if row[2] is not None]
        if len(known) < shots:
            raise InputError(
                f"--shots {shots}: {path} has {counted(len(known), 'pair')} with a score or label; ask for no more."
            )
        return cls(known, shots=shots, max_tokens=max_tokens)

    def of(self, pairs: Sequence[Pair], prompt: Prompt) -> list[list[Example]]:
        """The examples of each pair, answered on the prompt's scale."""
        near = self._index.answer([f"{pair.text1}\n{pair.text2}" for pair in pairs])
        return [
            [self._example(at, prompt) for at in self._pick(scores.tolist(), pair)]
            for scores, pair in zip(near, pairs, strict=True)
        ]

    def _pick(self, scores: list[float], pair: Pair) -> list[int]:
        own = {normalise(pair.text1), normalise(pair.text2)}
        picked: list[int] = []
        for at in np.argsort(-np.array(scores), kind="stable").tolist():
            if len(picked) == self.shots:
                break
            if not own & self._normal[at]:
                picked.append(at)
        return picked[::-1]

    def _example(self, at: int, prompt: Prompt) -> Example:
        text1, text2, score = self._gold[at]
        return Example(head(text1, self._max_tokens)[0], head(text2, self._max_tokens)[0], prompt.answer(score))
