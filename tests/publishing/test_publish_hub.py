"""The whole way, in processes of its own: the command line, the real clients, and another process that reads back."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stscurate.store import Run
from tests.conftest import ROOT, Command
from tests.local_hub import WRITER, LocalHub, lose, status
from tests.local_hub.answers import Answer
from tests.publishing.samples import PUBLISHED_PAIRS, files, write_run

LOAD = """
import json, sys, datasets
data = datasets.load_dataset(sys.argv[1], *sys.argv[3:], revision=sys.argv[2])
print(json.dumps({split: [list(row.values()) for row in part] for split, part in data.items()}))
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    with LocalHub.serve(tmp_path / "storage") as found:
        yield found


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with Run.open(tmp_path / "run") as opened:
        write_run(opened)
    return tmp_path / "run"


def call(hub: LocalHub, home: Path, *words: object, token: str | None = WRITER) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stscurate", *map(str, words)]
    environment = hub.environment(home, token)
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=200)


def load(hub: LocalHub, home: Path, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-c", LOAD, *words]
    done = subprocess.run(command, env=hub.environment(home), capture_output=True, text=True, check=True, timeout=200)
    return dict(json.loads(done.stdout))


def test_a_run_is_pushed_through_failures_read_back_and_tagged_and_the_token_is_nowhere(
    hub: LocalHub, run: Path, tmp_path: Path
) -> None:
    hub.fail("POST .*/create", status(429, retry_after=0, message=f"not so fast, {WRITER}"))
    hub.fail("POST .*/commit/", status(503, retry_after=0, message=WRITER), lose())
    done = call(hub, tmp_path / "home", "publish", run, "me/set", "--licence", "mit", "--tag", "v1.0", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    made = hub.dataset("me/set")
    assert made.private
    assert made.tags == {"v1.0": told["commit"]} == {"v1.0": made.head.oid}
    assert (told["files"], told["rows"]) == ({"added": 15, "changed": 0, "removed": 0}, 28)
    here = files(run / "hub" / "me" / "set")
    assert {path: file.read() for path, file in made.head.files.items() if path != ".gitattributes"} == {
        path: data for path, data in here.items() if path not in ("manifest.json", ".hub.json")
    }
    data = load(hub, tmp_path / "stranger", "me/set", "v1.0")
    assert {split: [tuple(row) for row in rows] for split, rows in data.items()} == PUBLISHED_PAIRS
    everything = [done.stdout.encode(), *files(run).values(), *(file.read() for file in made.head.files.values())]
    assert not [text for text in everything if WRITER.encode() in text]
    hub.log.clear()
    again = call(hub, tmp_path / "home", "publish", run, "me/set", "--licence", "mit", "--tag", "v1.0")
    assert "Nothing to do: all of it is there, unchanged" in again.stdout
    assert [(asked.method, asked.writes) for asked in hub.log] == [("GET", False)]


def test_without_a_token_or_an_owner_nothing_is_asked(hub: LocalHub, run: Path, tmp_path: Path) -> None:
    without = call(hub, tmp_path / "home", "publish", run, "me/set", "--licence", "mit", token=None)
    assert (without.returncode, without.stdout) == (2, "")  # told before the work begins
    assert without.stderr == (
        "stscurate: There is no token for the Hub: set HF_TOKEN, or run `hf auth login`, with one that may write.\n"
    )
    nobody = call(hub, tmp_path / "home", "publish", run, "set", "--licence", "mit")
    assert (nobody.returncode, "'set' is no repository: name it as OWNER/NAME" in nobody.stderr) == (2, True)
    assert hub.log == []


@pytest.mark.parametrize(
    "moment", ["PUT .*/lfs/", "POST .*/commit/", "GET .*/resolve/"], ids=["upload", "commit", "read back"]
)
def test_killed_for_good_it_goes_on_and_ends_the_same(hub: LocalHub, run: Path, tmp_path: Path, moment: str) -> None:
    words = ["publish", str(run), "me/set", "--licence", "mit", "--tag", "v1"]
    command = [sys.executable, "-m", "stscurate", *words]
    process = subprocess.Popen(command, cwd=ROOT, env=hub.environment(tmp_path / "home"), stdout=subprocess.PIPE)

    def kill(answer: Callable[[], Answer]) -> Answer:
        """It is done, and nobody hears of it."""
        process.kill()
        return answer()

    hub.fail(moment, kill)
    process.communicate(timeout=200)
    assert process.returncode == -signal.SIGKILL
    assert hub.repositories.get(("dataset", "me/set")) is None or not hub.dataset("me/set").tags
    done = call(hub, tmp_path / "home", *words)
    assert (done.returncode, done.stderr) == (0, "")
    made = hub.dataset("me/set")
    assert len(made.history()) == 2
    assert made.tags == {"v1": made.head.oid}
    here = files(run / "hub" / "me" / "set")
    assert {path: file.read() for path, file in made.head.files.items() if path != ".gitattributes"} == {
        path: data for path, data in here.items() if path not in ("manifest.json", ".hub.json")
    }


def test_the_readmes_commands_push_the_sample_and_load_it_back(
    hub: LocalHub, tmp_path: Path, command: Command, sample_issues: Path
) -> None:
    assert command("collect-issues", "--from", sample_issues, "--out", tmp_path / "runs" / "mine").exit_code == 0
    blocks = re.findall(r"^```console\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = next(block for block in blocks if "publish runs/mine me/mine" in block).splitlines()
    ours = {"stscurate": f"{sys.executable} -m stscurate", "python": sys.executable}
    environment = {**hub.environment(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    told = []
    for line in lines:
        name, _, rest = line.removeprefix("$ ").partition(" ")
        done = subprocess.run(
            f"{ours[name]} {rest}",
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, (line, done.stderr)
        told.append(done.stdout)
    assert hub.dataset("me/mine").tags == {"v1.0": hub.dataset("me/mine").head.oid}
    assert "'ids'" in told[-1] or "id1" in told[-1]
    assert told[-1] == told[1]  # what comes from the Hub is what the folder holds
    assert "me/mine isn't there: it would be made, private." in told[2]
