"""Every mistake of the user's gets one line with the place and the mend, exit code 2, and leaves nothing in the way."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command

PAIRS = "text1,text2,score\nThe file is empty.,An empty file.,0.9\nIt crashes.,It rains.,0.1\nA cat.,A dog.,0.4\n"
FAULTS = {
    "gone.csv": (None, "doesn't exist: check the path"),
    "empty.csv": (b"", "is empty: it needs at least one row"),
    "columns.csv": (b"a,b\n1,2\n", "it has a, b. Name them with --columns"),
    "type.jsonl": (b'{"text1": 1, "text2": "b"}\n', "line 1: text1 holds 1, which isn't text"),
    "half.parquet": (b"PAR1\0\0", "isn't a whole Parquet file"),
    "cut.jsonl": (b'{"text1": "a", "text2": "b"}\n{"text1":', "line 2 isn't valid JSON"),
    "surrogate.jsonl": (b'{"text1": "\\udc00", "text2": "b"}\n', "line 1: text1 holds half of a surrogate pair"),
    "score.csv": (b"text1,text2,score\na,b,3\n", "line 2: score '3' isn't within 0 to 1: give the file's scale"),
    "label.csv": (b"text1,text2,label\na,b,2\n", "line 2: label '2': labels are 0 or 1"),
    "id.csv": (b"id,text1,text2\nx,a,b\nx,c,d\n", "line 3: id x stood already in line 2"),
}


def one_line(text: str) -> str:
    """The error, which is one line of its own."""
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("stscurate: ")
    return lines[0]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stage", ["annotate", "train", "evaluate"])
def test_a_faulty_file_of_pairs(tmp_path: Path, command: Command, tiny_model: Path, fault: str, stage: str) -> None:
    content, message = FAULTS[fault]
    path = tmp_path / fault
    if content is not None:
        path.write_bytes(content)
    out = tmp_path / "out"
    arguments = {
        "annotate": ("annotate", path, "--llm", f"embedding:{tiny_model}", "--out", out),
        "train": ("train", "angle", "--data", path, "--model", tiny_model, "--out", out),
        "evaluate": ("evaluate", tiny_model, "--set", path, "--out", out),
    }[stage]
    result = command(*arguments)
    assert result.exit_code == 2
    if (fault, stage) != ("gone.csv", "evaluate"):  # there it may be meant as a benchmark's name
        assert message in one_line(result.stderr)
    assert not out.exists()


@pytest.mark.parametrize("fault", ["gone.csv", "empty.csv", "half.parquet", "cut.jsonl", "surrogate.jsonl"])
@pytest.mark.parametrize("stage", ["triplets", "sample-pairs"])
def test_a_faulty_file_of_texts(tmp_path: Path, command: Command, fault: str, stage: str) -> None:
    content, message = FAULTS[fault]
    path = tmp_path / fault
    if content is not None:
        path.write_bytes(content.replace(b"text1", b"text").replace(b', "text2": "b"', b""))
    result = command(stage, path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert message.replace("text1", "text") in one_line(result.stderr)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.jsonl", None, "doesn't exist"),
        ("empty.jsonl", b"", "has no issue in it"),
        ("cut.jsonl", b'{"number": 1', "line 1"),
        ("rows.jsonl", b'{"colour": "red"}\n', "line 1"),
    ],
)
def test_a_faulty_dump_of_issues(
    tmp_path: Path, command: Command, name: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    result = command("collect-issues", "--from", path, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in one_line(result.stderr)
    assert not (tmp_path / "run" / "manifest.json").exists()


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


def test_an_unknown_model(tmp_path: Path, command: Command, pairs: Path) -> None:
    for arguments in (
        ("train", "angle", "--data", pairs, "--model", "./nowhere", "--out", tmp_path / "out"),
        ("evaluate", "./nowhere", "--set", pairs),
        ("annotate", pairs, "--llm", "local:./nowhere", "--out", tmp_path / "run"),
        ("annotate", pairs, "--llm", "embedding:./nowhere", "--out", tmp_path / "run"),
    ):
        result = command(*arguments)
        assert result.exit_code == 2
        assert "There is no model at ./nowhere: check the path." in one_line(result.stderr)


def test_a_folder_that_holds_no_model(tmp_path: Path, command: Command, pairs: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    result = command("train", "angle", "--data", pairs, "--model", tmp_path / "folder", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "folder holds no model" in one_line(result.stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pairs.csv"]


def test_an_unknown_annotator_lists_the_forms(tmp_path: Path, command: Command, pairs: Path) -> None:
    result = command("annotate", pairs, "--llm", "gpt", "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "--llm gpt names no annotator: give openai:MODEL" in one_line(result.stderr)
    assert not (tmp_path / "run").exists()


def test_an_unreachable_endpoint(tmp_path: Path, command: Command, pairs: Path) -> None:
    result = command("annotate", pairs, "--llm", "http://127.0.0.1:9/v1#m", "--out", tmp_path / "run")
    assert result.exit_code == 1
    assert "127.0.0.1:9" in one_line(result.stderr)


def test_other_settings_name_the_difference_and_the_mend(tmp_path: Path, command: Command) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("one two three four five six\nseven eight nine ten eleven twelve\n")
    assert command("triplets", texts, "--out", tmp_path / "run").exit_code == 0
    result = command("triplets", texts, "--out", tmp_path / "run", "--seed", 1)
    assert result.exit_code == 2
    assert "(seed was 0, now 1). Name another place to keep both, or add --yes" in one_line(result.stderr)
    assert command("triplets", texts, "--out", tmp_path / "run", "--seed", 1, "--yes").exit_code == 0


def test_json_carries_the_error_too(tmp_path: Path, command: Command) -> None:
    import json

    result = command("triplets", tmp_path / "gone.txt", "--out", tmp_path / "run", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["exit_code"]) == (2, 2)
    assert found["error"] == one_line(result.stderr).removeprefix("stscurate: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ratios", "0.2"), "--ratios 0.2: give 2 numbers, as in 0.2,0.4"),
        (("--ratios", "0.4,0.2"), "don't nest"),
        (("--tokenizer", "./nowhere"), "There is no model at ./nowhere"),
    ],
)
def test_options_of_triplets(tmp_path: Path, command: Command, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "texts.txt").write_text("one two three four five six\n")
    result = command("triplets", tmp_path / "texts.txt", "--out", tmp_path / "run", *arguments)
    assert result.exit_code == 2
    assert message in one_line(result.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("gone.py",),
            "gone.py: check the path, or take one of ablate_angle, ablate_masks, ablate_pooling, github_issues",
        ),
        (("texts.txt",), "texts.txt isn't a Python file (*.py)"),
        (("empty.py",), "has no function `recipe`"),
        (("good.py", "--set", "color=red"), "--set color=red: give NAME=VALUE with a NAME of size, fast"),
        (("good.py", "--set", "size=big"), "--set size=big: 'big' isn't int"),
        (
            ("good.py", "--set", "fast=False"),
            "--set fast=False: the recipe takes a <class 'bool'>, and --set gives str",
        ),
        (("broken.py",), "broken.py can't be loaded (ModuleNotFoundError: No module named 'nowhere')"),
    ],
)
def test_recipes_that_cannot_be_run(tmp_path: Path, command: Command, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "texts.txt").write_text("a\n")
    (tmp_path / "broken.py").write_text("import nowhere\n")
    (tmp_path / "good.py").write_text("def recipe(run, *, size: int = 1, fast: bool = False):\n    yield from ()\n")
    result = command("run", tmp_path / arguments[0], "--out", tmp_path / "run", *arguments[1:])
    assert result.exit_code == 2
    assert message in one_line(result.stderr)


def test_a_place_where_no_folder_can_be(tmp_path: Path, command: Command, pairs: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    texts = tmp_path / "texts.txt"
    texts.write_text("one two three four five six\n")
    for place in (pairs / "run", tmp_path / "loop", tmp_path / ("n" * 300)):
        result = command("triplets", texts, "--out", place)
        assert result.exit_code == 2
        assert f"{place} can't be a file or folder here" in one_line(result.stderr)


def test_a_run_that_is_not_there_is_not_made(tmp_path: Path, command: Command) -> None:
    gone = tmp_path / "gone"
    for arguments, message in (
        (("publish", gone, "--to", tmp_path / "set"), f"There is no run {gone}"),
        (("ensemble", gone), f"There is no run {gone}"),
        (("annotate", gone, "--llm", "embedding:m"), f"{gone} doesn't exist: give a run"),
    ):
        result = command(*arguments)
        assert result.exit_code == 2
        assert message in one_line(result.stderr)
        assert not gone.exists()


def test_yes_never_takes_a_run_for_a_model(tmp_path: Path, command: Command, pairs: Path, tiny_model: Path) -> None:
    run = tmp_path / "run"
    assert command("annotate", pairs, "--llm", f"embedding:{tiny_model}", "--out", run).exit_code == 0
    result = command("train", "angle", "--data", run, "--model", tiny_model, "--out", run, "--yes")
    assert result.exit_code == 2
    assert "holds files that aren't a result of train" in one_line(result.stderr)
    assert (run / "votes").is_dir()


def test_a_damaged_file_of_answers(tmp_path: Path, command: Command, pairs: Path, tiny_model: Path) -> None:
    run = tmp_path / "run"
    assert command("annotate", pairs, "--llm", f"embedding:{tiny_model}", "--out", run).exit_code == 0
    (run / "answers.sqlite").write_bytes(b"junk" * 1000)
    result = command("annotate", run, "--llm", f"other=embedding:{tiny_model}", "--yes")
    assert result.exit_code == 1
    assert "A file of answers (*.sqlite) can't be used (file is not a database)" in one_line(result.stderr)


def run_cli(*arguments: object, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own; limit: the size in bytes that its files may reach."""

    def prepare() -> None:
        if limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "stscurate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=prepare, check=False)


def many_texts(path: Path) -> Path:
    words = [f"{i * 7919 % 100_003:x}" for i in range(60_000)]
    path.write_text("".join(" ".join(words[i : i + 12]) + "\n" for i in range(0, len(words), 12)))
    return path


def test_a_full_disk_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(disk)]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can't be mounted here")
    try:
        texts = many_texts(tmp_path / "texts.txt")
        result = run_cli("triplets", texts, "--out", disk / "run")
        assert result.returncode == 1
        assert "The disk is full" in one_line(result.stderr)
        assert "Run the same command again: what was finished is kept." in result.stderr
        assert not list(disk.rglob("*.tmp"))
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        assert run_cli("triplets", texts, "--out", disk / "run").returncode == 0
        assert run_cli("triplets", texts, "--out", tmp_path / "unbroken").returncode == 0
        shards = sorted((tmp_path / "unbroken" / "triplets").iterdir())
        assert len(shards) == 3
        for shard in shards:
            assert (disk / "run" / "triplets" / shard.name).read_bytes() == shard.read_bytes()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_limit_of_file_size_is_told(tmp_path: Path) -> None:
    result = run_cli("triplets", many_texts(tmp_path / "t.txt"), "--out", tmp_path / "run", limit=50_000)
    assert result.returncode == 1
    assert "above the size allowed here" in one_line(result.stderr)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("train", "angel"), "No such command 'angel'"),
        (("evaluate", "m", "--sett", "x"), "No such option: --sett"),
        (("evaluate", "m", "--set", "x", "--resamples", "3"), "Invalid value for '--resamples'"),
        (("triplets",), "Missing argument 'texts'"),
    ],
)
def test_what_is_mistyped_is_one_line_and_one_object(arguments: tuple[str, ...], told: str) -> None:
    done = run_cli(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert one_line(done.stderr).startswith(f"stscurate: {told}")
    found = json.loads(run_cli(*arguments, "--json").stdout)
    assert found["exit_code"] == 2
    assert found["error"].startswith(told)


def test_without_any_argument_the_help_is_shown() -> None:
    done = run_cli("audit")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ")
    assert "leaks" in done.stderr
