"""Asks to an OpenAI-compatible chat endpoint: at most so many at once, tried again where that helps, kept as they come.

The retries are ours, not the client library's: a metered service is to be asked when it says so (Retry-After), by
all that wait alike, and the caller is to learn of every answer the moment it is there.
"""

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stscurate.errors import InputError, ServiceError, StscurateError
from stscurate.services.pacing import retry_after

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

TRIES = 6  # with pauses of 1, 2, 4, 8 and 16 seconds between them, where the server names none
GIVE_UP_AFTER = 8  # asks in a row that brought no answer
REFUSED_AFTER = 100  # asks in a row that the server wouldn't take: no longer a matter of what they hold
_LONGEST_PAUSE = 300.0  # seconds; a server that wants more is left for a later run
_AGAIN = {408, 409, 425, 429}  # and all of 500 and above
_OF_THE_ASK = {400, 413, 422}  # statuses that may be due to what this one ask holds
# What an ask can do without where an endpoint doesn't take it.
_OPTIONAL = (("logprobs", "top_logprobs"), ("seed",), ("response_format",))

Ask = Mapping[str, Any]  # the arguments of a chat completion, without the model


@dataclass(frozen=True)
class Token:
    """A token of an answer, and the likeliest tokens at its place with their log-probabilities."""

    text: str
    top: list[tuple[str, float]]


@dataclass(frozen=True)
class Reply:
    """What came back for one ask. `error` ("http_400", ...) is set where the server refused the ask itself."""

    text: str
    finish: str | None = None  # why it ended: "stop", "length", "content_filter", ...
    refusal: str | None = None
    usage: int | None = None  # tokens of ask and answer together
    logprobs: list[Token] | None = None  # None where the endpoint gives none
    error: str | None = None


class ChatEndpoint:
    """An endpoint and the model asked there. base_url None is OpenAI's own.

    concurrency: asks in flight at most. timeout: seconds for one try. sleep and clock can be replaced in tests.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str,
        concurrency: int = 8,
        timeout: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.model = model
        self.base_url = base_url
        self.concurrency = concurrency
        self._api_key = api_key
        self._timeout = timeout
        self._sleep = sleep
        self._clock = clock
        self._dropped: set[str] = set()  # optional arguments that the endpoint doesn't take
        self._reached = False
        self._open_at = 0.0  # until then the server wants no asks
        self._failed = Counter[str]()  # reason -> asks without an answer
        self._in_a_row = Counter[str]()  # kinds of failure -> asks since the last success
        self._stop: StscurateError | None = None

    def ask(self, asks: Iterable[Ask], received: Callable[[int, Reply], None]) -> None:
        """Send each ask and call `received(its index, reply)` as soon as its answer is there, in any order.

        Tried again, up to TRIES times: statuses 408, 409, 425, 429 and 500 and above, timeouts, lost connections,
        and answers that are no chat completion. InputError at once for a refused key or an unknown model;
        ServiceError where nobody answers at the address, where GIVE_UP_AFTER asks in a row brought no answer or
        REFUSED_AFTER were refused, and at the end where any brought none. Works inside a running event loop too.
        """
        _run(self._ask_all(enumerate(asks), received))

    async def _ask_all(self, asks: Iterator[tuple[int, Ask]], received: Callable[[int, Reply], None]) -> None:
        from openai import AsyncOpenAI

        self._failed, self._in_a_row, self._stop = Counter(), Counter(), None
        async with AsyncOpenAI(
            api_key=self._api_key, base_url=self.base_url, max_retries=0, timeout=self._timeout
        ) as client:
            # The first goes alone: what is wrong with all of them shows in one.
            for index, ask in asks:
                await self._handle(client, index, ask, received)
                break
            # One iterator for all workers: an ask is taken by one of them, when it has room.
            await asyncio.gather(*(self._work(client, asks, received) for _ in range(self.concurrency)))
        if self._stop:
            raise self._stop
        if self._failed:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self._failed.items()))
            raise ServiceError(f"{self._place} left asks without an answer after {TRIES} tries each ({reasons}).")

    async def _work(
        self, client: "AsyncOpenAI", asks: Iterator[tuple[int, Ask]], received: Callable[[int, Reply], None]
    ) -> None:
        while not self._stop:  # answers in flight are still received then: they are paid for
            try:
                index, ask = next(asks)
            except StopIteration:
                return
            await self._handle(client, index, ask, received)

    async def _handle(
        self, client: "AsyncOpenAI", index: int, ask: Ask, received: Callable[[int, Reply], None]
    ) -> None:
        try:
            reply = await self._reply(client, ask)
        except _NoAnswerError as failure:
            self._failed[failure.reason] += 1
            self._fail("unanswered", GIVE_UP_AFTER, failure.reason)
        except StscurateError as error:
            self._stop = self._stop or error
        else:
            received(index, reply)
            if reply.error:
                self._fail("refused", REFUSED_AFTER, f"{reply.error}: {reply.text}")
            else:
                self._in_a_row.clear()

    def _fail(self, kind: str, limit: int, reason: str) -> None:
        self._in_a_row[kind] += 1
        if self._in_a_row[kind] >= limit and not self._stop:
            self._stop = ServiceError(
                f"{self._place} answered none of the last {limit} asks ({reason}): "
                "see to the server, its model or its limits."
            )

    async def _reply(self, client: "AsyncOpenAI", ask: Ask) -> Reply:
        tried = 0
        while True:
            if (left := self._open_at - self._clock()) > 0:
                await self._sleep(left)
            try:
                return await self._try(client, ask)
            except _NoAnswerError as failure:
                tried += 1
                if tried >= TRIES or self._stop:
                    raise
                pause = 2.0 ** (tried - 1) if failure.pause is None else failure.pause
                if failure.reason == "http_429":  # all asks wait, not only this one
                    self._open_at = max(self._open_at, self._clock() + pause)
                    continue
            await self._sleep(pause)

    async def _try(self, client: "AsyncOpenAI", ask: Ask) -> Reply:
        import openai

        sent = {name: value for name, value in ask.items() if name not in self._dropped}
        try:
            reply = _read(await client.chat.completions.create(model=self.model, **sent))
        except openai.APITimeoutError:
            raise _NoAnswerError("timeout") from None
        except openai.APIConnectionError:
            if self._reached:
                raise _NoAnswerError("connection") from None
            raise ServiceError(f"{self._place}: no server answers there: start it, or mend --llm.") from None
        except openai.APIStatusError as error:
            self._reached = True
            if self._drops(error, sent):
                return await self._try(client, ask)
            if error.status_code in _OF_THE_ASK:
                return Reply(self._told(error), error=f"http_{error.status_code}")
            self._raise_if_final(error)
            raise _NoAnswerError(f"http_{error.status_code}", self._pause(error)) from None
        except (openai.APIResponseValidationError, ValueError):
            raise _NoAnswerError("no_chat_completion") from None
        self._reached = True
        return reply

    def _drops(self, error: "APIStatusError", sent: Ask) -> bool:
        """Whether the server refused an optional argument, which from now on isn't sent."""
        if error.status_code not in _OF_THE_ASK:
            return False
        told = self._told(error)
        found = {name for group in _OPTIONAL if any(name in told for name in group) for name in group}
        self._dropped |= found
        return bool(found & sent.keys())  # what wasn't sent can't be what is wrong

    def _pause(self, error: "APIStatusError") -> float | None:
        """Seconds that the server wants to be left alone, if it says so."""
        asked = retry_after(error.response.headers, time.time())
        if asked is not None and asked > _LONGEST_PAUSE:
            raise ServiceError(f"{self._place} asks for a pause of {asked:.0f} seconds: come back then.")
        return asked

    def _raise_if_final(self, error: "APIStatusError") -> None:
        status, told = error.status_code, self._told(error)
        if status in (401, 403):
            raise InputError(
                f"{self._place} refuses the key ({status}: {told}): check OPENAI_API_KEY, "
                "which is sent for --llm openai:MODEL alone (to OPENAI_BASE_URL where that is set)."
            )
        if status == 404:
            raise InputError(
                f"{self._place} doesn't know the model {self.model}, or its address ({told}): "
                "check the model's name, and that the address ends as the server's does (often /v1)."
            )
        if status == 402 or "insufficient_quota" in told:
            raise ServiceError(f"{self._place} says that the account's credit is used up ({told}): top it up.")
        if status not in _AGAIN and status < 500:
            raise ServiceError(f"{self._place} refuses what it is asked ({status}: {told}): check --llm.")

    def _told(self, error: "APIStatusError") -> str:
        """What the server said, on one line, without anything like a key."""
        told = error.body.get("message") if isinstance(error.body, dict) else None
        line = " ".join(str(told or error.message).split())
        if len(self._api_key) > 8:  # not the "none" of a server that asks for no key
            line = line.replace(self._api_key, "***")
        return re.sub(r"\bsk-[\w*.-]+", "***", line)[:300].rstrip(".")

    @property
    def _place(self) -> str:
        return re.sub(r"//[^/@]*@", "//", self.base_url) if self.base_url else "api.openai.com"


class _NoAnswerError(Exception):
    """A try failed and may be repeated, after `pause` seconds where the server named them."""

    def __init__(self, reason: str, pause: float | None = None):
        super().__init__(reason)
        self.reason = reason
        self.pause = pause


def _read(completion: Any) -> Reply:
    """ValueError where it isn't a chat completion."""
    try:
        choice = completion.choices[0]
        text, refusal = choice.message.content or "", choice.message.refusal
    except (AttributeError, IndexError, KeyError, TypeError):
        raise ValueError("not a chat completion") from None
    if not isinstance(text, str) or not isinstance(refusal, str | None):
        raise ValueError("not a chat completion of text")
    usage = getattr(completion.usage, "total_tokens", None)
    return Reply(text, choice.finish_reason, refusal, usage if isinstance(usage, int) else None, _logprobs(choice))


def _logprobs(choice: Any) -> list[Token] | None:
    """None where there are none, or none that can be read: the answer stands without them."""
    try:
        return [
            Token(str(token.token), [(str(top.token), float(top.logprob)) for top in token.top_logprobs or []])
            for token in choice.logprobs.content
        ]
    except (AttributeError, TypeError, ValueError):
        return None


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end; beside a loop that runs already (a notebook), in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    raised: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
