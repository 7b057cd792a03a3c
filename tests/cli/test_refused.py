"""What the machine refuses is one line, whatever it is: a full output, a pipe, a name that isn't UTF-8, memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

from stscurate.cli.console import session
from tests.conftest import Command

TEXTS = "one two three four five six\n"
RESUME = "Run the same command again: what was finished is kept."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("options", [("show", "texts.txt"), ("show", "texts.txt", "--json"), ("--help",)])
def test_an_output_that_is_full_is_told(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "texts.txt").write_text(TEXTS)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "stscurate", *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, f"stscurate: The disk is full. Free some space. {RESUME}\n")


def test_a_pipe_is_no_file_to_read(tmp_path: Path, command: Command) -> None:
    os.mkfifo(tmp_path / "texts.txt")
    for arguments in (("show", tmp_path / "texts.txt"), ("triplets", "/dev/null", "--out", tmp_path / "run")):
        refused = command(*arguments)
        assert refused.exit_code == 2
        assert "is a pipe or a device, and is read more than once: write it to a file first." in refused.stderr


def test_a_name_that_is_not_utf8_is_told(tmp_path: Path, command: Command) -> None:
    (tmp_path / "texts.txt").write_text(TEXTS)
    refused = command("triplets", tmp_path / "texts.txt", "--out", f"{tmp_path}/caf\udce9", "--json")
    assert refused.exit_code == 2
    line = f"{tmp_path}/caf\\udce9/.partial/triplets/triplets/00000.parquet is no name in UTF-8: rename the file or "
    assert json.loads(refused.stdout)["error"].startswith(line)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")
def test_a_place_that_takes_no_folder_is_told(tmp_path: Path, command: Command) -> None:
    (tmp_path / "texts.txt").write_text(TEXTS)
    refused = command("triplets", tmp_path / "texts.txt", "--out", "/proc/run")
    told = f"stscurate: /proc/run can't be used (No such file or directory): check the place. {RESUME}\n"
    assert (refused.exit_code, refused.stderr) == (1, told)


def test_memory_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, session(as_json=False, quiet=False):
        np.zeros(2**50)
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == (
        f"stscurate: There isn't enough memory for this: give fewer or shorter rows, or free some. {RESUME}\n"
    )


def test_a_reader_that_has_enough_ends_the_command_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text(TEXTS * 20_000)
    reading, writing = os.pipe()
    os.close(reading)
    show = [sys.executable, "-m", "stscurate", "show", "texts.txt", "--rows", "20000"]
    with open(writing, "wb") as pipe:
        done = subprocess.run(show, stdout=pipe, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (1, "")
