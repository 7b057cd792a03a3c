"""When asks are sent, sent again, and given up; what is kept of them, and when."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest

from stscurate.errors import InputError, ServiceError
from stscurate.services.asking import ask_all
from stscurate.services.chat import ChatEndpoint, Reply
from stscurate.services.dispatch import GIVE_UP_AFTER, TRIES, Source
from stscurate.services.purse import Price, Purse
from tests.services.asking import KEY, PAUSE, ask, asked, asks
from tests.services.chat_server import Answer, Bucket, Request, answer_digit, chat_server, error


def test_concurrency_is_a_ceiling_that_is_reached() -> None:
    def slow(request: Request, count: int) -> Answer:
        time.sleep(0.1)
        return answer_digit(request, count)

    with chat_server(slow) as server:
        ask(server, asks(13), concurrency=4)
    assert server.at_once == 4


def test_retry_after_a_429_is_obeyed_to_the_letter() -> None:
    times: list[float] = []

    def limited(request: Request, count: int) -> Answer:
        times.append(time.monotonic())
        return Answer(error("slow down"), 429, {"Retry-After": "0.3"}) if count < 3 else answer_digit(request, count)

    with chat_server(limited) as server:
        assert ask(server, asks(1))[0].error is None
    gaps = [after - before for before, after in pairwise(times)]
    assert all(0.3 <= gap < 0.45 for gap in gaps)
    assert len(gaps) == 2


def test_a_429_holds_back_all_asks() -> None:
    times: list[float] = []

    def limit_the_fifth(request: Request, count: int) -> Answer:
        times.append(time.monotonic())
        return Answer(error("slow down"), 429, {"Retry-After": "0.5"}) if count == 5 else answer_digit(request, count)

    with chat_server(limit_the_fifth) as server:
        assert len(ask(server, asks(30), concurrency=2)) == 30
    during = [moment for moment in times if times[4] + 0.1 < moment < times[4] + 0.49]
    assert during == []


@pytest.mark.parametrize("told", [True, False])
def test_no_ask_is_lost_to_a_limit_whether_or_not_headers_tell_it(told: bool) -> None:
    bucket = Bucket(50, 100, told=told)
    with chat_server(bucket) as server:
        replies = ask(server, asks(150), concurrency=80, pause=0.1)
    assert Counter(reply.error for reply in replies.values()) == {None: 150}
    if told:
        assert bucket.refused <= 15


def test_one_limit_is_shared_by_all_that_ask_one_endpoint() -> None:
    bucket = Bucket(10, 50)
    found: list[str] = []
    with chat_server(bucket) as server:
        sources = [
            Source(
                ChatEndpoint(model, base_url=server.url, api_key=KEY),
                iter(asks(20)),
                lambda batch: found.extend(key for key, _ in batch),
            )
            for model in ("m", "n")
        ]
        ask_all(sources, concurrency=8, first_pause=PAUSE)
    assert Counter(found) == {str(i): 2 for i in range(20)}
    assert server.at_once <= 8
    assert bucket.refused <= 4
    assert 5 <= [request["model"] for request in server.requests[:20]].count("m") <= 15  # in turn


def test_tries_after_server_errors_come_with_growing_pauses() -> None:
    times: list[float] = []

    def broken(request: Request, count: int) -> Answer:
        times.append(time.monotonic())
        return Answer(error("oops"), 500) if count < 5 else answer_digit(request, count)

    with chat_server(broken) as server:
        assert ask(server, asks(1), pause=0.05)[0].error is None
    gaps = [after - before for before, after in pairwise(times)]
    assert all(0.05 * 2**i <= gap < 0.05 * 2**i + 0.1 for i, gap in enumerate(gaps))


def test_what_is_tried_again_goes_before_what_was_not_asked_yet() -> None:
    def broken(request: Request, count: int) -> Answer:
        time.sleep(0.01)
        return Answer(error("oops"), 500) if count == 1 else answer_digit(request, count)

    with chat_server(broken) as server:
        ask(server, asks(40), pause=0.05)
    places = [index for index, request in enumerate(server.requests) if asked(request) == 0]
    assert len(places) == 2
    assert places[1] < 20


def test_an_ask_that_stays_unanswered_is_given_back_as_failed_and_the_rest_goes_on() -> None:
    def never_the_third(request: Request, count: int) -> Answer:
        return Answer(error("oops"), 500) if asked(request) == 2 else answer_digit(request, count)

    with chat_server(never_the_third) as server:
        replies = ask(server, asks(5))
    assert {index: reply.error for index, reply in replies.items()} == {
        0: None, 1: None, 2: "http_500", 3: None, 4: None
    }  # fmt: skip
    assert replies[2].text == "oops"
    assert len(server.requests) == 4 + TRIES


def test_it_gives_up_where_nothing_is_answered_any_more() -> None:
    with (
        chat_server(lambda request, count: Answer(error("oops"), 500)) as server,
        pytest.raises(ServiceError, match=f"none of the last {GIVE_UP_AFTER} asks"),
    ):
        ask(server, asks(100), pause=0.005)
    assert len(server.requests) <= (GIVE_UP_AFTER + 2) * TRIES


def test_it_gives_up_where_all_is_too_many() -> None:
    with (
        chat_server(lambda request, count: Answer(error("slow down"), 429)) as server,
        pytest.raises(ServiceError, match=r"answers 429 to all it is asked \(slow down\)"),
    ):
        ask(server, asks(50), concurrency=4, pause=0.0001)
    assert len(server.requests) < 40


def test_an_ask_that_takes_far_longer_than_others_is_sent_once_more() -> None:
    def straggles(request: Request, count: int) -> Answer:
        if asked(request) == 30 and not seen[30]:
            seen[30] += 1
            time.sleep(3)
        return answer_digit(request, count)

    seen = Counter[int]()
    began = time.monotonic()
    with chat_server(straggles) as server:
        replies = ask(server, asks(60), concurrency=4)
        took = time.monotonic() - began
    assert len(replies) == 60
    assert Counter(asked(request) for request in server.requests)[30] == 2
    assert len(server.requests) == 61
    assert took < 2


def test_answers_in_flight_are_received_when_another_ask_ends_the_work() -> None:
    def key_expires(request: Request, count: int) -> Answer:
        if count == 5:
            return Answer(error("expired"), 401)
        time.sleep(0.2 if count > 1 else 0)
        return answer_digit(request, count)

    replies: dict[int, Reply] = {}
    with chat_server(key_expires) as server, pytest.raises(InputError):
        ask(server, asks(50), concurrency=4, replies=replies)
    assert len(server.requests) == 5
    assert len(replies) == 4


def test_a_cap_on_requests_stops_cleanly() -> None:
    purse = Purse(requests=7)
    with chat_server() as server:
        assert len(ask(server, asks(20), concurrency=3, purse=purse)) == 7
    assert (len(server.requests), purse.full, purse.sent) == (7, True, 7)


def test_a_cap_on_cost_is_never_passed() -> None:
    """The server counts 91 tokens an answer: guessed as 94."""
    price = Price(input=1000.0, output=1000.0)
    purse = Purse(cost=1.0)
    with chat_server() as server:
        replies = ask(server, asks(40), concurrency=3, purse=purse, price=price)
    assert len(replies) == len(server.requests) == 10
    assert purse.spent == pytest.approx(0.91)
    assert purse.full


def test_every_answer_is_kept_before_the_next_is_sent_in_its_place() -> None:
    """So that a kill costs at most what is in flight."""
    kept: list[int] = []
    most = 0

    def counting(request: Request, count: int) -> Answer:
        nonlocal most
        most = max(most, count - len(kept))
        return answer_digit(request, count)

    with chat_server(counting) as server:
        source = Source(
            ChatEndpoint("m", base_url=server.url, api_key=KEY),
            iter(asks(50)),
            lambda batch: kept.extend(int(key) for key, _ in batch),
        )
        ask_all([source], concurrency=3)
    assert sorted(kept) == list(range(50))
    assert most <= 3


def test_a_failure_to_keep_ends_the_work() -> None:
    def full(batch: Sequence[tuple[str, Reply]]) -> None:
        raise OSError("disk full")

    with chat_server() as server, pytest.raises(OSError, match="disk full"):
        ask_all([Source(ChatEndpoint("m", base_url=server.url, api_key=KEY), iter(asks(9)), full)], concurrency=2)


def test_it_works_inside_a_running_event_loop_and_twice_in_one_process() -> None:
    async def notebook() -> dict[int, Reply]:
        return ask(server, asks(3))

    with chat_server() as server:
        assert len(asyncio.run(notebook())) == 3
        assert len(asyncio.run(notebook())) == 3
        assert len(ask(server, asks(3))) == 3

    async def refused() -> None:
        ask(server, asks(3))

    with chat_server(lambda request, count: Answer(error("no"), 401)) as server, pytest.raises(InputError):
        asyncio.run(refused())


def test_nothing_to_ask_opens_no_connection() -> None:
    with chat_server() as server:
        assert ask(server, []) == {}
        ask_all([], concurrency=2)
    assert server.requests == []


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_ctrl_c_keeps_what_is_in_flight_and_is_raised(in_a_loop: bool) -> None:
    main = threading.get_ident()

    def interrupts(request: Request, count: int) -> Answer:
        if count == 10:
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.3)
        return answer_digit(request, count)

    replies: dict[int, Reply] = {}

    async def notebook() -> None:
        ask(server, asks(500), concurrency=2, replies=replies)

    def call() -> None:
        if not in_a_loop:
            ask(server, asks(500), concurrency=2, replies=replies)
            return
        loop = asyncio.new_event_loop()  # as a notebook's, which leaves Ctrl-C as it is
        try:
            loop.run_until_complete(notebook())
        finally:
            loop.close()

    with chat_server(interrupts) as server:
        with pytest.raises(KeyboardInterrupt):
            call()
        assert 10 <= len(server.requests) < 100
        assert sorted(replies) == sorted(asked(request) for request in server.requests)
