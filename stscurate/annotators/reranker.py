"""Votes of a cross-encoder, which reads both texts of a pair at once."""

from collections.abc import Iterator, Sequence
from typing import Any

from stscurate.annotators.base import Pair, Plan, Row, vote_row
from stscurate.progress import Progress
from stscurate.services.answers import Answers
from stscurate.services.reranker import Reranker


class RerankerAnnotator:
    """Numbers of a cross-encoder, one per order (`both_orders` asks ba besides ab); cut where the model cuts.

    Scale "0..1" where the model's own activation is a sigmoid; else "relative", its logits. Error "not_finite".
    """

    def __init__(self, name: str, model: str, *, both_orders: bool = False):
        self.name = name
        self._model = model
        self._orders = ("ab", "ba") if both_orders else ("ab",)
        self.prompts: dict[str, dict[str, Any]] = {}
        self.per_pair = len(self._orders)
        found = Reranker(model).model
        self.inputs = {f"model:{name}": found.fingerprint}
        self.settings: dict[str, Any] = {
            "name": name,
            "model": found.name,
            "scoring": "cross-encoder",
            "orders": list(self._orders),
        }

    def plan(self, pairs: Sequence[Pair], answers: Answers) -> Plan:
        """Pairs to read, in each order, and those that are kept."""
        asked = set(self._asked(pairs))
        known = Reranker(self._model).known(list(asked), answers)
        return Plan(self.name, "pairs in an order", len(asked) - known, known)

    def vote(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
        """A vote per pair and order, kept batch by batch."""
        reranker = Reranker(self._model, answers=answers)
        numbers, cut = reranker.score(self._asked(pairs), progress=progress)
        scale = "0..1" if reranker.bounded else "relative"
        votes = iter(zip(numbers.tolist(), cut.tolist(), strict=True))
        for pair in pairs:
            yield [self._vote(pair, order, scale, *next(votes)) for order in self._orders]

    def _vote(self, pair: Pair, order: str, scale: str, number: float, cut: int) -> Row:
        finite = abs(number) < float("inf")
        values = {"raw": number if finite else None, "error": None if finite else "not_finite"}
        return vote_row(pair, self.name, "cross-encoder", "", order=order, scale=scale, cut=cut, **values)

    def _asked(self, pairs: Sequence[Pair]) -> list[tuple[str, str]]:
        both = [{"ab": (pair.text1, pair.text2), "ba": (pair.text2, pair.text1)} for pair in pairs]
        return [found[order] for found in both for order in self._orders]
