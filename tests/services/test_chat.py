"""What one request comes to, whatever the server does."""

from __future__ import annotations

import json
import socket
import threading
import time
from base64 import b64encode

import pytest

from stscurate.errors import InputError, ServiceError
from stscurate.services.chat import Reply, read_completion
from stscurate.services.dispatch import REFUSED_AFTER, TIMEOUTS, TRIES
from tests.services.asking import KEY, ask, asked, asks, failing
from tests.services.chat_server import Answer, ChatServer, Request, answer_digit, chat_server, completion, error


def test_each_answer_arrives_with_the_key_of_its_ask() -> None:
    with chat_server(lambda request, count: Answer(completion(request["messages"][0]["content"]))) as server:
        replies = ask(server, asks(20), concurrency=4)
    assert {index: reply.text for index, reply in replies.items()} == {i: f"question {i}" for i in range(20)}
    assert replies[0] == Reply("question 0", "stop", usage=91, prompt_tokens=90, model="m")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("status", [408, 409, 425, 500, 503, 504, 529])
def test_a_server_error_is_tried_again(status: int) -> None:
    with chat_server(failing(3, Answer(error("oops"), status))) as server:
        replies = ask(server, asks(1))
    assert (replies[0].error, len(server.requests)) == (None, 4)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>gateway</html>",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'"4"',
        b'{"choices": [{"message": {"content": 4}}]}',
        b'{"choices": [{"message": {"content": "4"',
        json.dumps(completion("4")).encode()[:-30],
    ],
)
def test_an_answer_that_is_no_completion_is_tried_again_and_then_said_to_be_none(body: bytes) -> None:
    with chat_server(failing(1, Answer(body))) as server:
        assert ask(server, asks(1))[0].error is None
    assert len(server.requests) == 2
    with chat_server(lambda request, count: Answer(body)) as server:
        assert ask(server, asks(1))[0].error == "no_chat_completion"
    assert len(server.requests) == TRIES


@pytest.mark.parametrize("broken", [Answer({}, reset=True), Answer(completion("4"), cut=20)])
def test_a_connection_that_is_lost_is_tried_again(broken: Answer) -> None:
    with chat_server(failing(2, broken)) as server:
        assert ask(server, asks(1))[0].error is None
    assert len(server.requests) == 3
    with chat_server(lambda request, count: broken) as server:
        assert ask(server, asks(1))[0].error == "connection"
    assert len(server.requests) == TRIES


def test_control_characters_in_an_answer_are_read() -> None:
    body = json.dumps(completion("4\x01\n5")).replace("\\u0001", "\x01").replace("\\n", "\n").encode()
    with pytest.raises(ValueError, match="control character"):
        json.loads(body)
    with chat_server(lambda request, count: Answer(body)) as server:
        assert ask(server, asks(1))[0].text == "4\x01\n5"


def test_logprobs_that_cannot_be_read_are_left_out_and_empty_tokens_kept() -> None:
    broken = completion("4", top={"4": 0.5})
    broken["choices"][0]["logprobs"]["content"][0]["top_logprobs"][0]["logprob"] = None
    assert read_completion(json.dumps(broken).encode()).logprobs is None
    empty = completion("4", top={"": 0.5, "4": 0.25})
    read = read_completion(json.dumps(empty).encode()).logprobs
    assert read is not None
    assert [text for text, _ in read[0].top] == ["", "4"]
    bare = completion("4", top={"4": 1.0})
    bare["choices"][0]["logprobs"]["content"][0]["top_logprobs"] = None
    read = read_completion(json.dumps(bare).encode()).logprobs
    assert read is not None
    assert read[0].top == []


def test_a_reply_survives_its_being_kept() -> None:
    reply = read_completion(json.dumps(completion("4 \ud800", top={"4": 0.5, "é": 0.25})).encode())
    assert Reply.from_dict(json.loads(json.dumps(reply.as_dict()))) == reply
    assert Reply.from_dict(json.loads(json.dumps(Reply("x", error="http_400").as_dict()))).error == "http_400"


def test_another_models_name_is_kept_with_the_answer() -> None:
    with chat_server(lambda request, count: Answer({**completion("4"), "model": "other"})) as server:
        assert ask(server, asks(1))[0].model == "other"


def test_a_server_that_hangs_is_given_up_after_some_tries_and_is_a_timeout() -> None:
    def hangs(request: Request, count: int) -> Answer:
        if asked(request) == 1:
            time.sleep(0.5)
        return answer_digit(request, count)

    with chat_server(hangs) as server:
        replies = ask(server, asks(3), concurrency=3, timeout=0.25)
    assert {index: reply.error for index, reply in replies.items()} == {0: None, 1: "timeout", 2: None}
    assert len(server.requests) == 2 + TIMEOUTS


def test_a_deadline_holds_for_the_whole_answer_not_only_between_its_parts() -> None:
    """A server that sends a byte now and then would never be too slow for one read."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                try:
                    for _ in range(100):
                        connection.sendall(b" ")
                        time.sleep(0.02)
                except OSError:
                    pass

        threads = [threading.Thread(target=trickle) for _ in range(TIMEOUTS)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        reply = ask(ChatServer(f"http://127.0.0.1:{listener.getsockname()[1]}/v1"), asks(1), timeout=0.2)[0]
        assert reply.error == "timeout"
        assert time.monotonic() - began < 1.5
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_ends_it_at_once_and_is_never_shown(status: int) -> None:
    told = error(f"Incorrect API key provided: {KEY} or sk-sec***789.")
    with (
        chat_server(lambda request, count: Answer(told, status)) as server,
        pytest.raises(InputError, match="OPENAI_API_KEY") as raised,
    ):
        ask(server, asks(50), concurrency=8)
    assert len(server.requests) <= 8
    assert "sk-" not in str(raised.value)


def test_an_unknown_model_ends_it_at_once() -> None:
    with (
        chat_server(lambda request, count: Answer(error("The model m does not exist"), 404)) as server,
        pytest.raises(InputError, match="doesn't know the model m"),
    ):
        ask(server, asks(50), concurrency=8)
    assert len(server.requests) <= 8


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (error("You exceeded your quota: insufficient_quota"), 429),
        (error("You exceeded your current quota, please check your plan."), 429),
        (error("No more.", code="insufficient_quota"), 429),
        (error("Insufficient credits"), 402),
    ],
)
def test_used_up_credit_ends_it_at_once(body: dict[str, object], status: int) -> None:
    with (
        chat_server(lambda request, count: Answer(body, status)) as server,
        pytest.raises(ServiceError, match="credit is used up"),
    ):
        ask(server, asks(5))
    assert len(server.requests) == 1


def test_a_long_pause_is_left_for_later() -> None:
    later = Answer(error("slow down"), 429, {"Retry-After": "3600"})
    with chat_server(lambda request, count: later) as server, pytest.raises(ServiceError, match="3600 seconds"):
        ask(server, asks(5))
    assert len(server.requests) == 1


def unused_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def test_no_server_is_told_at_once() -> None:
    url = f"http://127.0.0.1:{unused_port()}/v1"
    with pytest.raises(ServiceError, match=f"{url}: no server answers there"):
        ask(ChatServer(url), asks(5))


def test_an_address_with_a_password_is_told_without_it() -> None:
    with pytest.raises(ServiceError) as raised:
        ask(ChatServer(f"http://me:hidden@127.0.0.1:{unused_port()}/v1"), asks(1))
    assert "hidden" not in str(raised.value)


def test_a_password_in_an_address_is_said_to_the_server() -> None:
    with chat_server() as server:
        assert ask(ChatServer(server.url.replace("//", "//me:hid%20den@")), asks(1))[0].error is None
    assert server.headers[0]["authorization"] == f"Basic {b64encode(b'me:hid den').decode()}"


def test_a_refused_ask_is_given_back_as_its_error_and_the_rest_goes_on() -> None:
    def too_long(request: Request, count: int) -> Answer:
        long = asked(request) == 1
        return Answer(error("maximum context length is 8"), 400) if long else answer_digit(request, count)

    with chat_server(too_long) as server:
        replies = ask(server, asks(4))
    assert replies[1] == Reply("maximum context length is 8", error="http_400")
    assert all(replies[i].error is None for i in (0, 2, 3))
    assert len(server.requests) == 4


def test_it_gives_up_where_every_ask_is_refused() -> None:
    with (
        chat_server(lambda request, count: Answer(error("no such field"), 422)) as server,
        pytest.raises(ServiceError, match=rf"none of the last {REFUSED_AFTER} asks \(http_422: no such field\)"),
    ):
        ask(server, asks(200))
    assert len(server.requests) == REFUSED_AFTER


def test_logprobs_are_left_out_once_the_endpoint_refuses_them() -> None:
    def no_logprobs(request: Request, count: int) -> Answer:
        if "logprobs" in request or "top_logprobs" in request:
            return Answer(error("logprobs is not supported with this model"), 400)
        return answer_digit(request, count)

    with chat_server(no_logprobs) as server:
        replies = ask(server, asks(10, logprobs=True, top_logprobs=20, temperature=0), concurrency=3)
    assert len(replies) == 10
    assert all(reply.error is None and reply.logprobs is None for reply in replies.values())
    assert len(server.requests) <= 10 + 3
    assert server.requests[-1]["temperature"] == 0
