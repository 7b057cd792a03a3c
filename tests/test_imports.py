"""The house: imports go down only, and the command line starts without the heavy libraries."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "stscurate"
# Each part of the ground may import those before it.
GROUND = [
    "errors",
    "wording",
    "progress",
    "resources",
    "records",
    "disk",
    "manifest",
    "store",
    "artifacts",
    "exports",
    "smart",
    "files",
    "cells",
    "roles",
    "tables",
    "ratings",
    "nli",
]
STAGES = {
    "annotators",
    "audit",
    "diffing",
    "doctor",
    "ensemble",
    "evaluation",
    "mining",
    "pairing",
    "publishing",
    "reporting",
    "sampling",
    "sources",
    "training",
    "triplets",
}
HEAVY = ["datasets", "openai", "pyarrow", "scipy", "sentence_transformers", "sklearn", "torch", "transformers"]


def rank(part: str) -> int:
    """How high a part of the package stands: ground, services, methods, stages, the command line."""
    if part in GROUND:
        return GROUND.index(part)
    if part in STAGES:
        return 102
    return {"services": 100, "methods": 101, "cli": 103, "__main__": 104}[part]


def imported_parts(path: Path) -> set[str]:
    """The parts of stscurate that a file imports anywhere, also inside functions."""
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            names = [node.module or ""]
            if node.module == "stscurate":
                names = [f"stscurate.{alias.name}" for alias in node.names]
        else:
            continue
        parts |= {name.split(".")[1] for name in names if name.startswith("stscurate.")}
    return parts - {"__version__"}


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_go_down_only(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for other in imported_parts(path) - {own}:
        assert rank(other) < rank(own), f"{path} imports stscurate.{other}, which doesn't stand below {own}"


def test_every_part_has_its_place() -> None:
    parts = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert parts == {*GROUND, *STAGES, "services", "methods", "cli", "__main__"}


def test_the_command_line_loads_no_heavy_library() -> None:
    code = f"import sys, stscurate.cli; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_but_the_command_line_prints() -> None:
    for path in FILES:
        if path.relative_to(PACKAGE).parts[0] != "cli":
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            printing = [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
            assert not printing, f"{path} prints in line {printing}"


def test_no_python_stands_under_datasets() -> None:
    """A package there would shadow the Hugging Face library of that name."""
    assert not list((PACKAGE.parent / "datasets").rglob("*.py"))
