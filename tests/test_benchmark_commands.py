"""The commands beside the figures of benchmarks/README.md are ones that their scripts take."""

import ast
import re
import shlex

import pytest

from tests.conftest import ROOT

TOLD = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
SPANS = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", TOLD)]
COMMANDS = [span for span in SPANS if "benchmarks/" in span and " " in span]


def options(script: str) -> set[str]:
    """The option names that a script adds to its parser, itself or by a module beside it."""
    tree = ast.parse((ROOT / script).read_text("utf-8"))
    found = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    beside = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    shared = {"benchmarks.members"} & set(beside)
    return {text for text in found if re.fullmatch(r"--[a-z-]+", text)} | {
        name for module in shared for name in options(f"{module.replace('.', '/')}.py")
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_script_is_there_and_takes_its_options(command: str) -> None:
    words = shlex.split(command)
    at = next(place for place, word in enumerate(words) if word.startswith("benchmarks/"))
    assert words[at - 1] == "python"
    given = {word.split("=")[0] for word in words[at + 1 :] if word.startswith("--")}
    assert given <= options(words[at])


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.name)
def test_every_script_is_told_of_or_serves_one_that_is(path: object) -> None:
    name = str(path).rsplit("/", 1)[-1]
    others = [other.read_text("utf-8") for other in (ROOT / "benchmarks").glob("*.py") if other.name != name]
    assert f"benchmarks/{name}" in TOLD or any(name in text or f"benchmarks.{name[:-3]} " in text for text in others)
