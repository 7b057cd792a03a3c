from pathlib import Path

import pytest

from stscurate.publishing import publish_folder
from stscurate.store import Run
from tests.publishing.samples import write_run


@pytest.fixture
def card(tmp_path: Path) -> str:
    with Run.open(tmp_path / "demo") as run:
        write_run(run)
        publish_folder(run, tmp_path / "set", licence="CC-BY-4.0", language=["en", "no"])
    return (tmp_path / "set" / "README.md").read_text()
