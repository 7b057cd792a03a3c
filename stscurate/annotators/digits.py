"""Votes of a language model on this machine that is asked for an answer: the digit, or the word, that it would begin.

Nothing is generated. Behind the question in the model's own chat template, one forward pass gives the probability of
every token that may come next; those of the answers that may be given are renormalised and their values averaged.
Small models rate badly that way (see `local` for what they can do); it is for models of some billion weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stscurate.annotators.base import Pair, Plan, Row, distinct_texts, vote_row
from stscurate.annotators.chat import shown_hash
from stscurate.annotators.cutting import MARK
from stscurate.annotators.examples import Nearest
from stscurate.annotators.guard import guarded
from stscurate.annotators.prompts import Example, Prompt
from stscurate.progress import Progress
from stscurate.services.answers import Answers
from stscurate.services.languagemodel import Ids, LanguageModel, Segment
from stscurate.services.network import slot


class _Asks:
    """The questions about pairs, as token ids: what all begin with, and the rest of each pair in each order."""

    def __init__(
        self,
        model: LanguageModel,
        prompt: Prompt,
        nearest: Nearest | None,
        pairs: Sequence[Pair],
        orders: Sequence[str],
        max_tokens: int,
    ):
        texts = distinct_texts(pairs)
        heads, cut = model.heads(texts, max_tokens)
        shown = [head + MARK if left else head for head, left in zip(heads, cut.tolist(), strict=True)]
        self.cut = dict(zip(texts, cut.tolist(), strict=True))
        self._model, self._prompt = model, prompt
        examples = nearest.of(pairs, prompt) if nearest else [list(prompt.examples)] * len(pairs)
        # A text is tokenized apart from the template around it: no mark within it can become one of the template's.
        self._ids = dict(zip(texts, model.ids([guarded(text) for text in shown]), strict=True))
        self._frames: dict[tuple[str, ...], list[Segment]] = {}
        self._drawn = nearest is not None
        self._raw = dict(zip(texts, shown, strict=True))
        self.prefix: Ids = ()
        self.rows: list[Ids] = []
        for pair, around in zip(pairs, examples, strict=True):
            for order in orders:
                one, two = (pair.text1, pair.text2) if order == "ab" else (pair.text2, pair.text1)
                self.rows.append(self._row(one, two, around) if prompt.fenced else self._open(one, two, around))

    def _row(self, one: str, two: str, examples: Sequence[Example]) -> Ids:
        """The rest of a question; `prefix` becomes what stands before it."""
        frame = self._frame(examples)
        around = [text for example in examples for text in (example.text1, example.text2)]
        known = [*self._model.ids([guarded(text) for text in around]), self._ids[one], self._ids[two]]
        parts = [segment.ids if segment.slot is None else known[segment.slot] for segment in frame]
        # All questions share what stands before their own first text; with drawn examples, before the first of those.
        shared = 1 if self._drawn else [segment.slot for segment in frame].index(len(around))
        self.prefix = tuple(chain.from_iterable(parts[:shared]))
        return tuple(chain.from_iterable(parts[shared:]))

    def _frame(self, examples: Sequence[Example]) -> list[Segment]:
        # The answers of examples stand in the frame, their texts in slots: so there are few frames.
        key = tuple(example.answer for example in examples)
        if key not in self._frames:
            marked = [Example(slot(2 * at), slot(2 * at + 1), answer) for at, answer in enumerate(key)]
            places = slot(2 * len(key)), slot(2 * len(key) + 1)
            self._frames[key] = self._model.chat(self._prompt.messages(*places, marked))
        return self._frames[key]

    def _open(self, one: str, two: str, examples: Sequence[Example]) -> Ids:
        """Without the fence: the texts within the template, marks and all."""
        (whole,) = self._model.chat(self._prompt.messages(self._raw[one], self._raw[two], examples))
        return whole.ids


class DigitAnnotator:
    """Expected answers of a causal language model, on the prompt's scale; one vote per order.

    Options as those of ChatAnnotator. `answer` is the likeliest answer, `missing_mass` the probability on what is no
    answer. A model that begins otherwise is held to the answers all the same: there is no text to fall back to, and a
    high missing mass says that it should be asked in other words. Error "not_finite" where its numbers overflow.
    """

    def __init__(
        self,
        name: str,
        model: LanguageModel,
        *,
        prompt: Prompt | None = None,
        nearest: Nearest | None = None,
        max_tokens: int = 256,
        both_orders: bool = False,
    ):
        self.name = name
        self._model = model
        self._prompt = prompt or Prompt.load()
        self._nearest = nearest
        self._hash = shown_hash(self._prompt, nearest)
        self._max_tokens = max_tokens
        self._orders = ("ab", "ba") if both_orders else ("ab",)
        self.per_pair = len(self._orders)
        self.inputs = {f"model:{name}": model.model.fingerprint}
        self.inputs |= {f"examples:{name}": nearest.fingerprint} if nearest else {}
        self.prompts = {self._hash: asdict(self._prompt)}
        self.settings: dict[str, Any] = {
            "name": name,
            "model": model.model.name,
            "scoring": "digit",
            "prompt": self._hash,
            "max_tokens": max_tokens,
            "orders": list(self._orders),
            "precision": model.precision,
            "device": model.device,
        }

    def plan(self, pairs: Sequence[Pair], answers: Answers) -> Plan:
        """Questions to compute, and those that are kept."""
        asks = self._asks(pairs)
        items = {(row, ()) for row in asks.rows}
        known = len(self._model.known(asks.prefix, list(items), answers, self._wanted()[0]))
        return Plan(self.name, "questions", len(items) - known, known)

    def vote(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
        """A vote per pair and order, computed in batches that are kept as they are done."""
        asks = self._asks(pairs)
        wanted, owner = self._wanted()
        chances = self._model.probabilities(asks.prefix, asks.rows, wanted, answers=answers, progress=progress)
        rows = iter(zip(chances @ owner, asks.rows, strict=True))
        for pair in pairs:
            yield [self._vote(pair, order, *next(rows), asks) for order in self._orders]

    def _asks(self, pairs: Sequence[Pair]) -> _Asks:
        return _Asks(self._model, self._prompt, self._nearest, pairs, self._orders, self._max_tokens)

    def _wanted(self) -> tuple[list[Ids], NDArray[np.float64]]:
        """What may follow the question, and which answer each is a way to write, (ways, answers) of 0 and 1."""
        answers = list(self._prompt.values)
        written = self._model.answer_ids(answers)
        wanted = [ids for answer in answers for ids in written[answer]]
        owner = [[float(answer == other) for other in answers] for answer in answers for _ in written[answer]]
        return wanted, np.array(owner)

    def _vote(self, pair: Pair, order: str, chances: NDArray[np.float64], row: Ids, asks: _Asks) -> Row:
        total = float(chances.sum())
        values: dict[str, Any] = {"error": "not_finite"}
        if np.isfinite(total) and total > 0:
            answers = self._prompt.values
            shares = chances / total
            some = shares[shares > 0]
            values = {
                "raw": float(np.clip(shares @ np.array(list(answers.values())), self._prompt.low, self._prompt.high)),
                "entropy": float(-(some * np.log(some)).sum()),
                "missing_mass": max(0.0, 1 - total),
                "answer": list(answers)[int(chances.argmax())],
            }
        values |= {"order": order, "scale": self._prompt.scale, "tokens": len(asks.prefix) + len(row)}
        cut = asks.cut[pair.text1] + asks.cut[pair.text2]
        return vote_row(pair, self.name, "digit", self._hash, cut=cut, **values)
