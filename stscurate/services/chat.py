"""One request to an OpenAI-compatible chat endpoint: sent, read, and told apart by what may be done about a failure.

When requests are sent, and when again, is the matter of services/asking.py.
"""

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from stscurate.errors import InputError, ServiceError, StscurateError

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

_AGAIN = {408, 409, 425}  # and all of 500 and above
_OVERLOAD = {408, 503, 504, 529}  # the service, or one before it, has too much to bear
_OF_THE_ASK = {400, 413, 422}  # statuses that may be due to what this one request holds
# What a request can do without where an endpoint doesn't take it.
_OPTIONAL = (("logprobs", "top_logprobs"), ("seed",), ("response_format",))
Address = tuple[str, str]  # what endpoints have in common that share their limits: place and key
OPTIONAL = frozenset(name for group in _OPTIONAL for name in group)


@dataclass(frozen=True)
class Ask:
    """A chat completion that is wanted: its key, and the call's arguments without the model.

    tokens: a guess at those of the messages. answer: those of the answer, at most.
    """

    key: str
    body: Mapping[str, Any]
    tokens: float = 0.0
    answer: float = 0.0


@dataclass(frozen=True)
class Token:
    """A token of an answer, and the likeliest tokens at its place with their log-probabilities."""

    text: str
    top: list[tuple[str, float]]


@dataclass(frozen=True)
class Reply:
    """What came back for one ask. `error` ("http_400", "timeout", ...) is set where there is no answer."""

    text: str
    finish: str | None = None  # why it ended: "stop", "length", "content_filter", ...
    refusal: str | None = None
    usage: int | None = None  # tokens of ask and answer together
    logprobs: list[Token] | None = None  # None where the endpoint gives none
    error: str | None = None
    prompt_tokens: int | None = None  # those of the ask
    model: str | None = None  # that answered, as it calls itself

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without what is empty."""
        tokens = None if self.logprobs is None else [[token.text, token.top] for token in self.logprobs]
        return {name: value for name, value in (vars(self) | {"logprobs": tokens}).items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Reply":
        """The reply that `as_dict` wrote."""
        tokens = data.get("logprobs")
        kept = None if tokens is None else [Token(text, [(t, p) for t, p in top]) for text, top in tokens]
        return cls(**{**data, "logprobs": kept})


@dataclass(frozen=True)
class Outcome:
    """What one request came to: a reply (also a refused ask), or why there is none.

    reason: "http_429", "http_500", "timeout", "connection", "no_chat_completion". final: the error of the whole
    endpoint, after which nothing more is to be sent there. overload: it had too much to bear.
    """

    reply: Reply | None = None
    headers: Mapping[str, str] | None = None
    reason: str = ""
    text: str = ""
    overload: bool = False
    final: StscurateError | None = None


class ChatEndpoint:
    """An endpoint and the model asked there. base_url None is OpenAI's own. timeout: seconds for one request."""

    def __init__(self, model: str, *, base_url: str | None, api_key: str, timeout: float = 60.0):
        self.model = model
        self.base_url = base_url
        self.timeout = timeout
        self._api_key = api_key
        self._dropped: set[str] = set()  # optional arguments that the endpoint doesn't take
        self._reached = False

    @property
    def address(self) -> Address:
        """Its place and key."""
        return (self.base_url or "").rstrip("/"), self._api_key

    @property
    def dropped(self) -> frozenset[str]:
        """The optional arguments that it has refused."""
        return frozenset(self._dropped)

    @property
    def place(self) -> str:
        """Its address as a person may see it."""
        return re.sub(r"//[^/@]*@", "//", self.base_url) if self.base_url else "api.openai.com"

    def connect(self, connections: int) -> "AsyncOpenAI":
        """A client without retries or pacing of its own, for `connections` at once; to be used as a context."""
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient

        # aiohttp costs half the processor time of the default transport.
        limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=30)
        url, headers = without_password(self.base_url) if self.base_url else (None, {})
        return AsyncOpenAI(
            api_key=self._api_key,
            base_url=url,
            default_headers=headers,
            max_retries=0,
            timeout=self.timeout,
            # Certificates take a while to load, and plain http has none.
            http_client=DefaultAioHttpClient(
                limits=limits, timeout=self.timeout, verify=not (url or "").startswith("http://")
            ),
        )

    async def send(self, client: "AsyncOpenAI", ask: Ask) -> Outcome:
        """Send it once (again where the endpoint takes it only without an optional argument), and say what came."""
        import httpx2
        import openai

        body = self.taken(ask.body)
        try:
            async with asyncio.timeout(self.timeout):
                # The client's plain call: its typed one would check what is sent and read what comes in Python, which
                # costs more than all that is done here.
                found = await client.post(
                    "/chat/completions", cast_to=httpx2.Response, body={"model": self.model, **body}
                )
        except (TimeoutError, openai.APITimeoutError, openai.APIConnectionError) as error:
            return self._lost(error)
        except openai.APIStatusError as error:
            self._reached = True
            if self.drops(error.status_code, self.told(error), body):
                return await self.send(client, ask)
            return self._status(error)
        self._reached = True
        try:
            return Outcome(read_completion(found.content), found.headers)
        except ValueError as error:
            return Outcome(reason="no_chat_completion", text=str(error))

    def _lost(self, error: Exception) -> Outcome:
        """No answer: too slow, or no connection. The aiohttp transport calls some lost connections timeouts."""
        causes = _causes(error)
        if any(isinstance(cause, TimeoutError) for cause in causes):
            return Outcome(reason="timeout", text=f"no answer in {self.timeout:g} seconds", overload=True)
        told = str(causes[-1]) or type(causes[-1]).__name__
        if not self._reached and any("ConnectorError" in type(cause).__name__ for cause in causes):
            mend = f"{self.place}: no server answers there: start it, or mend --llm."
            return Outcome(reason="connection", text=told, final=ServiceError(mend))
        return Outcome(reason="connection", text=told)

    def taken(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request's arguments without the optional ones that the server has refused."""
        return {name: value for name, value in body.items() if name not in self._dropped}

    def drops(self, status: int, told: str, sent: Collection[str]) -> bool:
        """Whether the server refused an optional argument of those sent, which from now on isn't sent."""
        if status not in _OF_THE_ASK:
            return False
        found = {name for group in _OPTIONAL if any(name in told for name in group) for name in group}
        self._dropped |= found
        return bool(found & set(sent))  # what wasn't sent can't be what is wrong

    def _status(self, error: "APIStatusError") -> Outcome:
        status, told, headers = error.status_code, self.told(error), error.response.headers
        reason = f"http_{status}"
        if final := self.final(status, told):
            return Outcome(reason=reason, text=told, final=final)
        if status in _OF_THE_ASK:
            return Outcome(Reply(told, error=reason), headers, reason)
        return Outcome(None, headers, reason, told, overload=status in _OVERLOAD)

    def final(self, status: int, told: str) -> StscurateError | None:
        """What no further request can mend."""
        if status == 402 or "insufficient_quota" in told or "exceeded your current quota" in told:
            return ServiceError(f"{self.place} says that the account's credit is used up ({told}): top it up.")
        if status in (401, 403):
            return InputError(
                f"{self.place} refuses the key ({status}: {told}): check OPENAI_API_KEY, "
                "which is sent for --llm openai:MODEL alone (to OPENAI_BASE_URL where that is set)."
            )
        if status == 404:
            return InputError(
                f"{self.place} doesn't know the model {self.model}, or its address ({told}): "
                "check the model's name, and that the address ends as the server's does (often /v1)."
            )
        if status < 500 and status != 429 and status not in _AGAIN | _OF_THE_ASK:
            return ServiceError(f"{self.place} refuses what it is asked ({status}: {told}): check --llm.")
        return None

    def told(self, error: "APIStatusError") -> str:
        """What the server said, on one line, with the code it gave, without anything like a key."""
        body = error.body if isinstance(error.body, dict) else {}
        line = " ".join(str(body.get("message") or error.message).split())
        code = body.get("code") or body.get("type")
        if isinstance(code, str) and "quota" in code and code not in line:
            line = f"{line.rstrip('.')}; {code}"
        if len(self._api_key) > 8:  # not the "none" of a server that asks for no key
            line = line.replace(self._api_key, "***")
        return re.sub(r"\bsk-[\w*.-]+", "***", line)[:300].rstrip(".")


def read_completion(content: bytes) -> Reply:
    """The reply in a chat completion's JSON. ValueError where it isn't one."""
    # Servers are met that leave control characters in their strings as they are.
    completion = json.loads(content, strict=False)
    try:
        choice = completion["choices"][0]
        text, refusal = choice["message"].get("content") or "", choice["message"].get("refusal")
        finish, usage, model = choice.get("finish_reason"), completion.get("usage") or {}, completion.get("model")
    except (AttributeError, IndexError, KeyError, TypeError):
        raise ValueError("not a chat completion") from None
    if not isinstance(text, str) or not isinstance(refusal, str | None) or not isinstance(usage, dict):
        raise ValueError("not a chat completion of text")
    return Reply(
        text,
        finish if isinstance(finish, str) else None,
        refusal,
        _whole(usage.get("total_tokens")),
        _logprobs(choice.get("logprobs")),
        prompt_tokens=_whole(usage.get("prompt_tokens")),
        model=model if isinstance(model, str) else None,
    )


def _logprobs(found: Any) -> list[Token] | None:
    """None where there are none, or none that can be read: the answer stands without them."""
    try:
        return [
            Token(
                str(token["token"]), [(str(top["token"]), float(top["logprob"])) for top in token["top_logprobs"] or []]
            )
            for token in found["content"]
        ]
    except (KeyError, TypeError, ValueError):
        return None


def without_password(url: str) -> tuple[str, dict[str, str]]:
    """The address, and the header that says the user and password in it, which the transport doesn't take there."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url, {}
    said, _, place = parts.netloc.rpartition("@")
    basic = b64encode(unquote(said).encode()).decode()
    return urlunsplit(parts._replace(netloc=place)), {"Authorization": f"Basic {basic}"}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = [error]
    while following := found[-1].__cause__:
        found.append(following)
    return found
