"""Asks sent in batches of OpenAI's batch API, fetched when they are done, and never sent twice.

What a batch holds is kept in the answers before it is made, and its id when it is: so a killed call finds it again, by
its id or by the token in its metadata. Rows are joined by `custom_id`, which is the answer's key, so that an answer is
the same whether it came live or in a batch. What came back for no row (a batch that expired after 24 hours, a row that
is missing, or failed by a fault of the service) is sent once more in a later batch, up to ROUNDS times.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from stscurate.errors import ServiceError
from stscurate.services.answers import Answers, answer_key
from stscurate.services.batch_api import BatchApi, Seen
from stscurate.services.chat import OPTIONAL, Ask, ChatEndpoint, Reply, read_completion
from stscurate.services.dispatch import Received, Watch
from stscurate.services.purse import Bill, Price, Purse

if TYPE_CHECKING:
    from openai import OpenAI

MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000  # of one file, by OpenAI's rules
ROUNDS = 3  # batches that an ask is sent in at most, in one call
_KIND, _DONE = "sent_batch", "read_batch"  # kinds of kept answers
_LONGEST_PAUSE = 60.0  # seconds between looks
_AT_ONCE = 1000  # rows kept together
_FULL = "token_limit_exceeded"  # too much of the account's is waiting already
_LOST = ("batch_expired", "batch_cancelled")


@dataclass
class Batched:
    """The asks of one annotator to one model.

    asks: those without an answer, anew at each call. received: keeps (key, reply) on the disk before it returns.
    shape: a hash of all that is needed to read an answer, the same for whoever may read the batch.
    """

    endpoint: ChatEndpoint
    asks: Callable[[], Iterator[Ask]]
    received: Received
    shape: str
    price: Price | None = None
    watch: Watch = field(default_factory=Watch)


@dataclass(frozen=True)
class _Sent:
    """A batch as it is kept: its token, what may read it, the keys of its requests, and its id when it was made."""

    token: str
    shape: str
    keys: list[str]
    id: str | None = None

    def value(self) -> bytes:
        return json.dumps({"shape": self.shape, "keys": self.keys, "id": self.id}).encode()


def under_way(answers: Answers, shape: str) -> set[str]:
    """The keys of all asks in batches that are sent and not read."""
    return {key for batch in _kept(answers, shape) for key in batch.keys}


def ask_in_batches(
    works: Sequence[Batched],
    answers: Answers,
    *,
    purse: Purse | None = None,
    first_pause: float = 5.0,
    sleep: Callable[[float], None] = time.sleep,
    seen: Callable[[], None] = lambda: None,
) -> None:
    """Send all asks of all works in batches, wait until these are done, and hand on each reply.

    Batches that an earlier call has sent are fetched, not sent again. A row with an error is handed on as a reply with
    `error` ("http_400", ...), one of an ask that came back ROUNDS times without an answer as "expired". `seen` is
    called when something has changed. The purse's cap ends the sending without an error.

    ServiceError where a batch fails its validation or was cancelled, or the service can't be asked; InputError where it
    has no batches or refuses the key. What is sent stays sent, and the next call fetches it.
    """
    with ExitStack() as stack:
        shared = _Shared(answers, purse or Purse(), first_pause, sleep)
        senders = [_Sender(work, shared, stack) for work in works]
        pause = first_pause
        while True:
            going = [one.go_on() for one in senders]
            if not any(going):
                return
            seen()
            sleep(pause)
            moved = [one.look() for one in senders]
            pause = first_pause if any(moved) else min(pause * 1.5, _LONGEST_PAUSE)
            seen()


@dataclass(frozen=True)
class _Shared:
    """What the works of a call have in common. claimed: keys of the asks that are under way, whoever has sent them."""

    answers: Answers
    purse: Purse
    first_pause: float
    sleep: Callable[[float], None]
    claimed: set[str] = field(default_factory=set)


class _Sender:
    """The batches of one work."""

    def __init__(self, work: Batched, shared: _Shared, stack: ExitStack):
        self._work, self._answers, self._purse, self._claimed = work, shared.answers, shared.purse, shared.claimed
        self._api = BatchApi(work.endpoint, first_pause=shared.first_pause, sleep=shared.sleep)
        self._client: OpenAI = stack.enter_context(self._api.connect())
        self._running: dict[str, _Sent] = {}  # by their ids
        self._done: Counter[str] = Counter()  # requests of each that have come to an end
        self._bills: dict[str, Bill] = {}  # of the asks sent by this call
        self._settled: set[str] = set()  # asks that this call has a last word on
        self._rounds: Counter[str] = Counter()
        self._without: dict[str, frozenset[str]] = {}  # optional arguments that a batch was sent without
        self._due = True  # whether there may be asks to send
        self._full = False  # whether the service takes no more until a batch has ended
        self._adopt()

    def go_on(self) -> bool:
        """Send what is due. Whether anything is under way."""
        if self._due and not self._full and not self._purse.full:
            self._due = False
            self._send()
        self._watch()
        return bool(self._running)

    def look(self) -> bool:
        """See how the batches stand, and read those that are done. Whether any has moved."""
        moved = False
        for batch in list(self._running):
            seen = self._api.look(self._client, batch)
            moved |= seen.done != self._done[batch] or seen.ended
            self._done[batch] = seen.done
            if seen.ended:
                self._end(self._running[batch], seen)
        self._watch()
        return moved

    def _adopt(self) -> None:
        """Take up what an earlier call has sent; what it was about to send when it was killed is looked for."""
        for sent in _kept(self._answers, self._work.shape):
            if self._claimed.issuperset(sent.keys):
                continue  # another work of the same shape has taken it up
            made = sent.id
            if made is None and (found := self._api.find(self._client, sent.token)):
                made = found.id
            if made is None:
                self._forget(sent)
            else:
                self._keep(replace(sent, id=made))

    def _send(self) -> None:
        """All asks that have no answer and aren't under way, in as many batches as it takes."""
        asks: Iterator[Ask]
        asks = (ask for ask in self._work.asks() if ask.key not in self._claimed and ask.key not in self._settled)
        while True:
            with TemporaryFile() as file:
                keys, left = self._fill(file, asks)
                if keys:
                    self._make(file, keys)
            if left is None:
                return
            asks = chain([left], asks)

    def _fill(self, file: IO[bytes], asks: Iterator[Ask]) -> tuple[list[str], Ask | None]:
        """Write requests up to a file's limits: their keys, and the first ask that didn't go in."""
        keys: list[str] = []
        size = 0
        for ask in asks:
            line = self._line(ask)
            if keys and (len(keys) == MOST_REQUESTS or size + len(line) > MOST_BYTES):
                return keys, ask
            bill = self._purse.reserve(ask.tokens, ask.answer, self._work.price)
            if not bill:
                self._purse.full = True
                break
            if self._work.price:
                self._bills[ask.key] = bill
            else:
                self._purse.settle(bill, None, sent=False)  # it costs nothing that is known
            self._claimed.add(ask.key)
            file.write(line)
            keys.append(ask.key)
            size += len(line)
        return keys, None

    def _line(self, ask: Ask) -> bytes:
        endpoint = self._work.endpoint
        body = {"model": endpoint.model, **endpoint.taken(ask.body)}
        row = {"custom_id": ask.key, "method": "POST", "url": "/v1/chat/completions", "body": body}
        return json.dumps(row).encode() + b"\n"

    def _make(self, file: IO[bytes], keys: list[str]) -> None:
        parts = {"shape": self._work.shape, "keys": keys}
        tokens = (answer_key(batch=number, **parts) for number in range(1_000_000))
        token = next(token for token in tokens if not self._answers.get([token]))
        sent = _Sent(token, self._work.shape, keys)
        self._answers.put(_KIND, {token: sent.value()})
        made = self._api.make(self._client, self._api.upload(self._client, file), token)
        self._without[token] = self._work.endpoint.dropped
        self._keep(replace(sent, id=made.id))

    def _keep(self, sent: _Sent) -> None:
        self._answers.put(_KIND, {sent.token: sent.value()})
        self._claimed.update(sent.keys)
        if sent.id:
            self._running[sent.id] = sent

    def _forget(self, sent: _Sent) -> None:
        """Nothing more is to be had of it."""
        self._answers.put(_DONE, {sent.token: b""})
        self._claimed.difference_update(sent.keys)
        if sent.id:
            self._running.pop(sent.id, None)

    def _end(self, sent: _Sent, seen: Seen) -> None:
        """Keep the answers of a batch that has ended, and see what is to be sent again."""
        self._full = False
        open_keys = set(sent.keys)
        without = self._without.get(sent.token, frozenset())
        for part in _parts(self._rows(seen), _AT_ONCE):
            replies = {row["custom_id"]: row for row in part if row.get("custom_id") in open_keys}
            self._receive(
                [(key, reply) for key, row in replies.items() if (reply := self._reply(row, without))], open_keys
            )
        if seen.status == "completed" or seen.status == "expired":
            self._again(open_keys)
        for key in open_keys:  # nothing was answered, so nothing is paid
            if bill := self._bills.pop(key, None):
                self._purse.settle(bill, None, sent=False)
        self._forget(sent)
        self._judge(sent, seen)

    def _rows(self, seen: Seen) -> Iterator[dict[str, Any]]:
        for file in (seen.output, seen.errors):
            if file:
                yield from self._api.rows(self._client, file)

    def _receive(self, replies: list[tuple[str, Reply]], open_keys: set[str]) -> None:
        if replies:
            self._work.received(replies)
        for key, reply in replies:
            open_keys.discard(key)
            self._settled.add(key)
            if bill := self._bills.pop(key, None):
                self._purse.settle(bill, reply, sent=True)

    def _again(self, keys: set[str]) -> None:
        """Send these in another batch, but those that have been in ROUNDS of them."""
        self._rounds.update(keys)
        tired = sorted(key for key in keys if self._rounds[key] >= ROUNDS)
        words = f"no answer in {ROUNDS} batches"
        self._receive([(key, Reply(words, error="expired")) for key in tired], keys)
        self._due |= bool(keys)

    def _reply(self, row: dict[str, Any], without: frozenset[str]) -> Reply | None:
        """What a row says; None where it says that nothing was answered, which another batch may mend."""
        response, error = row.get("response") or {}, row.get("error") or {}
        status, body = response.get("status_code"), response.get("body") or {}
        if status == 200:
            try:
                return read_completion(json.dumps(body).encode())
            except ValueError as wrong:
                return Reply(str(wrong), error="no_chat_completion")
        told = body.get("error") if isinstance(body.get("error"), dict) else error
        words = " ".join(str((told or {}).get("message") or "").split())[:300]
        if error.get("code") in _LOST or status is None or status >= 500 or status in (408, 409, 425, 429):
            return None
        if self._work.endpoint.drops(status, words, OPTIONAL - without):
            return None
        return Reply(words, error=f"http_{status}")

    def _judge(self, sent: _Sent, seen: Seen) -> None:
        """Say what is wrong with a batch as a whole."""
        place = self._work.endpoint.place
        if seen.status == "cancelled":
            raise ServiceError(
                f"{place}: batch {seen.id} was cancelled. What it answered is kept; the same command asks the rest."
            )
        if seen.status != "failed":
            return
        if self._running and any(code == _FULL for _, code in seen.wrong):
            self._due = self._full = True
            return
        wrong = "; ".join(message for message, _ in seen.wrong[:3]) or "it doesn't say why"
        mend = "wait until other batches are done, or send less by --max-requests" if _FULL in str(seen.wrong) else ""
        raise ServiceError(
            f"{place}: batch {seen.id} of {len(sent.keys):,} requests failed validation ({wrong}): nothing of it was "
            f"answered or paid; {mend or 'mend that, or leave out --batch'}."
        )

    def _watch(self) -> None:
        self._work.watch.in_flight = sum(len(sent.keys) - self._done[batch] for batch, sent in self._running.items())


def _kept(answers: Answers, shape: str) -> list[_Sent]:
    found = ((token, json.loads(value)) for token, value in answers.items(_KIND))
    return [_Sent(token, **value) for token, value in found if value["shape"] == shape]


def _parts(rows: Iterator[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    for row in rows:
        part.append(row)
        if len(part) == size:
            yield part
            part = []
    yield part
