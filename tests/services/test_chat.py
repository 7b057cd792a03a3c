from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

import pytest

from stscurate.errors import InputError, ServiceError
from stscurate.services.chat import GIVE_UP_AFTER, REFUSED_AFTER, TRIES, Ask, ChatEndpoint, Reply
from tests.services.chat_server import Answer, ChatServer, Request, answer_digit, chat_server, completion, error

KEY = "sk-secret-0123456789"


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def asks(count: int, **more: object) -> list[Ask]:
    return [{"messages": [{"role": "user", "content": f"question {i}"}], **more} for i in range(count)]


def ask(
    server: ChatServer, sent: list[Ask], *, concurrency: int = 1, timeout: float = 30.0
) -> tuple[dict[int, Reply], list[float]]:
    clock = Clock()
    replies: dict[int, Reply] = {}
    endpoint = ChatEndpoint(
        "m",
        base_url=server.url,
        api_key=KEY,
        concurrency=concurrency,
        timeout=timeout,
        sleep=clock.sleep,
        clock=clock,
    )
    endpoint.ask(sent, replies.__setitem__)
    return replies, clock.slept


def failing(times: int, answer: Answer) -> Callable[[Request, int], Answer]:
    return lambda request, count: answer if count <= times else answer_digit(request, count)


def test_each_answer_arrives_with_the_index_of_its_ask() -> None:
    with chat_server(lambda request, count: Answer(completion(request["messages"][0]["content"]))) as server:
        replies, slept = ask(server, asks(20), concurrency=4)
    assert {index: reply.text for index, reply in replies.items()} == {i: f"question {i}" for i in range(20)}
    assert replies[0].usage == 91
    assert slept == []


def test_concurrency_is_a_ceiling() -> None:
    def slow(request: Request, count: int) -> Answer:
        time.sleep(0.05)
        return answer_digit(request, count)

    with chat_server(slow) as server:
        ask(server, asks(13), concurrency=3)
    assert server.at_once == 3


def test_retry_after_a_429_is_obeyed() -> None:
    with chat_server(failing(2, Answer(error("slow down"), 429, {"Retry-After": "7"}))) as server:
        replies, slept = ask(server, asks(1))
    assert len(replies) == 1
    assert slept == [7.0, 7.0]
    assert len(server.requests) == 3


def test_a_429_holds_back_the_other_asks_too() -> None:
    def limit_the_second(request: Request, count: int) -> Answer:
        return Answer(error("slow down"), 429, {"Retry-After": "9"}) if count == 2 else answer_digit(request, count)

    with chat_server(limit_the_second) as server:
        replies, slept = ask(server, asks(30), concurrency=2)
    assert len(replies) == 30
    assert sum(slept) >= 9.0


@pytest.mark.parametrize("status", [408, 500, 503, 529])
def test_server_errors_are_tried_again_with_growing_pauses(status: int) -> None:
    with chat_server(failing(3, Answer(error("oops"), status))) as server:
        replies, slept = ask(server, asks(1))
    assert len(replies) == 1
    assert slept == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "body", [b"<html>gateway</html>", b"[]", b'{"choices": []}', b'"4"', b'{"choices": [{"message": {"content": 4}}]}']
)
def test_an_answer_that_is_no_completion_is_tried_again(body: bytes) -> None:
    with chat_server(failing(1, Answer(body))) as server:
        replies, _ = ask(server, asks(1))
    assert len(replies) == 1
    assert len(server.requests) == 2


def test_logprobs_that_cannot_be_read_are_left_out() -> None:
    broken = completion("4", top={"4": 0.5})
    broken["choices"][0]["logprobs"]["content"][0]["top_logprobs"][0]["logprob"] = None
    with chat_server(lambda request, count: Answer(broken)) as server:
        replies, _ = ask(server, asks(1))
    assert replies[0] == Reply("4", "stop", usage=91)


def test_a_slow_answer_is_tried_again() -> None:
    def slow_at_first(request: Request, count: int) -> Answer:
        if count == 1:
            time.sleep(0.6)
        return answer_digit(request, count)

    with chat_server(slow_at_first) as server:
        replies, slept = ask(server, asks(1), timeout=0.3)
    assert len(replies) == 1
    assert slept == [1.0]


def test_an_ask_that_stays_unanswered_is_reported_at_the_end_and_the_others_are_kept() -> None:
    def never_the_third(request: Request, count: int) -> Answer:
        asked = request["messages"][0]["content"]
        return Answer(error("oops"), 500) if asked == "question 2" else answer_digit(request, count)

    replies: dict[int, Reply] = {}
    clock = Clock()
    with chat_server(never_the_third) as server:
        endpoint = ChatEndpoint("m", base_url=server.url, api_key=KEY, sleep=clock.sleep, clock=clock)
        with pytest.raises(ServiceError, match=rf"after {TRIES} tries each \(1 http_500\)"):
            endpoint.ask(asks(5), replies.__setitem__)
    assert sorted(replies) == [0, 1, 3, 4]
    assert len(server.requests) == 4 + TRIES


def test_it_gives_up_where_nothing_is_answered_any_more() -> None:
    with (
        chat_server(lambda request, count: Answer(error("oops"), 500)) as server,
        pytest.raises(ServiceError, match=f"none of the last {GIVE_UP_AFTER} asks"),
    ):
        ask(server, asks(100))
    assert len(server.requests) == GIVE_UP_AFTER * TRIES


def test_it_gives_up_where_every_ask_is_refused() -> None:
    with (
        chat_server(lambda request, count: Answer(error("no such field"), 422)) as server,
        pytest.raises(ServiceError, match=rf"none of the last {REFUSED_AFTER} asks \(http_422: no such field\)"),
    ):
        ask(server, asks(200))
    assert len(server.requests) == REFUSED_AFTER


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_fails_at_once_and_is_never_shown(status: int) -> None:
    told = error(f"Incorrect API key provided: {KEY} or sk-sec***789.")
    with (
        chat_server(lambda request, count: Answer(told, status)) as server,
        pytest.raises(InputError, match="OPENAI_API_KEY") as raised,
    ):
        ask(server, asks(50), concurrency=8)
    assert len(server.requests) == 1
    assert "sk-" not in str(raised.value)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_an_unknown_model_fails_at_once() -> None:
    with (
        chat_server(lambda request, count: Answer(error("The model m does not exist"), 404)) as server,
        pytest.raises(InputError, match="doesn't know the model m"),
    ):
        ask(server, asks(50), concurrency=8)
    assert len(server.requests) == 1


def test_used_up_credit_fails_at_once_and_a_long_pause_is_left_for_later() -> None:
    spent = Answer(error("You exceeded your quota: insufficient_quota"), 429)
    later = Answer(error("slow down"), 429, {"Retry-After": "3600"})
    for answer, told in ((spent, "credit"), (later, "3600 seconds")):
        with (
            chat_server(lambda request, count, answer=answer: answer) as server,  # type: ignore[misc]
            pytest.raises(ServiceError, match=told),
        ):
            ask(server, asks(5))
        assert len(server.requests) == 1


def test_no_server_is_told_at_once() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    with pytest.raises(ServiceError, match=f"{url}: no server answers there"):
        ask(ChatServer(url), asks(5))


def test_an_address_with_a_password_is_told_without_it() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(ServiceError) as raised:
        ask(ChatServer(f"http://me:hidden@127.0.0.1:{port}/v1"), asks(1))
    assert "hidden" not in str(raised.value)


def test_a_refused_ask_is_given_back_as_its_error_and_the_rest_goes_on() -> None:
    def too_long(request: Request, count: int) -> Answer:
        long = request["messages"][0]["content"] == "question 1"
        return Answer(error("maximum context length is 8"), 400) if long else answer_digit(request, count)

    with chat_server(too_long) as server:
        replies, _ = ask(server, asks(4))
    assert replies[1] == Reply("maximum context length is 8", error="http_400")
    assert all(replies[i].error is None for i in (0, 2, 3))
    assert len(server.requests) == 4


def test_logprobs_are_left_out_once_the_endpoint_refuses_them() -> None:
    def no_logprobs(request: Request, count: int) -> Answer:
        if "logprobs" in request or "top_logprobs" in request:
            return Answer(error("logprobs is not supported with this model"), 400)
        return answer_digit(request, count)

    with chat_server(no_logprobs) as server:
        replies, slept = ask(server, asks(10, logprobs=True, top_logprobs=20, temperature=0), concurrency=3)
    assert len(replies) == 10
    assert all(reply.error is None and reply.logprobs is None for reply in replies.values())
    assert len(server.requests) == 11
    assert server.requests[-1]["temperature"] == 0
    assert slept == []


def test_answers_in_flight_are_received_when_another_ask_ends_the_work() -> None:
    def key_expires(request: Request, count: int) -> Answer:
        if count == 3:
            return Answer(error("expired"), 401)
        time.sleep(0.2 if count > 1 else 0)
        return answer_digit(request, count)

    replies: dict[int, Reply] = {}
    with chat_server(key_expires) as server:
        endpoint = ChatEndpoint("m", base_url=server.url, api_key=KEY, concurrency=4)
        with pytest.raises(InputError):
            endpoint.ask(asks(50), replies.__setitem__)
    assert len(server.requests) == 5
    assert len(replies) == 4


def test_it_works_inside_a_running_event_loop() -> None:
    async def notebook() -> dict[int, Reply]:
        return ask(server, asks(3))[0]

    with chat_server() as server:
        assert len(asyncio.run(notebook())) == 3

    async def refused() -> None:
        ask(server, asks(3))

    with (
        chat_server(lambda request, count: Answer(error("no"), 401)) as server,
        pytest.raises(InputError),
    ):
        asyncio.run(refused())
