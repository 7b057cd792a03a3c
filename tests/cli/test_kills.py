"""A command killed by SIGKILL at whatever moment, and called again, ends at the bytes of an unbroken run.

Each call is a process of its own, forked from one that has the heavy libraries loaded: so nearly all of its time is
work, and many moments can be tried. It is killed before the n-th change of a file, for several n, each from a fresh
start; and after random times, several times in a row.
"""

import os
import random
import re
import signal
import sys
import time
from collections import Counter
from multiprocessing import get_context, set_start_method
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.services.chat_server import Answer, Request, answer_digit, chat_server
from tests.tiny_models import SENTENCES

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "openai",
        "sklearn.feature_extraction.text",
        "stscurate.annotators.chat",
        "stscurate.annotators.embedding",
        "stscurate.annotators.information_gain",
        "stscurate.audit.calibrate",
        "stscurate.cli",
        "stscurate.evaluation",
        "stscurate.mining",
        "stscurate.pairing",
        "stscurate.publishing",
        "stscurate.sampling",
        "stscurate.sources",
        "stscurate.training",
        "tests.cli.test_kills",
        "transformers.models.bert.modeling_bert",
        "transformers.models.llama.modeling_llama",
    ]
)
CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "sqlite3.connect"}  # and opening a file for writing
NOT_COMPARED = re.compile(r"timings\.jsonl$|\.sqlite|\.lock$")  # times, kept answers, locks


class Call:
    """A command in a place of its own, to which its relative paths belong."""

    def __init__(self, place: Path, *arguments: object):
        place.mkdir()
        self.place = place
        self.arguments = [str(argument) for argument in arguments]

    def start(self, deadly: int = 0) -> BaseProcess:
        """The command at work; it kills itself before its `deadly`-th change of a file."""
        process = FORKS.Process(target=work, args=(self.arguments, str(self.place), deadly))
        process.start()
        return process

    def finish(self) -> None:
        """Run it to its end."""
        process = self.start()
        process.join()
        assert process.exitcode == 0, Path(f"{self.place}.out").read_text()

    @property
    def changes(self) -> int:
        """Changes of files that the latest process has made."""
        noted = Path(f"{self.place}.changes")
        return noted.stat().st_size if noted.exists() else 0

    def files(self) -> dict[str, bytes]:
        """All that was made."""
        return {
            str(path.relative_to(self.place)): path.read_bytes()
            for path in self.place.rglob("*")
            if path.is_file() and not NOT_COMPARED.search(path.name)
        }


def work(arguments: list[str], place: str, deadly: int) -> None:
    """In the child: run the command, note each change of a file below `place`, and die before the `deadly`-th."""
    import torch

    from stscurate.cli import app

    set_start_method("fork", force=True)  # tqdm's lock would leave a semaphore behind when it is killed
    torch.set_num_threads(1)  # tiny models gain nothing from more, which would fight for the cores
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    printed, noted = (os.open(f"{place}.{name}", flags) for name in ("out", "changes"))
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.chdir(place)
    made = 0

    def audit(event: str, values: tuple[Any, ...]) -> None:
        nonlocal made
        if changes_file(event, values, place):
            made += 1
            if made == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            os.write(noted, b".")

    sys.addaudithook(audit)
    app(arguments)


def changes_file(event: str, values: tuple[Any, ...], place: str) -> bool:
    if event == "open":
        if not (isinstance(values[2], int) and values[2] & (os.O_WRONLY | os.O_RDWR)):
            return False
    elif event not in CHANGES:
        return False
    elif event in ("os.remove", "os.rmdir") and values[1] != -1:
        return True  # while a folder is removed its files are named without it
    return isinstance(values[0], str | os.PathLike) and os.path.abspath(values[0]).startswith(place)


def same(found: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    assert sorted(found) == sorted(wanted)
    assert [name for name in wanted if found[name] != wanted[name]] == []


def check_kills(folder: Path, *arguments: object, moments: int = 4, in_a_row: int = 3) -> None:
    """Hold the command to an unbroken run of it, whenever it is killed."""
    unbroken = Call(folder / "unbroken", *arguments)
    began = time.perf_counter()
    unbroken.finish()
    seconds = time.perf_counter() - began
    wanted, changes = unbroken.files(), unbroken.changes
    assert changes > len(wanted) > 0

    for moment in range(moments):
        deadly = 1 + round((changes - 1) * (moment + 0.5) / moments)
        broken = Call(folder / f"change-{deadly}", *arguments)
        process = broken.start(deadly)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        broken.finish()
        same(broken.files(), wanted)

    chance = random.Random(0)
    broken = Call(folder / "times", *arguments)
    for kill in range(in_a_row):
        process = broken.start()
        while process.is_alive() and not broken.changes:
            time.sleep(0.001)
        process.join(chance.uniform(0, 1.5 * seconds / in_a_row) if kill else 0)
        process.kill()  # on a busy machine it may be too late: the kills above are those that always hit
        process.join()
    broken.finish()
    same(broken.files(), wanted)


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Wait until the process that the others are forked from has loaded the libraries."""
    process = FORKS.Process(target=int)
    process.start()
    process.join()


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4,500 texts: three shards of triplets."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    chance = random.Random(0)
    words = [word for text in SENTENCES for word in text.replace(",", "").split()]
    path.write_text("".join(" ".join(chance.sample(words, 12)) + "\n" for _ in range(4500)))
    return path


@pytest.fixture(scope="module")
def few(texts: Path) -> Path:
    """60 texts."""
    path = texts.with_name("few.txt")
    path.write_text("".join(texts.read_text().splitlines(keepends=True)[:60]))
    return path


@pytest.fixture(scope="module")
def pairs(texts: Path) -> Path:
    """60 pairs with scores."""
    path = texts.with_name("pairs.csv")
    lines = texts.read_text().splitlines()
    rows = (f"{lines[2 * i]},{lines[2 * i + 1]},{i % 5 / 4}\n" for i in range(60))
    path.write_text("text1,text2,score\n" + "".join(rows))
    return path


def test_collect_issues(tmp_path: Path, sample_issues: Path) -> None:
    """The sample 17 times, each under other names of repositories: two shards."""
    sample = sample_issues.read_text("utf-8")
    with (tmp_path / "issues.jsonl").open("w", encoding="utf-8") as file:
        for copy in range(17):
            file.write(re.sub(r"/(tidepool|inkpot|hedgerow|signalbox)\b", rf"/\g<1>{copy}", sample))
    check_kills(tmp_path, "collect-issues", "--from", tmp_path / "issues.jsonl", "--out", "run")


def test_collect_issues_with_neighbours_by_an_encoder(tmp_path: Path, sample_issues: Path, tiny_model: Path) -> None:
    mined = ("--encoder-share", 0.5, "--encoder", tiny_model, "--ceiling", 1)
    given = ("collect-issues", "--from", sample_issues, "--out", "run", *mined)
    check_kills(tmp_path, *given, moments=3, in_a_row=2)


def test_sample_pairs(tmp_path: Path, few: Path, tiny_model: Path) -> None:
    check_kills(tmp_path, "sample-pairs", few, "--model", tiny_model, "--out", "run")


def test_audit_calibrate(tmp_path: Path, texts: Path, tiny_model: Path) -> None:
    """400 texts of two lengths."""
    lines = texts.read_text().splitlines()[:400]
    varied = "".join(f"{line} {line}\n" if number % 2 else f"{line}\n" for number, line in enumerate(lines))
    (tmp_path / "varied.txt").write_text(varied)
    options = ("--model", tiny_model, "--all-methods", "--out", "fitted")
    check_kills(tmp_path, "audit", "calibrate", tmp_path / "varied.txt", *options, moments=5, in_a_row=2)


def test_mine(tmp_path: Path, texts: Path, tiny_model: Path) -> None:
    """210 anchors: texts enough for s-norm."""
    lines = texts.read_text().splitlines()
    rows = "".join(f"{one},{two}\n" for one, two in zip(lines[:210], lines[210:420], strict=True))
    (tmp_path / "anchors.csv").write_text(f"anchor,positive\n{rows}")
    options = ("--model", tiny_model, "--margin", 0, "--out", "run")
    check_kills(tmp_path, "mine", tmp_path / "anchors.csv", *options, moments=4, in_a_row=2)


def test_triplets(tmp_path: Path, texts: Path) -> None:
    check_kills(tmp_path, "triplets", texts, "--out", "run")


def slow(request: Request, count: int) -> Answer:
    time.sleep(0.01)
    return answer_digit(request, count)


def test_annotate(tmp_path: Path, pairs: Path, tiny_model: Path, tiny_llm: Path) -> None:
    with chat_server(slow) as server:
        specs = (f"judge={server.url}#m", f"local:{tiny_llm}", f"embedding:{tiny_model}")
        llm = [part for spec in specs for part in ("--llm", spec)]
        check_kills(tmp_path, "annotate", pairs, *llm, "--out", "run")


def test_annotate_asks_again_only_what_was_in_flight(tmp_path: Path, pairs: Path) -> None:
    """Killed by the server, while it is at its first, 15th, 30th, ... request."""
    processes: list[BaseProcess] = []
    deadly, concurrency = (1, 15, 30, 45, 60), 4

    def answer(request: Request, count: int) -> Answer:
        if count in deadly:
            processes[-1].kill()
        return slow(request, count)

    with chat_server() as server:
        unbroken = Call(tmp_path / "unbroken", "annotate", pairs, "--llm", f"judge={server.url}#m", "--out", "run")
        unbroken.finish()
    with chat_server(answer) as server:
        arguments = ("--llm", f"judge={server.url}#m", "--concurrency", concurrency, "--out", "run")
        broken = Call(tmp_path / "broken", "annotate", pairs, *arguments)
        for _ in deadly:
            processes.append(broken.start())
            processes[-1].join()
            assert processes[-1].exitcode == -signal.SIGKILL
        broken.finish()
    asked = Counter(request["messages"][-1]["content"] for request in server.requests)
    assert len(asked) == 60
    assert 0 < asked.total() - len(asked) <= len(deadly) * concurrency
    same(broken.files(), unbroken.files())


def test_train_angle(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    options = ("--model", tiny_model, "--batch-size", 6, "--save-steps", 3)
    check_kills(tmp_path, "train", "angle", "--data", pairs, *options, "--out", "model")


def test_train_arccse(tmp_path: Path, few: Path, tiny_model: Path) -> None:
    options = ("--model", tiny_model, "--batch-size", 6, "--save-steps", 3)
    check_kills(tmp_path, "train", "arccse", "--data", few, *options, "--out", "model")


def test_evaluate(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    check_kills(tmp_path, "evaluate", tiny_model, "--set", pairs, "--out", "evaluation")


def test_publish(tmp_path: Path, command: Command, pairs: Path, texts: Path, tiny_model: Path) -> None:
    run = tmp_path / "run"
    assert command("annotate", pairs, "--llm", f"embedding:{tiny_model}", "--out", run).exit_code == 0
    assert command("triplets", texts, "--out", run).exit_code == 0
    check_kills(tmp_path, "publish", run, "--to", "published", "--licence", "mit")
