"""What annotating costs, as the command tells it, and how it stops."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.services.chat_server import Answer, Request, answer_digit, chat_server, completion

PRICES = "[models]\nm = { input = 1000, output = 1000, requests_per_minute = 30 }\n"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text("text1,text2\n" + "".join(f"It crashes at start {i}.,The start crashes.\n" for i in range(12)))
    return path


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(PRICES)
    return path


def test_a_dry_run_tells_requests_tokens_cost_and_hours_and_asks_nothing(
    command: Command, tmp_path: Path, pairs: Path, prices: Path
) -> None:
    with chat_server() as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run", "--dry-run")
        unpriced = command(*call)
        priced = command(*call, "--prices", prices)
        (row,) = json.loads(command(*call, "--prices", prices, "--json").stdout)["asks"]
        assert server.requests == []
    assert "12 requests will be sent, of about" in unpriced.stdout
    assert "No price is known for m: give one by --prices." in unpriced.stdout
    header, answer = (line for line in priced.stdout.splitlines() if line.startswith(("  annotator", "  m ")))
    assert re.split(r"\s{2,}", header.strip()) == [
        "annotator", "unit", "to do", "kept", "tokens, about", "cost, USD", "hours at least", "in batches"
    ]  # fmt: skip
    assert answer.split()[:4] == ["m", "requests", "12", "0"]
    assert (row["due"], row["known"], row["hours"]) == (12, 0, pytest.approx(12 / 30 / 60))
    assert row["cost"] == pytest.approx(row["tokens"] / 1000, abs=0.002)
    assert f"for about ${row['cost']:.2f}, which takes 0.01 hours at least" in priced.stdout
    cheap = tmp_path / "cheap.toml"
    cheap.write_text(PRICES.replace("1000", "0.001"))
    assert "for less than $0.01, which" in command(*call, "--prices", cheap).stdout


def test_caps_are_told_and_the_same_command_goes_on(
    command: Command, tmp_path: Path, pairs: Path, prices: Path
) -> None:
    with chat_server() as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run")
        first = command(*call, "--max-requests", 5)
        assert (first.exit_code, len(server.requests)) == (0, 5)
        assert "votes: 12 rows in; 5 votes" in first.stdout
        assert "The cap is reached: 7 votes weren't asked for; the same command goes on" in first.stdout
        second = json.loads(command(*call, "--max-cost", 0.5, "--prices", prices, "--json").stdout)
        assert (second["sent"], second["left"]) == (len(server.requests) - 5, {"m": 12 - len(server.requests)})
        assert second["spent"] == pytest.approx(second["sent"] * 0.091)
        assert second["spent"] <= 0.5
        refused = command(*call, "--max-cost", 1)
        assert (refused.exit_code, "No price is known for m" in refused.stderr) == (2, True)
        last = command(*call)
        assert "votes: 12 rows in; 12 votes" in last.stdout
        assert len(server.requests) == 12


def test_a_deadline_that_is_too_short_leaves_failed_votes(command: Command, tmp_path: Path, pairs: Path) -> None:
    def slow_once(request: Request, count: int) -> Answer:
        if "start 3." in request["messages"][1]["content"]:
            time.sleep(0.4)
        return answer_digit(request, count)

    with chat_server(slow_once) as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run", "--timeout", 0.2)
        result = command(*call)
    assert result.exit_code == 0
    assert "failed: m: timeout 1" in result.stdout


def start(arguments: list[str], stdin: int | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "stscurate", *arguments]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("answer", ["n", "y"])
def test_at_a_terminal_it_asks_before_the_first_request(tmp_path: Path, pairs: Path, prices: Path, answer: str) -> None:
    with chat_server() as server:
        arguments = ["annotate", str(pairs), "--llm", f"{server.url}#m", "--out", str(tmp_path / "run")]
        ours, theirs = pty.openpty()
        process = start([*arguments, "--prices", str(prices)], stdin=theirs)
        os.write(ours, f"{answer}\n".encode())
        out, _ = process.communicate(timeout=60)
        os.close(ours)
        os.close(theirs)
        assert "12 requests will be sent, of about" in out
        assert "Go on?" in out
        assert (process.returncode, len(server.requests)) == ((0, 12) if answer == "y" else (1, 0))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--cascade", "2", "--llm", "embedding:all-MiniLM-L6-v2"), "give the share of the pairs"),
        (("--cascade", "0.5"), "are dear"),
        (("--dear", "m"), "give --cascade SHARE too"),
        (("--llm", "openai:gpt"), "needs the key of an OpenAI account"),
        (("--timeout", "inf"), "less than or equal to 86400"),
        (("--examples-scale", "0-5"), "--examples-scale says something of --examples alone"),
    ],
)
def test_what_is_refused_leaves_no_run_behind(
    command: Command, tmp_path: Path, pairs: Path, options: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    source = tmp_path / "pairs.csv"
    source.write_text("text1,text2\nA cat.,A dog.\n")
    done = command("annotate", source, "--out", tmp_path / "new", "--llm", "http://127.0.0.1:9/v1#m", *options)
    assert done.exit_code == 2
    assert told in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_no_run_is_refused_and_left_as_it_is(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = command("ensemble", tmp_path / "empty")
    assert (done.exit_code, "empty isn't a run: check the path." in done.stderr) == (2, True)
    assert list((tmp_path / "empty").iterdir()) == []


def test_ctrl_c_leaves_scores_of_what_is_finished(tmp_path: Path, pairs: Path) -> None:
    def slow(request: Request, count: int) -> Answer:
        if count == 6:
            process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        return Answer(completion("3"))

    with chat_server(slow) as server:
        arguments = ["annotate", str(pairs), "--llm", f"{server.url}#m", "--concurrency", "2"]
        process = start([*arguments, "--out", str(tmp_path / "run")])
        _, err = process.communicate(timeout=60)
        asked = len(server.requests)
    assert (process.returncode, "Stopped. Run the same command again" in err) == (130, True)
    assert 6 <= asked < 12
    stages = json.loads((tmp_path / "run" / "manifest.json").read_text())["stages"]
    assert stages["votes"]["outputs"]["votes"]["rows"] == stages["scores"]["outputs"]["scores"]["rows"] == asked


def test_help_names_no_option_of_ensemble_that_annotate_lacks(command: Command) -> None:
    told = command("annotate", "--help").stdout
    assert "--method" in told
    for option in ("--gold", "--bins"):
        assert option in command("ensemble", "--help").stdout
        assert option not in told
