"""Kept answers: what is deleted or replaced stands in no byte of the file any more."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from stscurate.services.answers import Answers
from tests.conftest import ROOT


def bytes_of(folder: Path) -> bytes:
    """Of the file, its write-ahead log and all else that lies beside it."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def long(text: str) -> bytes:
    """More than a page, so that overflow pages are met too."""
    return (text * 2_000).encode()


def test_what_is_deleted_or_replaced_is_gone_from_the_file_and_its_log(tmp_path: Path) -> None:
    with Answers(tmp_path / "a.sqlite") as answers:
        answers.put("page", {f"k{at}": long(f"kept {at} ") for at in range(30)})
        answers.put("page", {"a": b"short secret", "b": long("long secret "), "c": long("old secret ")})
        answers.put("vote", {"v": b"another kind"})
        assert b"secret" in bytes_of(tmp_path)
        answers.put("page", {"c": b"new"})
        answers.delete(["a", "b", "nowhere"])
        assert b"secret" not in bytes_of(tmp_path)  # while it is open
        assert answers.get("abcv") == {"c": b"new", "v": b"another kind"}
        assert answers.keys("page") == {"c", *(f"k{at}" for at in range(30))}
        assert dict(answers.items("page"))["k7"] == long("kept 7 ")
    assert b"secret" not in bytes_of(tmp_path)


def test_a_file_that_was_emptied_becomes_small(tmp_path: Path) -> None:
    with Answers(tmp_path / "a.sqlite") as answers:
        answers.put("page", {str(at): long("text") for at in range(200)})
        answers.seal()
        full = (tmp_path / "a.sqlite").stat().st_size
        answers.delete(sorted(answers.keys("page"))[1:])
        assert (tmp_path / "a.sqlite").stat().st_size < full / 20
        assert len(dict(answers.items("page"))) == 1


def test_what_was_written_before_secure_deletion_was_on_goes_too(tmp_path: Path) -> None:
    """Of a file that an older version made, pages that it left free hold old text: making it small drops them."""
    with sqlite3.connect(tmp_path / "a.sqlite") as old:
        old.execute("PRAGMA secure_delete=OFF")
        old.execute("CREATE TABLE answers (key TEXT PRIMARY KEY, kind TEXT NOT NULL, value BLOB NOT NULL)")
        old.executemany("INSERT INTO answers VALUES (?, 'page', ?)", [(str(at), long("secret ")) for at in range(9)])
        old.commit()
        old.execute("DELETE FROM answers WHERE key > '2'")
    old.close()
    assert b"secret" in bytes_of(tmp_path)
    with Answers(tmp_path / "a.sqlite") as answers:
        answers.delete(["0", "1", "2"])
    assert b"secret" not in bytes_of(tmp_path)


@pytest.mark.parametrize("stage", ["BEGIN", "DELETE", "COMMIT", "checkpoint", "VACUUM"])
def test_a_kill_while_deleting_leaves_all_or_nothing_and_the_next_call_ends_it(tmp_path: Path, stage: str) -> None:
    killed = f"""
import os, signal, sys
from pathlib import Path
from stscurate.services.answers import Answers
answers = Answers(Path(sys.argv[1]))
answers.put("page", {{str(at): b"secret" * 2_000 for at in range(20)}})
answers._connection.set_trace_callback(
    lambda statement: os.kill(os.getpid(), signal.SIGKILL) if {stage!r} in statement else None
)
answers.delete(map(str, range(20)))
"""
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path / "a.sqlite")], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path)
    with Answers(tmp_path / "a.sqlite") as answers:
        assert len(answers.keys("page")) in (0, 20)
        answers.delete(map(str, range(20)))
        assert b"secret" not in bytes_of(tmp_path)


@pytest.mark.parametrize("synced", [True, False])
def test_what_was_put_survives_a_kill_whether_it_waits_for_the_disk_or_not(tmp_path: Path, synced: bool) -> None:
    killed = f"""
import os, signal, sys
from pathlib import Path
from stscurate.services.answers import Answers
answers = Answers(Path(sys.argv[1]), synced={synced})
for at in range(3):
    answers.put("page", {{str(at): b"kept"}})
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path / "a.sqlite")], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    with Answers(tmp_path / "a.sqlite") as answers:
        assert answers.get(["0", "1", "2"]) == {"0": b"kept", "1": b"kept", "2": b"kept"}
