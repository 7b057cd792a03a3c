"""Chat models asked in batches: the same votes as asked live, at the price of batches."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stscurate.annotators import Prices, annotate, asking, plan
from stscurate.disk import fingerprint
from stscurate.errors import InputError, ServiceError
from stscurate.store import Run
from tests.annotators.runs import make_pairs, votes_of
from tests.conftest import Command
from tests.services.batch_server import Faults, batch_server, dropping
from tests.services.chat_server import Answer, Request, answer_digit, chat_server, completion

PRICES = "[models]\nm = { input = 1000, output = 1000, requests_per_minute = 30, batch = 0.25 }\n"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "FIRST_LOOK", 0.01)


def test_answers_of_batches_and_live_ones_are_the_same_and_paid_once(tmp_path: Path) -> None:
    for name in ("batched", "live"):
        make_pairs(tmp_path / name, 30)
    with batch_server(Faults(missing=dropping(7))) as server, Run.open(tmp_path / "batched") as run:
        entry = annotate(run, [f"judge={server.url}#m"], both_orders=True, batch=True)
        assert [len(rows) for rows in server.sent] == [60, 1]
    with chat_server() as server, Run.open(tmp_path / "live") as run:
        live = annotate(run, [f"judge={server.url}#m"], both_orders=True)
    assert fingerprint(tmp_path / "batched" / "votes") == fingerprint(tmp_path / "live" / "votes")
    assert entry.as_dict() == live.as_dict()
    # what was answered in a batch isn't asked live, and the other way round
    with chat_server() as server, Run.open(tmp_path / "batched", replace=True) as run:
        annotate(run, [f"judge={server.url}#m"], both_orders=True, split="test")
        assert server.requests == []
    with batch_server() as server, Run.open(tmp_path / "live", replace=True) as run:
        annotate(run, [f"judge={server.url}#m"], both_orders=True, split="test", batch=True)
        assert server.calls == []


def test_what_a_batch_couldnt_read_is_a_failed_vote(tmp_path: Path) -> None:
    def answer(request: Request, count: int) -> Answer:
        if count == 1:
            return Answer(completion("I can't say."))
        return Answer({"error": {"message": "flagged"}}, 400) if count == 2 else answer_digit(request, count)

    make_pairs(tmp_path / "run", 6)
    with batch_server(answer=answer) as server, Run.open(tmp_path / "run") as run:
        entry = annotate(run, [f"judge={server.url}#m"], batch=True)
        assert entry.tally.counts["failed"] == {"judge: http_400": 1, "judge: refusal": 1}
        again = annotate(run, [f"judge={server.url}#m"], batch=True)
    assert ([len(rows) for rows in server.sent], again.tally.counts.get("failed")) == ([6, 2], None)


def test_a_dry_run_gives_the_price_of_batches_and_no_hours(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 8)
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    found = Prices.load(prices)
    with Run.open(tmp_path / "run") as run:
        (live,), (batched,) = (plan(run, ["http://h:1/v1#m"], prices=found, batch=batch) for batch in (False, True))
    assert live.cost is not None
    assert live.hours == pytest.approx(8 / 30 / 60)
    assert batched.hours is None
    assert batched.cost == pytest.approx(live.cost / 4)
    assert batched.due == live.due == 8


def test_the_packages_prices_halve_for_batches() -> None:
    from stscurate.resources import definition

    price = Prices.load(definition("prices.toml")).get("gpt-4o-mini")
    assert price is not None
    assert price.in_batches.of(1e6, 1e6) == pytest.approx(0.5 * price.of(1e6, 1e6))


def test_batches_under_way_are_fetched_before_anything_is_asked_live(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 8)

    def down(method: str, path: str, count: int) -> Answer | None:
        return Answer({"error": {"message": "down"}}, 500) if path.startswith("/batches/") else None

    with batch_server(Faults(refuse=down)) as server, Run.open(tmp_path / "run") as run:
        specs = [f"judge={server.url}#m"]
        with pytest.raises(ServiceError, match="Those that it has go on"):
            annotate(run, specs, batch=True)
        (told,) = plan(run, specs)
        assert (told.due, told.under_way) == (0, 8)
        with pytest.raises(InputError, match="8 asks of judge are in batches under way: add --batch"):
            annotate(run, specs)
        server.faults.refuse = lambda *_: None
        assert annotate(run, specs, batch=True).rows == 8
        assert len(server.batches) == 1


_BATCH = """
import sys; from pathlib import Path
from stscurate.annotators import annotate, asking; from stscurate.store import Run
asking.FIRST_LOOK = 0.05
with Run.open(Path(sys.argv[1])) as run: annotate(run, sys.argv[2:], batch=True)
"""


def test_killed_while_batches_run_it_goes_on_and_ends_at_the_same_bytes(tmp_path: Path) -> None:
    for name in ("killed", "whole"):
        make_pairs(tmp_path / name, 20)
    with batch_server(Faults(looks=60)) as server:
        specs = [f"judge={server.url}#m"]
        process = subprocess.Popen([sys.executable, "-c", _BATCH, str(tmp_path / "killed"), *specs])
        while ("GET", "/batches/batch_0") not in server.calls:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.wait()
        server.faults.looks = 1
        with Run.open(tmp_path / "killed") as run:
            annotate(run, specs, batch=True)
        assert (len(server.batches), len(server.requests)) == (1, 20)
    with batch_server() as server, Run.open(tmp_path / "whole") as run:
        annotate(run, [f"judge={server.url}#m"], batch=True)
    assert fingerprint(tmp_path / "killed" / "votes") == fingerprint(tmp_path / "whole" / "votes")


def test_the_command_asks_in_batches_also_the_dear_of_a_cascade(command: Command, tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 10)
    (tmp_path / "cheap.csv").write_text("pair_id,score\n" + "".join(f"p{at},{at % 3}\n" for at in range(10)))
    with batch_server() as server:
        call = ["annotate", tmp_path / "run", "--llm", f"file:{tmp_path / 'cheap.csv'}", "--llm", f"{server.url}#m"]
        told = json.loads(command(*call, "--cascade", 0.4, "--batch", "--dry-run", "--json").stdout)
        assert [row["due"] for row in told["asks"]] == [0, 4]
        done = command(*call, "--cascade", 0.4, "--batch")
        assert (done.exit_code, "votes: 10 rows in; 14 votes" in done.stdout) == (0, True)
        assert [len(rows) for rows in server.sent] == [4]
    assert sum(vote["annotator"] == "m" for vote in votes_of(tmp_path / "run")) == 4
