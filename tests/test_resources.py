from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stscurate.errors import StscurateError
from stscurate.resources import definition

ROOT = Path(__file__).parent.parent


def test_a_source_checkout_reads_its_own_folder() -> None:
    path = definition("prompts/similarity.toml")
    assert path == ROOT / "datasets" / "prompts" / "similarity.toml"
    assert tomllib.loads(path.read_text("utf-8"))["user"]


def test_an_installed_package_reads_what_is_packed_in_it_not_the_library_beside_it(tmp_path: Path) -> None:
    package = tmp_path / "stscurate"
    (package / "_datasets" / "prompts").mkdir(parents=True)
    (package / "_datasets" / "prompts" / "a.toml").write_text("")
    (tmp_path / "datasets" / "prompts").mkdir(parents=True)
    (tmp_path / "datasets" / "prompts" / "a.toml").write_text("")
    for name in ("__init__.py", "errors.py", "resources.py"):
        (package / name).write_bytes((ROOT / "stscurate" / name).read_bytes())
    code = "from stscurate.resources import definition; print(definition('prompts/a.toml'))"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == package / "_datasets" / "prompts" / "a.toml"


def test_a_missing_definition_is_told() -> None:
    with pytest.raises(StscurateError, match=r"lacks its definition prompts/none\.toml: install"):
        definition("prompts/none.toml")
