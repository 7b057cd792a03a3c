"""Asks in batches: kept by their own ids whatever happens on the way, and none paid twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from stscurate.errors import InputError, ServiceError
from stscurate.services import batch_asking
from stscurate.services.answers import Answers, answer_key
from stscurate.services.batch_api import BatchApi
from stscurate.services.batch_asking import Batched, ask_in_batches, under_way
from stscurate.services.chat import Ask, ChatEndpoint, Reply
from stscurate.services.purse import Price, Purse
from tests.services.batch_server import BatchServer, Faults, batch_server, dropping
from tests.services.chat_server import Answer, Request, completion, digit_of, error

TEXTS = [f"How close are text {number} and its neighbour?" for number in range(12)]


class Asker:
    """Asks for TEXTS, and keeps what comes back."""

    def __init__(self, server: BatchServer, folder: Path, texts: Sequence[str] = TEXTS, price: Price | None = None):
        self.asks = {answer_key(text=text): text for text in texts}
        self.replies: dict[str, Reply] = {}
        self.received = 0
        self.answers = Answers(folder / "answers.sqlite")
        self.slept: list[float] = []
        endpoint = ChatEndpoint("m", base_url=server.url, api_key="key", timeout=5.0)
        self.work = Batched(endpoint, self._due, self._keep, "shape", price)

    def _due(self) -> Iterator[Ask]:
        for key, text in self.asks.items():
            if key not in self.replies or self.replies[key].error:
                body = {"messages": [{"role": "user", "content": text}], "seed": 0, "logprobs": True}
                yield Ask(key, body, tokens=10.0, answer=1.0)

    def _keep(self, replies: Sequence[tuple[str, Reply]]) -> None:
        self.replies.update(replies)
        self.received += len(replies)

    def run(self, purse: Purse | None = None) -> None:
        ask_in_batches([self.work], self.answers, purse=purse, first_pause=0.001, sleep=self.slept.append)

    def right(self) -> int:
        """How many have the answer to their own question."""
        return sum(
            self.replies[key].text == digit_of({"messages": [{"content": text}]})
            for key, text in self.asks.items()
            if key in self.replies and not self.replies[key].error
        )


def test_rows_are_joined_by_their_ids_in_whatever_order_they_come(tmp_path: Path) -> None:
    with batch_server() as server:
        asker = Asker(server, tmp_path)
        asker.run()
        asker.run()  # nothing is left to ask
    assert (asker.right(), asker.received, len(server.batches)) == (12, 12, 1)
    (rows,) = server.sent
    assert [row["custom_id"] for row in rows] == list(asker.asks)
    assert {(row["method"], row["url"], row["body"]["model"]) for row in rows} == {
        ("POST", "/v1/chat/completions", "m")
    }
    assert server.batches["batch_0"]["completion_window"] == "24h"
    assert under_way(asker.answers, "shape") == set()


def test_large_sets_are_split_at_the_limits_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with batch_server() as server:
        monkeypatch.setattr(batch_asking, "MOST_REQUESTS", 5)
        asker = Asker(server, tmp_path)
        asker.run()
        assert ([len(rows) for rows in server.sent], asker.right()) == ([5, 5, 2], 12)
        line = len(server.files["file-0"].splitlines()[0]) + 1
        monkeypatch.setattr(batch_asking, "MOST_BYTES", 3 * line + 5)
        other = Asker(server, tmp_path / "..", [f"{text} Twice {number}" for number, text in enumerate(TEXTS)])
        other.run()
    assert other.right() == 12
    assert max(len(content) for name, content in server.files.items() if b'"method"' in content) <= 5 * line


def test_missing_and_expired_rows_alone_are_sent_again(tmp_path: Path) -> None:
    with batch_server(Faults(missing=dropping(2, 5), expire_after=9)) as server:
        asker = Asker(server, tmp_path)
        asker.run()
    assert (asker.right(), asker.received) == (12, 12)
    assert [len(rows) for rows in server.sent] == [12, 2 + 1]  # nine were answered
    first, second = ({row["custom_id"] for row in rows} for rows in server.sent)
    assert second < first


def test_what_never_comes_back_is_given_up_after_three_batches(tmp_path: Path) -> None:
    with batch_server(Faults(missing=lambda number: True)) as server:
        asker = Asker(server, tmp_path, TEXTS[:2])
        asker.run()
    assert len(server.batches) == 3
    assert [reply.error for reply in asker.replies.values()] == ["expired", "expired"]


def test_refused_rows_come_with_their_error_and_passing_faults_are_sent_again(tmp_path: Path) -> None:
    def refuse(request: Request, count: int) -> Answer:
        text = request["messages"][0]["content"]
        if "text 3 " in text:
            return Answer(error("flagged by the filter"), 400)
        if "text 4 " in text and count <= 12:
            return Answer(error("overloaded"), 503)
        if "text 5 " in text:
            return Answer({"what": "is this"})
        return Answer(completion(digit_of(request)))

    with batch_server(answer=refuse) as server:
        asker = Asker(server, tmp_path)
        asker.run()
    assert [len(rows) for rows in server.sent] == [12, 1]
    assert asker.right() == 10
    faults = {asker.asks[key].split()[4]: reply.error for key, reply in asker.replies.items() if reply.error}
    assert faults == {"3": "http_400", "5": "no_chat_completion"}
    assert "flagged by the filter" in {reply.text for reply in asker.replies.values()}


def test_an_argument_that_the_model_doesnt_take_is_left_out_of_the_next_batch(tmp_path: Path) -> None:
    def answer(request: Request, count: int) -> Answer:
        if "logprobs" in request:
            return Answer(error("Unsupported parameter: 'logprobs'"), 400)
        return Answer(completion(digit_of(request)))

    with batch_server(answer=answer) as server:
        asker = Asker(server, tmp_path)
        asker.run()
    assert (asker.right(), len(server.batches)) == (12, 2)
    assert {"logprobs" in row["body"] for row in server.sent[1]} == {False}


def test_faults_while_polling_and_reading_are_waited_out(tmp_path: Path) -> None:
    def refuse(method: str, path: str, count: int) -> Answer | None:
        if path.startswith("/batches/") and 2 <= count <= 4:
            return Answer(error("down"), 500)
        return Answer(error("slow down"), 429) if path.endswith("/content") and count == 1 else None

    strange = '{"custom_id": "a stranger\u2028", "response": {"status_code": 200}}\n'.encode()
    with batch_server(Faults(looks=6, refuse=refuse, broken_files=2, strange=strange)) as server:
        asker = Asker(server, tmp_path)
        asker.run()
    assert (asker.right(), len(server.batches)) == (12, 1)
    assert max(asker.slept) < 0.02  # pauses grow from what they begin with
    assert len(set(asker.slept)) > 4


def test_a_batch_that_was_made_though_the_answer_was_lost_isnt_made_again(tmp_path: Path) -> None:
    faults = Faults(lost=lambda method, path, count: (method, path, count) == ("POST", "/batches", 1))
    with batch_server(faults) as server:
        asker = Asker(server, tmp_path)
        asker.run()
    assert (asker.right(), len(server.batches), len(server.requests)) == (12, 1, 12)


class _KilledError(BaseException):
    pass


@pytest.mark.parametrize("moment", range(9))
def test_ended_at_any_moment_it_goes_on_and_asks_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """A call that dies before its n-th step (a request to the service, or something kept), and another after it."""
    steps = 0

    def deadly(function):  # type: ignore[no-untyped-def]
        def stepped(*given, **options):  # type: ignore[no-untyped-def]
            nonlocal steps
            steps += 1
            if steps == moment + 1:
                raise _KilledError
            return function(*given, **options)

        return stepped

    with batch_server() as server:
        asker = Asker(server, tmp_path)
        with monkeypatch.context() as patched:
            for owner, name in (
                (BatchApi, "upload"),
                (BatchApi, "make"),
                (BatchApi, "look"),
                (BatchApi, "rows"),
                (Answers, "put"),
            ):
                patched.setattr(owner, name, deadly(getattr(owner, name)))
            with suppress(_KilledError):
                asker.run()
        again = Asker(server, tmp_path)
        again.replies = asker.replies
        again.run()
        assert (again.right(), len(server.batches), len(server.requests)) == (12, 1, 12)


def test_a_call_killed_between_making_a_batch_and_noting_its_id_finds_it(tmp_path: Path) -> None:
    with batch_server() as server:
        asker = Asker(server, tmp_path)
        put = asker.answers.put
        kept: list[str] = []

        def once(kind: str, values: dict[str, bytes]) -> None:
            if kept:
                raise _KilledError
            kept.append(kind)
            put(kind, values)

        asker.answers.put = once  # type: ignore[assignment, method-assign]
        with pytest.raises(_KilledError):
            asker.run()
        assert len(server.batches) == 1
        again = Asker(server, tmp_path)
        assert under_way(again.answers, "shape") == set(again.asks)
        again.run()
    assert (again.right(), len(server.batches), len(server.requests)) == (12, 1, 12)


def test_a_batch_that_fails_validation_is_one_clear_error(tmp_path: Path) -> None:
    wrong = [{"code": "invalid_json_line", "message": "This line is not parseable as valid JSON.", "line": 3}]
    with batch_server(Faults(validation=wrong)) as server:
        asker = Asker(server, tmp_path)
        with pytest.raises(ServiceError, match=r"batch_0 of 12 requests failed validation \(line 3: This line is not"):
            asker.run()
        server.faults.validation = []
        asker.run()  # mended, it is sent anew
    assert (asker.right(), len(server.batches)) == (12, 2)


def test_where_too_much_is_waiting_the_next_batch_waits_for_one_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_asking, "MOST_REQUESTS", 5)
    with batch_server(Faults(most_waiting=10, looks=2)) as server:
        asker = Asker(server, tmp_path)
        asker.run()
    assert (asker.right(), len(server.requests)) == (12, 12)
    assert [made["status"] for made in server.batches.values()] == ["completed", "completed", "failed", "completed"]
    with batch_server(Faults(most_waiting=3)) as server:
        asker = Asker(server, tmp_path, [f"{text} Again?" for text in TEXTS])
        with pytest.raises(ServiceError, match=r"Enqueued token limit reached.*send less by --max-requests"):
            asker.run()


def test_a_cancelled_batch_keeps_what_it_answered(tmp_path: Path) -> None:
    with batch_server(Faults(expire_after=7, cancel=True)) as server:
        asker = Asker(server, tmp_path)
        with pytest.raises(ServiceError, match=r"batch_0 was cancelled. What it answered is kept"):
            asker.run()
        assert asker.right() == 7
        server.faults.cancel = False
        asker.run()
    assert (asker.right(), [len(rows) for rows in server.sent]) == (12, [12, 5])


def test_a_service_without_batches_or_with_another_key_is_named(tmp_path: Path) -> None:
    refusals = {404: r"has no batches \(404: no\): leave out --batch", 401: r"refuses the key \(401: no\)"}
    for status, says in refusals.items():
        with batch_server(Faults(refuse=lambda *_: Answer(error("no"), status))) as server:  # noqa: B023
            asker = Asker(server, tmp_path)
            with pytest.raises(InputError, match=says):
                asker.run()


def test_a_service_that_stays_down_is_given_up_and_its_batch_is_fetched_later(tmp_path: Path) -> None:
    def down(method: str, path: str, count: int) -> Answer | None:
        return Answer(error("down"), 502) if path.startswith("/batches/") else None

    with batch_server(Faults(refuse=down)) as server:
        asker = Asker(server, tmp_path)
        with pytest.raises(ServiceError, match=r"502: down.*Those that it has go on: the same command fetches them"):
            asker.run()
        server.faults.refuse = lambda *_: None
        asker.run()
    assert (asker.right(), len(server.batches)) == (12, 1)


def test_a_purse_caps_what_is_sent_and_counts_what_was_used(tmp_path: Path) -> None:
    with batch_server() as server:
        asker = Asker(server, tmp_path, price=Price(1000.0, 2000.0, batch=0.5).in_batches)
        purse = Purse(requests=7)
        asker.run(purse)
        assert (purse.full, purse.sent, purse.in_flight, asker.right()) == (True, 7, 0, 7)
        assert purse.spent == pytest.approx(7 * (90 * 500 + 1 * 1000) / 1e6)
        asker.run(Purse())
    assert (asker.right(), [len(rows) for rows in server.sent]) == (12, [7, 5])


def test_two_that_read_the_same_answers_share_their_batches(tmp_path: Path) -> None:
    with batch_server() as server:
        one, two = Asker(server, tmp_path), Asker(server, tmp_path)
        two.replies = one.replies
        works = [one.work, two.work]
        ask_in_batches(works, one.answers, first_pause=0.001, sleep=one.slept.append)
    assert (one.right(), len(server.requests)) == (12, 12)
