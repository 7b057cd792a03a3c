"""Votes of a language model on this machine: how much likelier does one text make the other?

A small model can't answer with a digit (Spearman -.07 on STS-B), but its likelihoods know more. With log p summed
over b's tokens, and a few demonstrations of paraphrases before both,

    gain(b | a) = (log p(b | "Sentence: a, newline, Same meaning in other words:") - log p(b | "Sentence:"))
                  / -log p(b | "Sentence:")

is the share of b's information that a gives away: 1 where a leaves no doubt about b, 0 where it tells nothing,
negative where it misleads. The vote is the mean of gain(b | a) and gain(a | b); only its order means something.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stscurate.annotators.base import Pair, Plan, Row, distinct_texts, vote_row
from stscurate.annotators.prompts import Language
from stscurate.progress import Progress
from stscurate.resources import definition
from stscurate.services.answers import Answers, answer_key
from stscurate.services.languagemodel import Ids, Item, LanguageModel

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Paraphrase:
    """The words around the texts, as in datasets/prompts/paraphrase.toml."""

    given: str
    alone: str
    demonstrations: list[list[str]]

    @classmethod
    def load(cls, language: Language = "en") -> "Paraphrase":
        """The one that comes with the package."""
        name = "paraphrase" if language == "en" else f"paraphrase.{language}"
        return cls(**tomllib.loads(definition(f"prompts/{name}.toml").read_text("utf-8")))

    @property
    def prefix(self) -> str:
        """What stands before every text: the demonstrations."""
        return "".join(f"{self.after(first)} {second}\n\n" for first, second in self.demonstrations)

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that change with any word."""
        return answer_key(**asdict(self))[:16]

    def after(self, text: str) -> str:
        """The context that makes a paraphrase of `text` likely."""
        return self.given.replace("{text}", text)


class _Asks:
    """The likelihoods that pairs need: of each text alone, and of each given the other."""

    def __init__(self, model: LanguageModel, prompt: Paraphrase, pairs: Sequence[Pair], max_tokens: int):
        texts = distinct_texts(pairs)
        heads, cut = model.heads(texts, max_tokens)
        alone = model.ids([prompt.alone])[0]
        contexts = dict(zip(texts, model.ids([prompt.after(head) for head in heads]), strict=True))
        self.targets: dict[str, Ids] = dict(zip(texts, model.ids([f" {head}" for head in heads]), strict=True))
        self.cut = dict(zip(texts, cut.tolist(), strict=True))
        self.prefix = model.ids([prompt.prefix])[0]
        # Four a pair: text2 given text1, text2 alone, text1 given text2, text1 alone.
        self.items: list[Item] = []
        for pair in pairs:
            for a, b in ((pair.text1, pair.text2), (pair.text2, pair.text1)):
                self.items += [(contexts[a], self.targets[b]), (alone, self.targets[b])]

    def tokens(self, pairs: Sequence[Pair]) -> _Floats:
        """Tokens of text2 and of text1 of each pair, (n, 2)."""
        return np.array([[len(self.targets[text]) for text in (pair.text2, pair.text1)] for pair in pairs], float)


class InformationGainAnnotator:
    """Information gain by a causal language model. max_tokens: of each text, the head is read.

    Each pair has one vote, order "both", scale "relative"; error "not_finite" where the model's numbers overflow.
    """

    def __init__(self, name: str, model: LanguageModel, *, max_tokens: int = 256, prompt: Paraphrase | None = None):
        self.name = name
        self._model = model
        self._max_tokens = max_tokens
        self._prompt = prompt or Paraphrase.load()
        self.inputs = {f"model:{name}": model.model.fingerprint}
        self.per_pair = 1
        self.prompts = {self._prompt.hash: asdict(self._prompt)}
        self.settings: dict[str, Any] = {
            "name": name,
            "model": model.model.name,
            "scoring": "information-gain",
            "prompt": self._prompt.hash,
            "max_tokens": max_tokens,
            "precision": model.precision,
            "device": model.device,
        }

    def plan(self, pairs: Sequence[Pair], answers: Answers) -> Plan:
        """Likelihoods to compute, and those that are kept."""
        asks = _Asks(self._model, self._prompt, pairs, self._max_tokens)
        known = len(self._model.known(asks.prefix, asks.items, answers))
        return Plan(self.name, "likelihoods", len(set(asks.items)) - known, known)

    def vote(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
        """One vote a pair, computed in batches that are kept as they are done."""
        asks = _Asks(self._model, self._prompt, pairs, self._max_tokens)
        gain = _gains(*self._likelihoods(asks, answers, progress)).mean(axis=1)
        for pair, raw in zip(pairs, gain.tolist(), strict=True):
            finite = bool(np.isfinite(raw))
            yield [
                vote_row(
                    pair,
                    self.name,
                    "information-gain",
                    self._prompt.hash,
                    order="both",
                    scale="relative",
                    raw=raw if finite else None,
                    cut=asks.cut[pair.text1] + asks.cut[pair.text2],
                    tokens=len(asks.targets[pair.text1]) + len(asks.targets[pair.text2]),
                    error=None if finite else "not_finite",
                )
            ]

    def gains(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> _Floats:
        """gain(text2 | text1) and gain(text1 | text2) of each pair, (n, 2); kept as those of `vote` are."""
        return _gains(*self.parts(pairs, answers, progress)[:2])

    def parts(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> tuple[_Floats, _Floats, _Floats]:
        """What gains are made of, each (n, 2): log p(b | a), log p(b), and b's tokens."""
        asks = _Asks(self._model, self._prompt, pairs, self._max_tokens)
        return *self._likelihoods(asks, answers, progress), asks.tokens(pairs)

    def _likelihoods(self, asks: _Asks, answers: Answers, progress: Progress) -> tuple[_Floats, _Floats]:
        found = self._model.log_likelihoods(asks.prefix, asks.items, answers=answers, progress=progress)
        given, alone = found.reshape(-1, 2, 2).transpose(2, 0, 1)
        return given, alone


def _gains(given: _Floats, alone: _Floats) -> _Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((given - alone) / -alone, dtype=np.float64)
