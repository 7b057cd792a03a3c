"""One endpoint's dispatcher, for all that ask there: a loop that sends what may be sent, keeps what has arrived, and
sleeps until something changes. What has to be asked again goes before what wasn't asked yet.
"""

import asyncio
import heapq
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from stscurate.errors import ServiceError, StscurateError
from stscurate.services.chat import Ask, ChatEndpoint, Outcome, Reply
from stscurate.services.limits import Limiter, Ticket
from stscurate.services.purse import Bill, Price, Purse

if TYPE_CHECKING:
    from openai import AsyncOpenAI

TRIES = 6  # of one ask, with pauses of 1, 2, 4, 8 and 16 seconds between them
TIMEOUTS = 3  # of one ask
GIVE_UP_AFTER = 8  # asks in a row that brought no answer
REFUSED_AFTER = 100  # asks in a row that the server wouldn't take: no longer a matter of what they hold
_REFUSALS = 12  # pauses in a row for 429 that nothing came of: some six minutes
_LONGEST_PAUSE = 300.0  # seconds; a server that wants more is left for a later run
_GRACE = 3.0  # seconds for what is in flight at Ctrl-C: it is paid for
_LOOK_AGAIN = 0.05  # seconds
_MAYBE_PAID = ("timeout", "cancelled")  # a request that was taken may cost, also when its answer is not waited for
_SAMPLE = 20  # answers from which it is known how long one takes

Received = Callable[[Sequence[tuple[str, Reply]]], None]


@dataclass
class Watch:
    """What can be seen of the work while it goes on."""

    in_flight: int = 0
    window: int = 0  # asks in flight at most, now
    requests: float | None = None  # limit a minute, where the service tells it
    tokens: float | None = None
    faults: Counter[str] = field(default_factory=Counter)  # kinds of tries that brought nothing


@dataclass
class Source:
    """The asks of one annotator to one model.

    received: keeps each (key, reply) on the disk before it returns; it is called in a thread of its own, one at a time.
    """

    endpoint: ChatEndpoint
    asks: Iterator[Ask]
    received: Received
    price: Price | None = None
    watch: Watch = field(default_factory=Watch)


@dataclass
class _Job:
    """An ask that is open: in flight (twice, where it takes too long), or waiting to be sent again."""

    source: Source
    ask: Ask
    tries: int = 0
    timeouts: int = 0
    again: bool = False  # sent a second time beside the first
    running: set["asyncio.Task[None]"] = field(default_factory=set)
    done: bool = False


def _in_turn(sources: Sequence[Source]) -> Iterator[_Job]:
    """One of each source, so that all annotators of an endpoint are done at about the same time."""
    for asks in zip_longest(*(source.asks for source in sources)):
        for source, ask in zip(sources, asks, strict=True):
            if ask:
                yield _Job(source, ask)


class Stop:
    """Whether no more is to be sent, anywhere."""

    def __init__(self) -> None:
        self.now = False
        self.error: StscurateError | None = None
        self.wakers: list[Callable[[], None]] = []

    def __call__(self, error: StscurateError | None = None) -> None:
        """Send no more; an error is raised at the end."""
        self.now, self.error = True, self.error or error
        for wake in self.wakers:
            wake()


class Dispatcher:
    """The asks to one endpoint."""

    def __init__(
        self,
        client: "AsyncOpenAI",
        sources: Sequence[Source],
        limiter: Limiter,
        purse: Purse,
        first_pause: float,
        stop: Stop,
        keeper: Executor,
    ):
        self.watch = sources[0].watch
        for source in sources:
            source.watch = self.watch
        self.seen: Callable[[], None] = lambda: None
        self._client = client
        self._limiter = limiter
        self._purse = purse
        self._first_pause = first_pause
        self._stop = stop
        self._keeper = keeper
        self._unkept: list[tuple[_Job, Reply]] = []
        self._keeping: asyncio.Task[None] | None = None
        self._place = sources[0].endpoint.place
        self._new = _in_turn(sources)
        self._next: _Job | None = None  # taken from them, but not sent
        self._waiting: list[tuple[float, int, _Job]] = []  # to be sent again: when, in which order
        self._flying: dict[asyncio.Task[None], tuple[float, _Job]] = {}  # oldest first
        self._arrived: list[tuple[_Job, Ticket, Bill, Outcome]] = []
        self._took: deque[float] = deque(maxlen=100)  # seconds of the latest answers
        self._in_a_row = Counter[str]()  # kinds of failure -> asks since the last success
        self._count = 0
        self._event = asyncio.Event()
        self._clock = time.monotonic

    def wake(self) -> None:
        """Look again at what there is to do."""
        self._event.set()

    async def run(self) -> None:
        """Until all asks are done, or no more is to be sent and nothing is in flight."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                pause = self._send()
                if not self._flying and not self._keeping and not self._arrived and (self._stop.now or pause is None):
                    return
                timer = None if pause is None else loop.call_later(pause, self._event.set)
                await self._event.wait()
                self._event.clear()
                if timer:
                    timer.cancel()
                self._settle()
        except asyncio.CancelledError:
            if self._flying:
                await asyncio.wait(self._flying, timeout=_GRACE)
            self._settle()
            if self._keeping:
                await self._keeping
            raise
        finally:
            for task in self._flying:
                task.cancel()
            await asyncio.gather(*self._flying, return_exceptions=True)

    def _send(self) -> float | None:
        """Send all that may be sent now. Seconds until there may be more; None where only an answer helps."""
        while not self._stop.now:
            now = self._clock()
            job, later = self._choose(now)
            if not job:
                return later
            wait = self._limiter.wait(now, job.ask.tokens + job.ask.answer)
            if wait:
                return None if wait == math.inf else wait
            bill = self._purse.reserve(job.ask.tokens, job.ask.answer, job.source.price)
            if not bill:
                if self._purse.in_flight:
                    return _LOOK_AGAIN  # what is in flight may turn out cheaper
                self._purse.full = True
                self._stop()
                return None
            self._take(job, bill, now)
        return None

    def _choose(self, now: float) -> tuple[_Job | None, float | None]:
        """What is to be sent next (it stays where it is), or how many seconds until there is something."""
        later = None
        if self._waiting:
            if self._waiting[0][0] <= now:
                return self._waiting[0][2], None
            later = self._waiting[0][0] - now
        straggler, due = self._straggler(now)
        if straggler:
            return straggler, None
        if len(self._waiting) < self._limiter.ceiling:  # else all fails, and more would too
            self._next = self._next or next(self._new, None)
            if self._next:
                return self._next, None
        return None, min((seconds for seconds in (later, due) if seconds is not None), default=None)

    def _straggler(self, now: float) -> tuple[_Job | None, float | None]:
        """The oldest ask in flight, if it takes far longer than others did; else seconds until it will."""
        if len(self._took) < _SAMPLE:
            return None, None
        for began, job in self._flying.values():
            if not job.again and not job.done:
                if now - began < 3 * self._first_pause:
                    return None, began + 3 * self._first_pause - now
                usual = sorted(self._took)[int(len(self._took) * 0.95)]
                left = began + 2 * usual + 3 * self._first_pause - now
                return (job, None) if left <= 0 else (None, left)
        return None, None

    def _take(self, job: _Job, bill: Bill, now: float) -> None:
        if self._waiting and self._waiting[0][2] is job:
            heapq.heappop(self._waiting)
        elif job is self._next:
            self._next = None
        else:
            job.again = True
        ticket = self._limiter.send(now, job.ask.tokens + job.ask.answer)
        task = asyncio.create_task(self._try(job, ticket, bill))
        job.running.add(task)
        self._flying[task] = (now, job)

    async def _try(self, job: _Job, ticket: Ticket, bill: Bill) -> None:
        try:
            outcome = await job.source.endpoint.send(self._client, job.ask)
        except asyncio.CancelledError:
            outcome = Outcome(reason="cancelled")
        task = asyncio.current_task()
        if task:
            self._flying.pop(task, None)
            job.running.discard(task)
        self._arrived.append((job, ticket, bill, outcome))
        self._event.set()

    def _settle(self) -> None:
        """See what has arrived, and what that means for what comes; let it be kept."""
        if self._keeping and self._keeping.done():
            self._keeping.result()  # raises what went wrong
            self._keeping = None
        arrived, self._arrived = self._arrived, []
        for job, ticket, bill, outcome in arrived:
            self._purse.settle(bill, outcome.reply, sent=outcome.reason in _MAYBE_PAID)
            reply = self._judge(job, ticket, outcome)
            if reply and not job.done:
                job.done = True
                self._unkept.append((job, reply))
                self._limiter.held += 1
                for task in job.running:  # its twin
                    task.cancel()
        if self._unkept and not self._keeping:
            self._keeping = asyncio.create_task(self._keep())
            self._keeping.add_done_callback(lambda task: self.wake())
        self.watch.in_flight, self.watch.window = self._limiter.in_flight, int(self._limiter.window)
        self.watch.requests, self.watch.tokens = self._limiter.requests.limit, self._limiter.tokens.limit
        if arrived:
            self.seen()

    async def _keep(self) -> None:
        """Commit what has arrived, and all that arrives meanwhile, while the loop goes on: a disk is slow."""
        while self._unkept:
            batch, self._unkept = self._unkept, []
            replies: dict[int, list[tuple[str, Reply]]] = {}
            for job, reply in batch:
                replies.setdefault(id(job.source), []).append((job.ask.key, reply))
            received = {id(job.source): job.source.received for job, _ in batch}
            for source, found in replies.items():
                await asyncio.get_running_loop().run_in_executor(self._keeper, received[source], found)
            self._limiter.held -= len(batch)
            self.wake()

    def _judge(self, job: _Job, ticket: Ticket, outcome: Outcome) -> Reply | None:
        """The reply to be kept, if the ask is at its end."""
        now, limiter = self._clock(), self._limiter
        reply, headers = outcome.reply, outcome.headers or {}
        used = None if reply is None or reply.usage is None else float(reply.usage)
        if reply:
            limiter.answered(now, ticket, headers, used, time.time())
            if reply.error:
                self._fail("refused", REFUSED_AFTER, f"{reply.error}: {reply.text}")
                self.watch.faults[reply.error] += 1
            else:
                self._took.append(now - ticket.sent)
                self._in_a_row.clear()
            return reply
        if outcome.reason == "cancelled":
            limiter.failed(now, ticket, overload=False)
            return None
        self.watch.faults[outcome.reason] += 1
        if outcome.final:
            limiter.failed(now, ticket, overload=False)
            self._stop(outcome.final)
            return None
        if outcome.reason == "http_429":
            self._pause(job, now, limiter.too_many(now, ticket, headers, time.time(), self._first_pause), outcome)
            return None
        limiter.failed(now, ticket, overload=outcome.overload)
        return self._try_again(job, now, outcome)

    def _pause(self, job: _Job, now: float, pause: float, outcome: Outcome) -> None:
        if pause > _LONGEST_PAUSE:
            self._stop(ServiceError(f"{self._place} asks for a pause of {pause:.0f} seconds: come back then."))
        elif self._limiter.refused > _REFUSALS:
            self._stop(ServiceError(f"{self._place} answers 429 to all it is asked ({outcome.text}): come back later."))
        self._wait(job, now)  # the limiter holds it back, with all others

    def _try_again(self, job: _Job, now: float, outcome: Outcome) -> Reply | None:
        job.tries += 1
        job.timeouts += outcome.reason == "timeout"
        if job.running or job.done:
            return None  # its twin may still bring the answer
        if job.tries >= TRIES or job.timeouts >= TIMEOUTS:
            self._fail("unanswered", GIVE_UP_AFTER, outcome.reason)
            return Reply(outcome.text, error=outcome.reason)
        # A connection that an idle server has closed is noticed only when it is used: that needs no pause.
        lost = outcome.reason == "connection" and job.tries == 1
        self._wait(job, now if lost else now + self._first_pause * 2.0 ** (job.tries - 1))
        return None

    def _wait(self, job: _Job, until: float) -> None:
        if not job.running and not job.done:
            self._count += 1
            heapq.heappush(self._waiting, (until, self._count, job))

    def _fail(self, kind: str, limit: int, reason: str) -> None:
        self._in_a_row[kind] += 1
        if self._in_a_row[kind] >= limit and not self._stop.now:
            self._stop(
                ServiceError(
                    f"{self._place} answered none of the last {limit} asks ({reason}): "
                    "see to the server, its model or its limits."
                )
            )
