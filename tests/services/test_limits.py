from __future__ import annotations

import math

import pytest

from stscurate.services.limits import Allowance, Limiter, Told, demanded_pause, reset_in, told

NOW = 1_780_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("1d", 86400.0),
        ("7.66s", 7.66),
        ("12", 12.0),
        ("0.25", 0.25),
        (str(int(NOW) + 30), 30.0),
        (str((int(NOW) + 30) * 1000), 30.0),
        (str(int(NOW) - 30), 0.0),
        ("2026-05-28T20:27:00Z", 50.0),
        ("soon", None),
        ("", None),
        ("-1", None),
        ("nan", None),
    ],
)
def test_a_reset_is_read_in_the_shapes_that_services_use(text: str, seconds: float | None) -> None:
    now = NOW
    if text.endswith("Z"):
        now, seconds = 1_780_000_020.0 - 50, 50.0  # 20:27:00 is 1,780,000,020
    assert reset_in(text, now) == (None if seconds is None else pytest.approx(seconds))


def test_limits_are_read_from_both_families_of_headers() -> None:
    openai = {
        "x-ratelimit-limit-requests": "600",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "100ms",
        "x-ratelimit-limit-tokens": "40000",
    }
    assert told(openai, "requests", NOW) == Told(600.0, 59.0, 0.1)
    assert told(openai, "tokens", NOW) == Told(40000.0, None, None)
    plain = {"x-ratelimit-limit": "20, 20;w=60", "x-ratelimit-remaining": "3", "x-ratelimit-reset": str(int(NOW) + 5)}
    assert told(plain, "requests", NOW) == Told(20.0, 3.0, 5.0)
    assert told(plain, "tokens", NOW) == Told(None, None, None)


def test_a_pause_is_read_in_milliseconds_too() -> None:
    assert demanded_pause({"retry-after-ms": "250", "retry-after": "1"}, NOW) == 0.25
    assert demanded_pause({"retry-after": "1"}, NOW) == 1.0
    assert demanded_pause({}, NOW) is None


def test_a_bucket_is_followed_request_by_request() -> None:
    """600 a minute, 60 at once: after 60 at time 0, one more every tenth of a second."""
    bucket = Allowance()
    assert bucket.wait(0.0, 1.0) == 0.0
    marks = [bucket.take(1.0) for _ in range(60)]
    bucket.learn(0.5, Told(600.0, 59.0, 0.1), 0.0, marks[0])  # of the first: 59 others were sent since
    assert bucket.wait(0.5, 1.0) == 0.0  # five have come back since then
    bucket.learn(0.5, Told(600.0, 0.0, 6.0), 0.0, marks[-1])
    for _ in range(5):
        assert bucket.wait(0.5, 1.0) == 0.0
        bucket.take(1.0)
    assert bucket.wait(0.5, 1.0) == pytest.approx(0.1)
    assert bucket.wait(0.6, 1.0) == pytest.approx(0.0)


def test_a_window_that_begins_anew_is_noticed() -> None:
    bucket = Allowance()
    mark = bucket.take(1.0)
    bucket.learn(0.0, Told(60.0, 0.0, 30.0), 0.0, mark)
    assert bucket.wait(0.0, 1.0) > 0.5
    bucket.learn(0.1, Told(60.0, 59.0, 60.0), 0.1, bucket.take(1.0))
    assert bucket.wait(0.1, 50.0) == 0.0


def test_what_was_guessed_too_much_is_given_back() -> None:
    tokens = Allowance()
    mark = tokens.take(100.0)
    tokens.learn(0.0, Told(6000.0, 400.0, 1.0), 0.0, mark)
    tokens.take(400.0)
    assert tokens.wait(0.0, 100.0) == pytest.approx(1.0)
    tokens.refund(250.0)
    assert tokens.wait(0.0, 100.0) == 0.0


def test_a_request_larger_than_the_bucket_goes_when_it_is_full() -> None:
    tokens = Allowance()
    tokens.learn(0.0, Told(60.0, 10.0, 1.0), 0.0, tokens.take(1.0))
    tokens.take(10.0)
    assert tokens.wait(0.0, 1000.0) == pytest.approx(60.0)


def test_concurrency_starts_at_the_ceiling_halves_once_a_flight_and_grows_slowly() -> None:
    limiter = Limiter(64)
    flight = [limiter.send(0.0, 0.0) for _ in range(64)]
    assert limiter.wait(1.0, 0.0) == math.inf
    for ticket in flight[:10]:
        limiter.too_many(1.0, ticket, {"retry-after": "2"}, NOW, 1.0)
    assert limiter.window == 32.0
    assert limiter.refused == 1
    for ticket in flight[10:]:
        limiter.answered(1.5, ticket, {}, None, NOW)
    assert 32.0 < limiter.window < 32 + 3.2 * 54 / 32
    assert limiter.wait(1.5, 0.0) == pytest.approx(1.5)  # what the service said, for all
    assert limiter.wait(3.0, 0.0) == 0.0
    limiter.failed(4.0, limiter.send(3.0, 0.0), overload=True)
    assert limiter.window < 20


def test_pauses_without_a_word_of_the_service_grow_and_end_at_a_minute() -> None:
    limiter = Limiter(1)
    pauses, now = [], 0.0
    for _ in range(8):
        pauses.append(limiter.too_many(now, limiter.send(now, 0.0), {}, NOW, 1.0))
        now += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def test_the_reset_of_a_window_is_waited_for_when_a_short_pause_was_not_enough() -> None:
    limiter = Limiter(1)
    headers = {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "40"}
    assert limiter.too_many(0.0, limiter.send(0.0, 0.0), headers, NOW, 1.0) == 1.0
    assert limiter.too_many(1.0, limiter.send(1.0, 0.0), headers, NOW, 1.0) == 40.0


def test_until_the_first_answer_asks_are_spaced_so_that_a_refusal_is_heard() -> None:
    limiter = Limiter(100)
    for _ in range(40):
        assert limiter.wait(0.0, 0.0) == 0.0
        first = limiter.send(0.0, 0.0)
    assert 0 < limiter.wait(0.0, 0.0) < 0.01
    limiter.answered(0.01, first, {}, None, NOW)
    limiter.send(0.01, 0.0)
    assert limiter.wait(0.01, 0.0) == 0.0
