"""What an installed wheel holds: the package, its definitions, and nothing that shadows another library."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECIPES = list((ROOT / "pipelines").glob("*.py"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_holds_code_and_definitions(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "stscurate").rglob("*.py")}
    assert sources <= names
    assert "stscurate/py.typed" in names
    definitions = {
        f"stscurate/_datasets/{path.relative_to(ROOT / 'datasets').as_posix()}"
        for path in (ROOT / "datasets").rglob("*")
        if path.is_file()
    }
    assert "stscurate/_datasets/github-issues/repositories.toml" in definitions
    assert definitions <= names
    assert {f"stscurate/_pipelines/{path.name}" for path in RECIPES} <= names
    assert {name.split("/")[0] for name in names} == {"stscurate", "stscurate-0.1.0.dist-info"}


def test_definitions_are_found_in_an_unpacked_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    code = (
        "from stscurate.resources import definition, recipes; import stscurate; "
        "print(stscurate.__file__); print(definition('benchmarks/lee-news.toml')); print(*recipes().values())"
    )
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"]
    lines = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    assert lines[0] == str(tmp_path / "stscurate" / "__init__.py")
    assert lines[1] == str(tmp_path / "stscurate" / "_datasets" / "benchmarks" / "lee-news.toml")
    assert lines[2:] == [str(tmp_path / "stscurate" / "_pipelines" / path.name) for path in sorted(RECIPES)]
