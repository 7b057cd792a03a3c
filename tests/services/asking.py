"""Asks sent to a server of a test, for the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stscurate.services.asking import ask_all
from stscurate.services.chat import Ask, ChatEndpoint, Reply
from stscurate.services.dispatch import Source
from stscurate.services.purse import Price, Purse
from tests.services.chat_server import Answer, ChatServer, Request, answer_digit

KEY = "sk-secret-0123456789"
PAUSE = 0.02  # seconds, instead of one


def asks(count: int, **more: object) -> list[Ask]:
    return [
        Ask(str(i), {"messages": [{"role": "user", "content": f"question {i}"}], **more}, 90, 4) for i in range(count)
    ]


def ask(
    server: ChatServer,
    sent: Sequence[Ask],
    *,
    concurrency: int = 1,
    timeout: float = 30.0,
    replies: dict[int, Reply] | None = None,
    purse: Purse | None = None,
    price: Price | None = None,
    pause: float = PAUSE,
) -> dict[int, Reply]:
    """All replies by the number of their ask; also those before an error, where `replies` is given."""
    found: dict[int, Reply] = {} if replies is None else replies

    def received(batch: Sequence[tuple[str, Reply]]) -> None:
        for key, reply in batch:
            assert int(key) not in found
            found[int(key)] = reply

    endpoint = ChatEndpoint("m", base_url=server.url, api_key=KEY, timeout=timeout)
    source = Source(endpoint, iter(sent), received, price)
    ask_all([source], concurrency=concurrency, purse=purse, first_pause=pause)
    return found


def failing(times: int, answer: Answer) -> Callable[[Request, int], Answer]:
    return lambda request, count: answer if count <= times else answer_digit(request, count)


def asked(request: Request) -> int:
    """The number of the ask that a request holds."""
    return int(request["messages"][-1]["content"].split()[-1])
