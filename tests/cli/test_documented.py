"""What README and docs/ say of the command line holds, and what the command line has stands there."""

import ast
import importlib
import json
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from stscurate import __version__
from stscurate.cli import app
from tests.conftest import ROOT, Command

README = "\n".join(path.read_text("utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))))
Call = tuple[object, ...]
PAIRS = "text1,text2,score\nThe file is empty.,An empty file.,0.9\nIt crashes.,It rains.,0.1\nA cat.,A dog.,0.4\n"


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """("train", "angle") and the command itself, for each command there is."""
    group = group or typer.main.get_command(app)
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, (*path, name))
        else:
            yield (*path, name), found


COMMANDS = dict(commands())


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def console_lines() -> list[list[str]]:
    """The words of each command in the README's console blocks, and of those that stand in its prose with options."""
    lines = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    lines += [" ".join(code.split()) for code in re.findall(r"`(stscurate [^`]* --[^`]*)`", prose)]
    return [shlex.split(line) for line in lines]


OURS = [words[1:] for words in console_lines() if words[0] == "stscurate"]


def split_path(words: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """The command's path, and its arguments."""
    length = next(size for size in (1, 2) if tuple(words[:size]) in COMMANDS)
    return tuple(words[:length]), words[length:]


PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").iterdir())]


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text("utf-8"))
    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []


def test_every_page_is_told_of_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [p.name for p in (ROOT / "docs").iterdir() if f"(docs/{p.name})" not in readme] == []


def test_every_command_stands_in_the_readme() -> None:
    assert len(COMMANDS) > 10
    for path in COMMANDS:
        name = re.escape(path[-1])
        written = rf"stscurate {' '.join(path[:-1])} ?[\w|-]*\b{name}\b"  # `stscurate train angle|arccse` is two
        assert re.search(written, README), f"the README lacks stscurate {' '.join(path)}"


def test_every_command_of_the_readme_is_one_that_can_be_given() -> None:
    assert len(OURS) > 10
    for words in OURS:
        path, arguments = split_path(words)
        COMMANDS[path].make_context(" ".join(path), arguments)  # a usage error is raised


def test_recipes_of_the_readme_take_what_is_set_there(command: Command, tmp_path: Path) -> None:
    """A NAME that the recipe lacks is a mistake; here the good ones are followed by one that no recipe has."""
    runs = [words for words in OURS if words[0] == "run"]
    assert runs
    for words in runs:
        given = words[1:]
        given[given.index("--out") + 1] = str(tmp_path / "run")
        result = command("run", *given, "--set", "nothing=1")
        assert (result.exit_code, "--set nothing=1: give NAME=VALUE" in result.stderr) == (2, True)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_explained(path: tuple[str, ...]) -> None:
    found = COMMANDS[path]
    assert found.help
    for parameter in found.params:
        assert parameter.help, f"{' '.join(path)} {parameter.name}"
        shown = parameter.get_help_record(found.make_context("x", [], resilient_parsing=True))
        assert parameter.param_type_name == "argument" or shown is None or "list[" not in shown[0], shown


def test_options_that_the_readme_promises_everywhere() -> None:
    promised = re.search(r"All commands take ([^;.]*)", README)
    assert promised
    options = re.findall(r"`(--\w+)`", promised[1])
    assert options
    for path, found in COMMANDS.items():
        own = {option for parameter in found.params for option in parameter.opts}
        assert set(options) <= own, f"{' '.join(path)} lacks some of {options}"


def test_other_commands_of_the_readme_name_what_is_there() -> None:
    for words in console_lines():
        if words[:2] == ["python", "-c"]:
            ast.parse(words[2])
        elif words[0].startswith("scripts/"):
            assert (ROOT / words[0]).stat().st_mode & 0o100
        elif words[:3] == ["pip", "install", "-c"]:
            assert (ROOT / words[3]).is_file()
        else:
            assert words[0] in ("git", "stscurate"), words


def test_python_of_the_readme_parses_and_its_names_exist() -> None:
    snippets = blocks("python")
    assert snippets
    for snippet in snippets:
        for node in ast.walk(ast.parse(snippet)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    assert hasattr(importlib.import_module(node.module), alias.name)


def test_help_answers_in_under_half_a_second() -> None:
    """Of the processor's time: the clock on the wall counts whatever else this machine does."""
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run([sys.executable, "-m", "stscurate", "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        assert b"Commands:" in result.stdout
    assert 0 < min(seconds) < 0.5


def test_version(command: Command) -> None:
    assert command("--version").stdout == f"stscurate {__version__}\n"


@pytest.fixture(scope="module")
def quick(
    tmp_path_factory: pytest.TempPathFactory, command: Command, sample_issues: Path, tiny_model: Path
) -> dict[str, Call]:
    """A call of each command that takes no more than a second or two, which can be repeated."""
    folder = tmp_path_factory.mktemp("quick")
    pairs, run = folder / "pairs.csv", folder / "run"
    pairs.write_text(PAIRS)
    many = folder / "many.txt"
    many.write_text("".join(f"{'cat ' * (number % 7)}{number}\n" for number in range(400)))
    annotate = ("annotate", pairs, "--llm", f"embedding:{tiny_model}", "--out", run)
    train = ("--model", tiny_model, "--out")
    calls: dict[str, Call] = {
        "collect-issues": ("collect-issues", "--from", sample_issues, "--out", folder / "issues"),
        "sample-pairs": ("sample-pairs", pairs, "--model", tiny_model, "--out", folder / "sampled"),
        "annotate": annotate,
        "annotate --dry-run": (*annotate, "--dry-run"),
        "ensemble": ("ensemble", run),
        "triplets": ("triplets", sample_issues, "--columns", "text=body", "--out", folder / "triplets"),
        "train angle": ("train", "angle", "--data", pairs, *train, folder / "angle"),
        "train arccse": ("train", "arccse", "--data", folder / "triplets", *train, folder / "arccse"),
        "evaluate": ("evaluate", tiny_model, "--set", pairs),
        "evaluate --out": ("evaluate", tiny_model, "--set", pairs, "--out", folder / "evaluated"),
        "publish": ("publish", run, "--to", folder / "published", "--licence", "mit"),
        "audit leaks": ("audit", "leaks", f"a={pairs}", f"b={pairs}", "--near-duplicates", 0.8),
        "audit leaks --out": ("audit", "leaks", f"a={pairs}", f"b={pairs}", "--out", folder / "leaks.parquet", "--yes"),
        "audit size-bias": ("audit", "size-bias", pairs, "--model", tiny_model),
        "audit size-bias --out": ("audit", "size-bias", pairs, "--model", tiny_model, "--out", folder / "sizes"),
        "mine": ("mine", pairs, "--model", tiny_model, "--margin", 0, "--out", folder / "mined"),
        "audit calibrate": ("audit", "calibrate", many, "--model", tiny_model, "--out", folder / "calibration"),
        "show RUN": ("show", run),
        "show FILE": ("show", pairs),
        "diff": ("diff", run, folder / "sampled"),
        "report": ("report", run, "--out", folder / "report.html"),
        "doctor": ("doctor",),
        "trace": ("trace", folder / "issues", "lanternfish-db/tidepool#12"),
        "publish by ids": ("publish", folder / "issues", "--to", folder / "ids", "--licence", "other"),
        "rehydrate": ("rehydrate", folder / "ids", "--from", sample_issues, "--out", folder / "again"),
    }
    for call in calls.values():
        assert command(*call).exit_code == 0
    return calls


NAMES = ["collect-issues", "sample-pairs", "annotate", "annotate --dry-run", "ensemble", "triplets", "train angle"]
NAMES += ["train arccse", "evaluate", "evaluate --out", "publish", "show RUN", "show FILE"]
NAMES += ["audit leaks", "audit leaks --out", "diff", "report", "doctor", "trace", "publish by ids", "rehydrate"]
NAMES += ["audit size-bias", "audit size-bias --out"]
NAMES += ["mine", "audit calibrate"]


@pytest.mark.parametrize("name", NAMES)
def test_json_is_one_object_and_nothing_else(
    command: Command, quick: dict[str, Call], name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Made anew as well as found finished; also what a library may write past Python's streams."""
    for call in (quick[name], elsewhere(quick[name], tmp_path)):
        result = command(*call, "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.count("\n") == 1
        found = json.loads(result.stdout)
        assert isinstance(found, dict)
        assert found
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", NAMES)
def test_quiet_prints_nothing(
    command: Command, quick: dict[str, Call], name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for call in (quick[name], elsewhere(quick[name], tmp_path)):
        result = command(*call, "--quiet")
        assert (result.exit_code, result.output) == (0, "")
    assert capfd.readouterr() == ("", "")


def elsewhere(call: Call, folder: Path) -> Call:
    """The same call with its result in a new folder, so that there is work to do."""
    given = list(call)
    for option in ("--out", "--to"):
        if option in given:
            given[given.index(option) + 1] = folder / "new"
    return tuple(given)


def test_json_says_of_each_stage_what_a_program_needs(command: Command, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("one two three four five six\ntoo short\n")
    (stage,) = json.loads(command("triplets", tmp_path / "texts.txt", "--out", tmp_path / "run", "--json").stdout)[
        "stages"
    ]
    assert (stage["stage"], stage["fresh"], stage["place"]) == ("triplets", True, str(tmp_path / "run" / "triplets"))
    assert (stage["rows_in"], stage["dropped"], stage["outputs"]["triplets"]["rows"]) == (2, {"too_short": 1}, 1)
