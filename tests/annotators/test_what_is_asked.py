"""Which rows of a run are asked, what a plan says of them, and what is told on the way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stscurate.annotators import Purse, annotate, plan
from stscurate.annotators.base import Plan
from stscurate.ensemble import score_votes
from stscurate.services.answers import Answers
from stscurate.services.purse import Price, Prices
from stscurate.store import Run
from tests.annotators.runs import PRICES, due, make_pairs, votes_of
from tests.services.chat_server import Answer, Request, answer_digit, chat_server, completion, error


def test_only_new_rows_are_asked_when_there_are_more(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 10)
    with chat_server() as server:
        with Run.open(tmp_path / "run") as run:
            annotate(run, [f"judge={server.url}#m"])
        with Run.open(tmp_path / "run", replace=True) as run:
            stage_again(run, tmp_path, 25)
            assert due(run, f"judge={server.url}#m") == (15, 10)
            annotate(run, [f"judge={server.url}#m"])
        assert len(server.requests) == 25
        assert len(votes_of(tmp_path / "run")) == 25


def stage_again(run: Run, folder: Path, count: int) -> None:
    """The pairs of another run of more rows in place of these."""
    make_pairs(folder / "more", count)
    stage = run.stage("pairs", tables=["pairs"], inputs={"more": "x"}, settings={})
    from stscurate.records import Tally

    stage.write(0, {"pairs": Run(folder / "more").table("pairs")}, Tally(rows_in=count))
    stage.commit()


def test_equal_pairs_are_asked_once(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 30, lambda i: (f"a {i % 3}", "b"))
    with chat_server() as server, Run.open(tmp_path / "run") as run:
        assert due(run, f"{server.url}#m") == (3, 0)
        annotate(run, [f"{server.url}#m"], concurrency=4)
    assert len(server.requests) == 3
    assert len(votes_of(tmp_path / "run")) == 30


def test_no_pairs_make_no_votes_and_no_error(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 0)
    with chat_server() as server, Run.open(tmp_path / "run") as run:
        entry = annotate(run, [f"{server.url}#m"])
        assert (entry.rows, score_votes(run).rows, server.requests) == (0, 0, [])
        assert not annotate(run, [f"{server.url}#m"]).fresh


def test_a_plan_tells_tokens_cost_and_hours_of_what_is_due(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 30)
    limits = {"x-ratelimit-limit-requests": "120", "x-ratelimit-remaining-requests": "119"}
    limits["x-ratelimit-reset-requests"] = "500ms"

    def limited(request: Request, count: int) -> Answer:
        return Answer(answer_digit(request, count).body, 200, limits)

    with chat_server(limited) as server, Run.open(tmp_path / "run") as run:
        spec = f"judge={server.url}#m"
        (before,) = plan(run, [spec], prices=PRICES)
        assert before.tokens is not None
        assert 30 * 60 < before.tokens < 30 * 400
        assert before.cost == pytest.approx(before.tokens * 1000 / 1e6, rel=0.01)
        assert before.hours is None
        (slow,) = plan(run, [spec], prices=Prices({"m": Price(1, 1, requests_per_minute=10)}, "slow"))
        assert slow.hours == pytest.approx(3 / 60)
        annotate(run, [spec], purse=Purse(requests=6))
        (after,) = plan(run, [spec], prices=PRICES)
        assert (after.due, after.known) == (24, 6)
        assert after.hours == pytest.approx(24 / 120 / 60)  # as the server told


def test_a_plan_tells_which_vectors_of_an_embedding_model_are_kept(tmp_path: Path, tiny_model: Path) -> None:
    make_pairs(tmp_path / "run", 70)  # 70 first texts and 12 second ones, in a batch of 64 and one of 18
    spec = f"tiny=embedding:{tiny_model}"
    with Run.open(tmp_path / "run") as run:
        assert plan(run, [spec]) == [Plan("tiny", "texts", 82, 0)]
        annotate(run, [spec])
        assert plan(run, [spec]) == [Plan("tiny", "texts", 0, 82)]
        with Answers(run.folder / "answers.sqlite") as answers:
            (short, _) = sorted(answers.items("embedding"), key=lambda item: len(item[1]))
            answers.delete([short[0]])
        assert plan(run, [spec]) == [Plan("tiny", "texts", 18, 64)]


def test_progress_tells_rate_flight_limits_cost_failures_and_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stscurate.annotators.asking._REDRAW", 0.0)
    make_pairs(tmp_path / "run", 30)
    limits = {"x-ratelimit-limit-requests": "60000", "x-ratelimit-remaining-requests": "59999"}
    limits |= {"x-ratelimit-limit-tokens": "900000", "x-ratelimit-remaining-tokens": "890000"}

    def uneven(request: Request, count: int) -> Answer:
        if count == 5:
            return Answer(error("oops"), 503)
        if "(3)" in request["messages"][1]["content"]:
            return Answer(completion("purple"))
        return Answer(answer_digit(request, count).body, 200, limits)

    seen: list[tuple[str, int, int | None]] = []
    with chat_server(uneven) as server, Run.open(tmp_path / "run") as run:
        spec = [f"judge={server.url}#m"]
        annotate(
            run,
            spec,
            prices=PRICES,
            concurrency=4,
            progress=lambda label, done, total: seen.append((label, done, total)),
        )
    label, done, total = seen[-1]
    assert (done, total) == (30, 30)
    assert label.startswith("votes of judge; ")
    for part in (
        "/s",
        "0 in flight",
        "60000 requests/min",
        "900000 tokens/min",
        "$2.73",
        "1 parse",
        "1 http_503 tries",
    ):
        assert part in label
    assert any(re.search(r" [1-4] in flight.* s left", label) for label, _, _ in seen)
    noted = (tmp_path / "run" / "timings.jsonl").read_text()
    assert '{"stage": "votes", "requests": 31, "cost": 2.73}' in noted
