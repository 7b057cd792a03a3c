"""Votes of a chat model behind an OpenAI-compatible endpoint: how close are two texts, 0 to 5?

Where the endpoint gives log-probabilities the vote is the expected value over the digits at the digit's place, as a
model that wavers between 3 and 4 says more than the digit it settles on; `missing_mass` is the probability there
that is on no digit, `entropy` that of the digits' distribution in nats. Elsewhere it is the digit itself.
"""

import html
import json
import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stscurate.annotators.base import Pair, Plan, Row, vote_row
from stscurate.errors import ServiceError
from stscurate.progress import Progress
from stscurate.resources import definition
from stscurate.services.answers import Answers, answer_key, missing
from stscurate.services.chat import Ask, ChatEndpoint, Reply, Token

_AT_ONCE = 1000  # pairs whose answers are looked up together
_LETTERS = 4  # characters counted as one token: an endpoint's tokenizer isn't known here
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
_OF_FIVE = re.compile(r"(?<=\d)\s*(?:/|out of)\s*5(?:\.0)?(?!\w)")
_REFUSAL = re.compile(r"\b(?:sorry|unable|can'?t|can’t|cannot|can not|won'?t)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Similarity:
    """The words of the question, as in datasets/prompts/similarity.toml."""

    system: str
    user: str

    @classmethod
    def load(cls) -> "Similarity":
        """The one that comes with the package."""
        return cls(**tomllib.loads(definition("prompts/similarity.toml").read_text("utf-8")))

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that change with any word."""
        return answer_key(**asdict(self))[:16]

    def messages(self, text1: str, text2: str) -> list[dict[str, str]]:
        """The question about two texts, which stand fenced and escaped in it."""
        texts = {"{text1}": html.escape(text1, quote=False), "{text2}": html.escape(text2, quote=False)}
        user = re.sub(r"\{text[12]\}", lambda found: texts[found[0]], self.user)  # one pass: a text may hold {text2}
        return [{"role": "system", "content": self.system.strip()}, {"role": "user", "content": user.strip()}]


@dataclass(frozen=True)
class _Due:
    """One ask: a pair in one order."""

    pair: Pair
    order: str
    key: str
    ask: Ask
    cut: int


class ChatAnnotator:
    """A chat model's votes, scale "0..5", one per order (`both_orders` asks ba besides ab).

    service: what stands for the endpoint in keys and settings, so that a server may move to another port.
    max_tokens: of each text, the head is sent, four characters counted as a token.
    Errors of a vote: "refusal", "content_filter", "length" (it ended before any number), "parse", "http_400", ...;
    `answer` then holds what came back.
    """

    def __init__(
        self,
        name: str,
        endpoint: ChatEndpoint,
        *,
        service: str,
        max_tokens: int = 256,
        both_orders: bool = False,
        seed: int = 0,
    ):
        self.name = name
        self.inputs: dict[str, str] = {}
        self._endpoint = endpoint
        self._prompt = Similarity.load()
        self._max_tokens = max_tokens
        self._orders = ("ab", "ba") if both_orders else ("ab",)
        self._sampling = {"max_tokens": 4, "temperature": 0, "seed": seed, "logprobs": True, "top_logprobs": 20}
        self.settings: dict[str, Any] = {
            "name": name,
            "service": service,
            "model": endpoint.model,
            "scoring": "digit",
            "prompt": self._prompt.hash,
            "sampling": self._sampling,
            "max_tokens": max_tokens,
            "orders": list(self._orders),
        }

    def plan(self, pairs: Sequence[Pair], answers: Answers) -> Plan:
        """Requests to send, and those answered."""
        keys = {due.key for due in self._asks(pairs)}
        due = sum(1 for _ in self._missing(pairs, answers))
        return Plan(self.name, due, len(keys) - due)

    def vote(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
        """A vote per pair and order. ServiceError or InputError where the endpoint can't be asked to the end."""
        plan = self.plan(pairs, answers)
        if plan.due:
            self._ask(pairs, answers, plan, progress)
        for start in range(0, len(pairs), _AT_ONCE):
            asked = list(self._asks(pairs[start : start + _AT_ONCE]))
            kept = answers.get(due.key for due in asked)
            votes = [self._vote(due, kept) for due in asked]
            for first in range(0, len(votes), len(self._orders)):
                yield votes[first : first + len(self._orders)]

    def _ask(self, pairs: Sequence[Pair], answers: Answers, plan: Plan, progress: Progress) -> None:
        total = plan.due + plan.known
        done = answered = plan.known
        keys: list[str] = []
        # Refused asks wait for an answer to another one: it shows that the fault is theirs, not the endpoint's.
        refused: dict[str, Reply] = {}
        progress("votes", done, total)

        def asks() -> Iterator[Ask]:
            for due in self._missing(pairs, answers):
                keys.append(due.key)
                yield due.ask

        def received(index: int, reply: Reply) -> None:
            nonlocal done, answered
            if reply.error:
                refused[keys[index]] = reply
            else:
                answered += 1
                keep(refused | {keys[index]: reply})
            done += 1
            progress("votes", done, total)

        def keep(replies: dict[str, Reply]) -> None:
            answers.put("vote", {key: json.dumps(asdict(reply)).encode() for key, reply in replies.items()})
            refused.clear()

        self._endpoint.ask(asks(), received)
        if refused and not answered:
            first = next(iter(refused.values()))
            raise ServiceError(
                f"{self.name} refused every ask ({first.error}: {first.text}): see to the server and its model."
            )
        keep(refused)

    def _asks(self, pairs: Sequence[Pair]) -> Iterator[_Due]:
        limit = _LETTERS * self._max_tokens
        shape = {name: self.settings[name] for name in ("service", "model", "prompt", "sampling")}
        for pair in pairs:
            heads = [text[:limit] for text in (pair.text1, pair.text2)]
            cut = sum(math.ceil((len(text) - len(text[:limit])) / _LETTERS) for text in (pair.text1, pair.text2))
            for order in self._orders:
                messages = self._prompt.messages(*(heads if order == "ab" else reversed(heads)))
                key = answer_key(**shape, messages=messages, order=order, sample=0)
                yield _Due(pair, order, key, {"messages": messages, **self._sampling}, cut)

    def _missing(self, pairs: Sequence[Pair], answers: Answers) -> Iterator[_Due]:
        """The asks without an answer, each once."""
        seen: set[str] = set()
        for start in range(0, len(pairs), _AT_ONCE):
            part = [due for due in self._asks(pairs[start : start + _AT_ONCE]) if due.key not in seen]
            keys = [due.key for due in part]
            seen.update(keys)
            for index in missing(keys, answers.get(keys)):
                yield part[index]

    def _vote(self, due: _Due, kept: dict[str, bytes]) -> Row:
        reply = _loaded(kept[due.key])
        values = read_reply(reply)
        values |= {"tokens": reply.usage, "cut": due.cut, "order": due.order, "scale": "0..5"}
        return vote_row(due.pair, self.name, "digit", self._prompt.hash, **values)


def read_reply(reply: Reply) -> dict[str, Any]:
    """What an answer says: `raw` (0 to 5) with `entropy` and `missing_mass` where they are known, or `error`."""
    # A server may send half a surrogate pair, which no file can store.
    answer = (reply.refusal or reply.text).encode("utf-8", "replace").decode()
    number = parse_digit(answer)
    if reply.error or reply.refusal or number is None:
        return {"answer": answer, "error": reply.error or _why(reply)}
    for token in reply.logprobs or []:
        if token.text.strip() in set("012345"):
            # A digit that goes on ("3.5", "10") isn't the number that was meant: then the parsed one stands.
            return {"answer": answer, "raw": number} | (expected(token) if float(token.text) == number else {})
    return {"answer": answer, "raw": number}


def parse_digit(answer: str) -> float | None:
    """The one number of an answer, 0 to 5 ("4", "Score: 3.5", "4/5"); None where there is none, or several."""
    numbers = _NUMBER.findall(_OF_FIVE.sub("", answer))
    number = float(numbers[0]) if len(numbers) == 1 else math.nan
    return number if 0 <= number <= 5 else None


def expected(token: Token) -> dict[str, float]:
    """The expected digit at a token's place (`raw`), its `entropy` in nats, and the probability on no digit.

    >>> expected(Token("4", [("4", math.log(0.6)), ("3", math.log(0.2)), ("Four", math.log(0.2))]))["raw"]
    3.75
    """
    mass = dict.fromkeys("012345", 0.0)
    for text, logprob in token.top:
        if text.strip() in mass and logprob <= 0:
            mass[text.strip()] += math.exp(logprob)
    total = sum(mass.values())
    if not total:
        return {}
    shares = {int(digit): value / total for digit, value in mass.items() if value}
    return {
        "raw": sum(digit * share for digit, share in shares.items()),
        "entropy": -sum(share * math.log(share) for share in shares.values()),
        "missing_mass": max(0.0, 1 - total),
    }


def _why(reply: Reply) -> str:
    if reply.finish == "content_filter":
        return "content_filter"
    if reply.refusal or _REFUSAL.search(reply.text):
        return "refusal"
    return "length" if reply.finish == "length" else "parse"


def _loaded(value: bytes) -> Reply:
    data = json.loads(value)
    tokens = data.pop("logprobs")
    kept = None if tokens is None else [Token(t["text"], [(text, p) for text, p in t["top"]]) for t in tokens]
    return Reply(**data, logprobs=kept)
