"""Failed votes, votes that aren't there yet, and what the next call makes of them."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from stscurate.annotators import Purse, annotate
from stscurate.disk import fingerprint
from stscurate.ensemble import score_votes
from stscurate.errors import InputError, ServiceError, SettingsChangedError
from stscurate.store import Run
from tests.annotators.runs import PRICES, due, make_pairs, votes_of
from tests.services.chat_server import Answer, Request, answer_digit, chat_server, completion, error
from tests.tiny_models import tiny_sentence_transformer


class Moody:
    """Fails in a way of its own for each of the first pairs, until it is well."""

    def __init__(self) -> None:
        self.well = False

    def __call__(self, request: Request, count: int) -> Answer:
        content = request["messages"][1]["content"]
        for number, answer in {
            0: Answer(completion("I'm sorry, I can't do that.")),
            1: Answer(completion("purple \ud83d")),
            2: Answer(completion(None, refusal="No.")),
            3: Answer(error("the context is too long"), 400),
            4: Answer(completion("The two", finish_reason="length")),
            5: Answer(completion("", finish_reason="content_filter")),
        }.items():
            if f"({number})" in content and not self.well:
                return answer
        if "(6)" in content and not self.well:
            time.sleep(0.3)
        return answer_digit(request, count)


def test_failures_stand_as_votes_of_their_kind_and_the_next_call_asks_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stscurate.services.dispatch.TIMEOUTS", 1)
    make_pairs(tmp_path / "run", 10)
    moody = Moody()
    with chat_server(moody) as server, Run.open(tmp_path / "run") as run:
        spec = f"judge={server.url}#m"
        entry = annotate(run, [spec], timeout=0.2)
        assert len(server.requests) == 10
        found = votes_of(tmp_path / "run")
        assert [(vote["error"], vote["answer"]) for vote in found[:7]] == [
            ("refusal", "I'm sorry, I can't do that."),
            ("parse", "purple ?"),
            ("refusal", "No."),
            ("http_400", "the context is too long"),
            ("length", "The two"),
            ("content_filter", ""),
            ("timeout", "no answer in 0.2 seconds"),
        ]
        assert [vote["raw"] is None for vote in found] == [True] * 7 + [False] * 3
        assert entry.tally.counts["failed"] == {
            f"judge: {kind}": 1 for kind in ("parse", "http_400", "length", "content_filter", "timeout")
        } | {"judge: refusal": 2}
        scores = score_votes(run)
        assert scores.rows == 3
        assert due(run, spec) == (7, 3)

        moody.well = True
        again = annotate(run, [spec])
        assert (len(server.requests), again.fresh) == (17, True)
        assert "failed" not in again.tally.counts
        assert score_votes(run).rows == 10  # no --yes is needed: it is the same, with more in it
        assert not annotate(run, [spec]).fresh
        assert len(server.requests) == 17
    # As if nothing had ever failed.
    make_pairs(tmp_path / "whole", 10)
    with chat_server() as server, Run.open(tmp_path / "whole") as run:
        annotate(run, [f"judge={server.url}#m"])
    assert fingerprint(tmp_path / "run" / "votes") == fingerprint(tmp_path / "whole" / "votes")
    assert Run(tmp_path / "run").entries["votes"].as_dict() == Run(tmp_path / "whole").entries["votes"].as_dict()


def test_failures_that_fail_again_leave_everything_as_it_was(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 4, lambda i: (f"a ({i})", "b"))

    def refuses(request: Request, count: int) -> Answer:
        return (
            Answer(completion("I can't.")) if "(1)" in request["messages"][1]["content"] else answer_digit(request, 0)
        )

    with chat_server(refuses) as server, Run.open(tmp_path / "run") as run:
        spec = [f"judge={server.url}#m"]
        annotate(run, spec)
        score_votes(run)
        before = fingerprint(tmp_path / "run" / "votes")
        annotate(run, spec)
        assert len(server.requests) == 5
        assert not score_votes(run).fresh
    assert fingerprint(tmp_path / "run" / "votes") == before


def test_a_broken_endpoint_leaves_the_votes_there_are_and_the_same_call_asks_the_rest(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 20)
    broken = True

    def breaks(request: Request, count: int) -> Answer:
        return Answer(error("key expired"), 401) if broken and count > 12 else answer_digit(request, count)

    with chat_server(breaks) as server, Run.open(tmp_path / "run") as run:
        spec = f"{server.url}#m"
        assert due(run, spec) == (20, 0)
        with pytest.raises(InputError, match="12 answers of m are kept: the same command goes on from there"):
            annotate(run, [spec], concurrency=1)
        assert len(votes_of(tmp_path / "run")) == 12
        assert run.entries["votes"].tally.counts["not_asked"] == {"m": 8}
        assert due(run, spec) == (8, 12)
        asked = len(server.requests)
        broken = False
        entry = annotate(run, [spec], concurrency=1)
        assert (len(server.requests), entry.rows) == (asked + 8, 20)
        assert "not_asked" not in entry.tally.counts
        assert due(run, spec) == (0, 20)


def test_no_server_there_is_told_at_once_and_nothing_is_half_written(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 3)
    with chat_server() as server:
        gone = server.url
    with Run.open(tmp_path / "run") as run:
        with pytest.raises(ServiceError, match="no server answers there: start it, or mend --llm"):
            annotate(run, [f"{gone}#m"])
        assert not run.has("votes")


def test_an_endpoint_that_answers_no_ask_is_told_and_mended_by_the_same_call(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 3)
    broken = True

    def refuses(request: Request, count: int) -> Answer:
        return Answer(error("no such field: messages"), 400) if broken else answer_digit(request, count)

    with chat_server(refuses) as server, Run.open(tmp_path / "run") as run:
        with pytest.raises(ServiceError, match=r"m answered none of its asks .http_400: no such field: messages"):
            annotate(run, [f"{server.url}#m"])
        broken = False
        entry = annotate(run, [f"{server.url}#m"])
    assert (entry.rows, "failed" in entry.tally.counts) == (3, False)


def test_caps_stop_cleanly_and_the_same_call_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    for name in ("capped", "whole"):
        make_pairs(tmp_path / name, 20)
    with chat_server() as server, Run.open(tmp_path / "capped") as run:
        spec = [f"judge={server.url}#m"]
        purse = Purse(requests=7)
        entry = annotate(run, spec, purse=purse)
        assert (entry.rows, len(server.requests), purse.full) == (7, 7, True)
        assert (entry.tally.counts["not_asked"], entry.tally.dropped) == ({"judge": 13}, {"not_asked": 13})
        score_votes(run)
        # 91 tokens an answer by the server's count; a thousand tokens cost a dollar here.
        cheap = Purse(cost=0.5)
        annotate(run, spec, prices=PRICES, purse=cheap)
        assert 0 < cheap.spent <= 0.5
        assert len(votes_of(tmp_path / "capped")) == len(server.requests) == 7 + round(cheap.spent / 0.091)
        with pytest.raises(InputError, match="No price is known for m"):
            annotate(run, spec, purse=Purse(cost=0.5))
        annotate(run, spec)
        assert score_votes(run).rows == len(server.requests) == 20
    with chat_server() as server, Run.open(tmp_path / "whole") as run:
        annotate(run, [f"judge={server.url}#m"])
        score_votes(run)
    for table in ("votes", "scores"):
        assert fingerprint(tmp_path / "capped" / table) == fingerprint(tmp_path / "whole" / table)
    entries = [Run(tmp_path / name).entries["votes"].as_dict() for name in ("capped", "whole")]
    assert entries[0] == entries[1]


def test_ctrl_c_leaves_the_votes_of_chats_and_counts_what_was_not_computed(tmp_path: Path) -> None:
    encoder = tiny_sentence_transformer(tmp_path / "tiny-encoder")
    make_pairs(tmp_path / "run", 40)
    main = threading.get_ident()
    interrupt = True

    def interrupts(request: Request, count: int) -> Answer:
        if count == 10 and interrupt:
            signal.pthread_kill(main, signal.SIGINT)
        return answer_digit(request, count)

    with chat_server(interrupts) as server, Run.open(tmp_path / "run") as run:
        specs = [f"judge={server.url}#m", f"embedding:{encoder}"]
        with pytest.raises(KeyboardInterrupt):
            annotate(run, specs, concurrency=2)
        asked = len(server.requests)
        assert 10 <= asked < 40
        assert Counter(vote["annotator"] for vote in votes_of(tmp_path / "run")) == {"judge": asked}
        assert run.entries["votes"].tally.counts["not_asked"] == {"judge": 40 - asked, "tiny-encoder": 40}
        interrupt = False
        annotate(run, specs, concurrency=2)
        assert len(server.requests) == 40
    assert Counter(vote["annotator"] for vote in votes_of(tmp_path / "run")) == {"judge": 40, "tiny-encoder": 40}


def test_a_finished_table_of_other_settings_is_not_given_up_for_a_part(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 10)
    broken = False

    def breaks(request: Request, count: int) -> Answer:
        return Answer(error("key expired"), 401) if broken and count > 14 else answer_digit(request, count)

    with chat_server(breaks) as server:
        spec = [f"judge={server.url}#m"]
        with Run.open(tmp_path / "run") as run:
            annotate(run, spec)
            with pytest.raises(SettingsChangedError):
                annotate(run, spec, seed=1)
        before = fingerprint(tmp_path / "run" / "votes")
        broken = True
        with Run.open(tmp_path / "run", replace=True) as run:
            with pytest.raises(InputError, match="4 answers of judge are kept"):
                annotate(run, spec, seed=1, concurrency=1)
            assert fingerprint(tmp_path / "run" / "votes") == before
            broken = False
            annotate(run, spec, seed=1)
        assert len(server.requests) == 21
