"""scripts/fetch-schemas with a real shell and no network: it brings files whole, once, and never breaks a check."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "fetch-schemas"
TOOLS = ("bash", "cat", "dirname", "grep", "gzip", "mkdir", "mktemp", "mv", "rm", "tar")
# Packs both files into each package, as `npm pack` would leave it in the working folder.
PACKS = """#!/bin/bash
mkdir -p package/generated
echo schema >package/schema.graphql
echo openapi >package/generated/api.github.com.json
tar -czf packed.tgz package
rm -r package
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, and the only tools it may use in bin/."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    return tmp_path


def fetch(checkout: Path, npm: str | None) -> str:
    (checkout / "bin" / "npm").unlink(missing_ok=True)
    if npm is not None:
        (checkout / "bin" / "npm").write_text(npm)
        (checkout / "bin" / "npm").chmod(0o755)
    command = [str(checkout / "scripts" / "fetch-schemas")]
    path = {"PATH": str(checkout / "bin")}
    return subprocess.run(command, env=path, check=True, capture_output=True, text=True, timeout=30).stdout


def test_it_brings_both_files_and_does_nothing_the_second_time(checkout: Path) -> None:
    assert fetch(checkout, PACKS) == ""
    assert (checkout / ".schemas/graphql-schema/schema.graphql").read_text() == "schema\n"
    assert (checkout / ".schemas/openapi/generated/api.github.com.json").read_text() == "openapi\n"
    assert fetch(checkout, None) == ""


def test_without_npm_or_registry_it_says_so_and_goes_on(checkout: Path) -> None:
    assert fetch(checkout, None).count("npm is missing") == 2
    refused = fetch(checkout, "#!/bin/bash\necho 'npm error code ECONNREFUSED' >&2\nexit 1\n")
    assert refused.count("couldn't fetch") == refused.count("npm error code ECONNREFUSED") == 2
    assert list((checkout / ".schemas").iterdir()) == []
