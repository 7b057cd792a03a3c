"""Votes of a chat model behind an OpenAI-compatible endpoint, read by `reading.read_reply`."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stscurate.annotators.base import Pair, Plan, Row, vote_row
from stscurate.annotators.cutting import head, tokens
from stscurate.annotators.examples import Nearest
from stscurate.annotators.prompts import Prompt
from stscurate.annotators.reading import answer_schema, read_reply
from stscurate.progress import Progress
from stscurate.services.answers import Answers, answer_key
from stscurate.services.batch_asking import Batched, under_way
from stscurate.services.chat import Ask, ChatEndpoint, Reply
from stscurate.services.dispatch import Received, Source, Watch
from stscurate.services.purse import Price

_AT_ONCE = 200  # pairs whose answers are looked up together
_ANSWER_TOKENS = 4
_JSON_TOKENS = 24
# Behind the question, where an answer by JSON schema is asked for.
_AS_JSON = '\nWrite the answer as a JSON object with the one key "answer" and nothing else.'


@dataclass(frozen=True)
class _Due:
    """One ask: a pair in one order, for one sample."""

    pair: Pair
    order: str
    sample: int
    ask: Ask
    cut: int


class ChatAnnotator:
    """A chat model's votes on the prompt's scale, one per order (`both_orders` asks ba besides ab) and sample.

    service: what stands for the endpoint in keys and settings, so that a server may move to another port. nearest:
    gold whose nearest pairs are shown as examples, instead of the prompt's own. max_tokens: of each text, the head is
    sent. samples: asks a pair, at temperature 1 where they are several (an endpoint that gives log-probabilities needs
    one). json_schema: the answer is asked for, and taken, as JSON alone. price: of the model, where known. batch: it is
    asked in batches (`batched` instead of `source`), which changes nothing but the price.
    Errors of a vote: "refusal", "content_filter", "length" (it ended before any number), "parse"; "timeout",
    "connection", "no_chat_completion", "http_400", ... where no answer came. `answer` then holds what came back. Failed
    asks are kept as such, and asked again by the next `source`.
    """

    def __init__(
        self,
        name: str,
        endpoint: ChatEndpoint,
        *,
        service: str,
        prompt: Prompt | None = None,
        nearest: Nearest | None = None,
        max_tokens: int = 256,
        both_orders: bool = False,
        samples: int = 1,
        json_schema: bool = False,
        seed: int = 0,
        price: Price | None = None,
        batch: bool = False,
    ):
        self.name = name
        self.endpoint = endpoint
        self.price = price.in_batches if price and batch else price
        self._batch = batch
        self.answered = 0  # asks since `source` that brought an answer, read as a vote or not
        self.faults = Counter[str]()  # those since then that gave no vote, by kind
        self.refused: Reply | None = None  # the first that brought no answer
        self.inputs = {f"examples:{name}": nearest.fingerprint} if nearest else {}
        self._prompt = prompt or Prompt.load()
        self._nearest = nearest
        self._hash = shown_hash(self._prompt, nearest)
        self._max_tokens = max_tokens
        self._orders = ("ab", "ba") if both_orders else ("ab",)
        self._samples = samples
        self.per_pair = len(self._orders) * samples
        self._schema = json_schema
        self._sampling: dict[str, Any] = {
            "max_tokens": _JSON_TOKENS if json_schema else _ANSWER_TOKENS,
            "temperature": 0 if samples == 1 else 1,
            "seed": seed,
            "logprobs": True,
            "top_logprobs": 20,
        }
        if json_schema:
            self._sampling["response_format"] = answer_schema(self._prompt)
        self.prompts = {self._hash: asdict(self._prompt)}
        self.settings: dict[str, Any] = {
            "name": name,
            "service": service,
            "model": endpoint.model,
            "scoring": "digit",
            "prompt": self._hash,
            "sampling": self._sampling,
            "samples": samples,
            "max_tokens": max_tokens,
            "orders": list(self._orders),
        }

    def plan(self, pairs: Sequence[Pair], answers: Answers) -> Plan:
        """Requests to send (those that failed before are sent again), those answered, and what they will cost."""
        due = known = waiting = 0
        asked_tokens = answer = 0.0
        seen: set[bytes] = set()
        in_batches = under_way(answers, self.shape)
        for part, kept in self._kept(pairs, answers, kind="vote"):
            for asked in part:
                digest = bytes.fromhex(asked.ask.key)
                if digest in seen:
                    continue
                seen.add(digest)
                if asked.ask.key in kept:
                    known += 1
                elif asked.ask.key in in_batches:
                    waiting += 1
                else:
                    due, answer = due + 1, answer + asked.ask.answer
                    asked_tokens += asked.ask.tokens
        cost = self.price.of(asked_tokens, answer) if self.price else None
        hours = None if self._batch else self._hours(due, asked_tokens + answer, answers)
        return Plan(self.name, "requests", due, known, round(asked_tokens + answer), cost, hours, waiting)

    def source(self, pairs: Sequence[Pair], answers: Answers, kept: Callable[[int], None]) -> Source:
        """The asks that `answers` lacks, to be sent, and kept there. kept: told of how many, each time.

        What arrives is kept in another thread than the asks are made in.
        """
        sent: set[str] = set()  # those that failed too: not to be asked again before the next call
        received = self._received(answers, kept, sent)

        def asks() -> Iterator[Ask]:
            for start in range(0, len(pairs), _AT_ONCE):
                part = [asked.ask for asked in self._asks(pairs[start : start + _AT_ONCE])]
                # First what is under way, then what is kept: an answer may go from one to the other meanwhile.
                due = {ask.key: ask for ask in part if ask.key not in sent}
                known = answers.get(due, kind="vote")
                due = {key: ask for key, ask in due.items() if key not in known}
                sent.update(due)
                yield from due.values()

        return Source(self.endpoint, asks(), received, self.price)

    def batched(self, pairs: Sequence[Pair], answers: Answers, kept: Callable[[int], None]) -> Batched:
        """The same asks, to be sent in batches."""

        def asks() -> Iterator[Ask]:
            for part, known in self._kept(pairs, answers, kind="vote"):
                yield from (asked.ask for asked in part if asked.ask.key not in known)

        return Batched(self.endpoint, asks, self._received(answers, kept, set()), self.shape, self.price)

    @property
    def shape(self) -> str:
        """A hash of what it takes to read this annotator's answers: whose has the same can read them too."""
        return answer_key(shape=self._asked, schema=self._schema)

    @property
    def _asked(self) -> dict[str, str]:
        """Who is asked, and in which words."""
        # The messages hold the examples: other gold that draws the same ones for a pair needn't ask it again.
        return {"service": self.settings["service"], "model": self.endpoint.model, "prompt": self._prompt.hash}

    def _received(self, answers: Answers, kept: Callable[[int], None], sent: set[str]) -> Received:
        """What keeps replies. sent: keys, of which those that are votes are taken out."""
        self.answered, self.faults, self.refused = 0, Counter(), None

        def received(replies: Sequence[tuple[str, Reply]]) -> None:
            good: dict[str, bytes] = {}
            bad: dict[str, bytes] = {}
            for key, reply in replies:
                error = read_reply(reply, self._prompt, schema=self._schema).get("error")
                (bad if error else good)[key] = json.dumps(reply.as_dict()).encode()
                self.answered += not reply.error
                if reply.error:
                    self.refused = self.refused or reply
                if error:
                    self.faults[error] += 1
                else:
                    sent.discard(key)
            for kind, values in (("vote", good), ("failed", bad)):
                if values:
                    answers.put(kind, values)
            kept(len(replies))

        return received

    def keep_limits(self, watch: Watch, answers: Answers) -> None:
        """Note the limits that the service told, for the next plan."""
        if watch.requests or watch.tokens:
            limits = {"requests": watch.requests, "tokens": watch.tokens}
            answers.put("limits", {self._limits_key: json.dumps(limits).encode()})

    def vote(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
        """A vote per pair and order, of those that are answered; `source` asks for them."""
        for part, kept in self._kept(pairs, answers):
            votes = [self._vote(asked, kept[asked.ask.key]) if asked.ask.key in kept else None for asked in part]
            for first in range(0, len(votes), self.per_pair):
                yield [vote for vote in votes[first : first + self.per_pair] if vote]

    def _kept(
        self, pairs: Sequence[Pair], answers: Answers, kind: str | None = None
    ) -> Iterator[tuple[list[_Due], dict[str, bytes]]]:
        """All asks in parts, each with what is kept of it."""
        for start in range(0, len(pairs), _AT_ONCE):
            part = list(self._asks(pairs[start : start + _AT_ONCE]))
            yield part, answers.get((asked.ask.key for asked in part), kind=kind)

    def _asks(self, pairs: Sequence[Pair]) -> Iterator[_Due]:
        shape = self._asked
        examples = self._nearest.of(pairs, self._prompt) if self._nearest else [None] * len(pairs)
        for pair, shown in zip(pairs, examples, strict=True):
            (one, cut1), (two, cut2) = (head(text, self._max_tokens) for text in (pair.text1, pair.text2))
            for order in self._orders:
                first, second = (one, two) if order == "ab" else (two, one)
                messages = self._prompt.messages(first, second, shown)
                if self._schema:
                    messages[-1]["content"] += _AS_JSON
                guess = guessed_tokens(messages)
                for sample in range(self._samples):
                    sampling = self._sampling | {"seed": self._sampling["seed"] + sample}
                    key = answer_key(**shape, sampling=sampling, messages=messages, order=order, sample=sample)
                    ask = Ask(key, {"messages": messages, **sampling}, guess, sampling["max_tokens"])
                    yield _Due(pair, order, sample, ask, cut1 + cut2)

    def _vote(self, due: _Due, value: bytes) -> Row:
        reply = Reply.from_dict(json.loads(value))
        values = read_reply(reply, self._prompt, schema=self._schema)
        values |= {"tokens": reply.usage, "cut": due.cut, "order": due.order, "sample": due.sample}
        return vote_row(due.pair, self.name, "digit", self._hash, scale=self._prompt.scale, **values)

    def _hours(self, requests: int, tokens: float, answers: Answers) -> float | None:
        """The least that the limits allow, as the price table or an earlier answer tells them."""
        found = answers.get([self._limits_key]).get(self._limits_key, b"{}")
        told = {name: value for name, value in json.loads(found).items() if value}
        price = self.price or Price(0.0, 0.0)
        of_requests = told.get("requests") or price.requests_per_minute
        of_tokens = told.get("tokens") or price.tokens_per_minute
        minutes = [count / limit for count, limit in ((requests, of_requests), (tokens, of_tokens)) if limit]
        return max(minutes) / 60 if minutes else None

    @property
    def _limits_key(self) -> str:
        return answer_key(limits=self.settings["service"], model=self.settings["model"])


def shown_hash(prompt: Prompt, nearest: Nearest | None) -> str:
    """The prompt's hash; of it and the gold that examples are drawn from, where they are."""
    return answer_key(prompt=prompt.hash, nearest=nearest.fingerprint)[:16] if nearest else prompt.hash


def guessed_tokens(messages: Sequence[Mapping[str, str]]) -> float:
    """How many tokens messages have, about, with those that a chat template puts around them."""
    return 3 + sum(4 + tokens(message["content"]) for message in messages)
