"""Votes of a chat model behind an OpenAI-compatible endpoint, read by `reading.read_reply`."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stscurate.annotators.base import Pair, Plan, Row, vote_row
from stscurate.annotators.cutting import head
from stscurate.annotators.examples import Nearest
from stscurate.annotators.prompts import Prompt
from stscurate.annotators.reading import answer_schema, read_reply
from stscurate.errors import ServiceError
from stscurate.progress import Progress
from stscurate.services.answers import Answers, answer_key, missing
from stscurate.services.chat import Ask, ChatEndpoint, Reply, Token

_AT_ONCE = 1000  # pairs whose answers are looked up together
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
    key: str
    ask: Ask
    cut: int


class ChatAnnotator:
    """A chat model's votes on the prompt's scale, one per order (`both_orders` asks ba besides ab) and sample.

    service: what stands for the endpoint in keys and settings, so that a server may move to another port. nearest:
    gold whose nearest pairs are shown as examples, instead of the prompt's own. max_tokens: of each text, the head is
    sent. samples: asks a pair, at temperature 1 where they are several (an endpoint that gives log-probabilities needs
    one). json_schema: the answer is asked for, and taken, as JSON alone.
    Errors of a vote: "refusal", "content_filter", "length" (it ended before any number), "parse", "http_400", ...;
    `answer` then holds what came back.
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
    ):
        self.name = name
        self.inputs = {f"examples:{name}": nearest.fingerprint} if nearest else {}
        self._endpoint = endpoint
        self._prompt = prompt or Prompt.load()
        self._nearest = nearest
        self._hash = shown_hash(self._prompt, nearest)
        self._max_tokens = max_tokens
        self._orders = ("ab", "ba") if both_orders else ("ab",)
        self._samples = samples
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
            each = len(self._orders) * self._samples
            for first in range(0, len(votes), each):
                yield votes[first : first + each]

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
        # The messages hold the examples: other gold that draws the same ones for a pair needn't ask it again.
        shape = {"service": self.settings["service"], "model": self._endpoint.model, "prompt": self._prompt.hash}
        examples = self._nearest.of(pairs, self._prompt) if self._nearest else [None] * len(pairs)
        for pair, shown in zip(pairs, examples, strict=True):
            (one, cut1), (two, cut2) = (head(text, self._max_tokens) for text in (pair.text1, pair.text2))
            for order in self._orders:
                first, second = (one, two) if order == "ab" else (two, one)
                messages = self._prompt.messages(first, second, shown)
                if self._schema:
                    messages[-1]["content"] += _AS_JSON
                for sample in range(self._samples):
                    sampling = self._sampling | {"seed": self._sampling["seed"] + sample}
                    key = answer_key(**shape, sampling=sampling, messages=messages, order=order, sample=sample)
                    yield _Due(pair, order, sample, key, {"messages": messages, **sampling}, cut1 + cut2)

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
        values = read_reply(reply, self._prompt, schema=self._schema)
        values |= {"tokens": reply.usage, "cut": due.cut, "order": due.order, "sample": due.sample}
        return vote_row(due.pair, self.name, "digit", self._hash, scale=self._prompt.scale, **values)


def shown_hash(prompt: Prompt, nearest: Nearest | None) -> str:
    """The prompt's hash; of it and the gold that examples are drawn from, where they are."""
    return answer_key(prompt=prompt.hash, nearest=nearest.fingerprint)[:16] if nearest else prompt.hash


def _loaded(value: bytes) -> Reply:
    data = json.loads(value)
    tokens = data.pop("logprobs")
    kept = None if tokens is None else [Token(t["text"], [(text, p) for text, p in t["top"]]) for t in tokens]
    return Reply(**data, logprobs=kept)
