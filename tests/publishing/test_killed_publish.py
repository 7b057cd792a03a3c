import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stscurate.publishing import publish_folder
from stscurate.store import Run
from tests.publishing.samples import files, write_run

# Publishes, and kills itself at the CALLS-th call of a function: SIGKILL, as a full memory or a user would.
CODE = """
import os, pathlib, shutil, signal, sys
from pathlib import Path
from stscurate.publishing import publish_folder
from stscurate.store import Run

owner, name = {"fsync": (os, "fsync"), "rename": (Path, "rename"), "rmtree": (shutil, "rmtree")}[sys.argv[3]]
true_function, left = getattr(owner, name), int(sys.argv[4])

def deadly(*arguments, **options):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return true_function(*arguments, **options)

setattr(owner, name, deadly)
with Run.open(Path(sys.argv[1])) as run:
    publish_folder(run, Path(sys.argv[2]), licence="mit")
"""


@pytest.mark.parametrize(
    ("function", "calls", "whole"),
    [
        ("fsync", 2, False),  # the first file of rows
        ("fsync", 9, False),  # some are written
        ("fsync", 16, False),  # the card or the manifest
        ("rename", 1, False),  # all is written, nothing in its place
        ("rmtree", 3, True),  # in its place; the work folder isn't removed yet
    ],
)
def test_killed_publish_leaves_nothing_or_all_and_goes_on(
    tmp_path: Path, function: str, calls: int, whole: bool
) -> None:
    with Run.open(tmp_path / "run") as run:
        write_run(run)
        publish_folder(run, tmp_path / "unbroken", licence="mit")
    arguments = [str(tmp_path / "run"), str(tmp_path / "set"), function, str(calls)]
    killed = subprocess.run([sys.executable, "-c", CODE, *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "set").exists() == whole
    with Run.open(tmp_path / "run") as run:
        entry = publish_folder(run, tmp_path / "set", licence="mit")
    assert entry.fresh != whole
    assert files(tmp_path / "set") == files(tmp_path / "unbroken")
