"""A disk that runs full under a collection from GitHub: one sentence, and the same command ends at the same bytes."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from tests.conftest import Command
from tests.local_github import LocalGitHub
from tests.sources.collecting import INKPOT, TIDEPOOL, digest

pytestmark = pytest.mark.usefixtures("github_schema")

Grow = Callable[[int], None]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, Grow]]:
    """A small file system, and a way to give it so many KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(folder)]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can't be mounted here")

    def grow(size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}k", str(folder)], check=True)

    yield folder, grow
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_full_at_any_size_loses_nothing(
    address: LocalGitHub, disk: tuple[Path, Grow], command: Command, tmp_path: Path
) -> None:
    """While answers are written, while tables are, and while a refresh lets go of what is gone."""
    folder, grow = disk
    (tmp_path / "repos.txt").write_text(f"{TIDEPOOL}\n{INKPOT}\n")

    def collect(out: Path, *more: str) -> Result:
        return command("collect-issues", "--repos", tmp_path / "repos.txt", "--out", out, *more)

    def fill(*more: str) -> set[str]:
        """Run the command on a disk that grows until it fits; the places where it was full."""
        places: set[str] = set()
        for _ in range(15):
            done = collect(folder / "run", *more)
            if done.exit_code == 0:
                return places
            assert done.exit_code == 1
            told = re.fullmatch(
                r"stscurate: The disk is full(?: while writing (\S+))?\. Free some space\. Run the same command again: "
                r"what was finished is kept\.\n",
                done.stderr,
            )
            assert told, done.stderr
            places.add(Path(told[1]).suffix if told[1] else "answers")
            assert not list(folder.rglob("*.tmp"))
            used = int(subprocess.check_output(["df", "-k", "--output=used", str(folder)], text=True).split()[1])
            grow(used * 3 // 2 + 32)
        raise AssertionError("it never fits")

    assert "answers" in fill()
    collect(tmp_path / "new")
    assert digest(folder / "run")[:2] == digest(tmp_path / "new")[:2]
    address.store.delete((TIDEPOOL, 12))
    for number in (4, 5, 6, 7, 8, 9):
        if number in address.store.repositories[INKPOT].issues:
            address.store.edit((INKPOT, number), body="Longer than before. " * 900)
    assert fill("--refresh")
    collect(tmp_path / "newer")
    assert digest(folder / "run")[:2] == digest(tmp_path / "newer")[:2]
