"""Local GitHubs to collect from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.local_github import LocalGitHub
from tests.local_github.invented import make_repository
from tests.local_github.limits import FakeClock
from tests.sources.collecting import MADE, TIDEPOOL, collected, digest


@pytest.fixture
def hub(sample_issues: Path) -> Iterator[LocalGitHub]:
    with LocalGitHub(clock=FakeClock()) as hub:
        hub.seed(sample_issues)
        yield hub


@pytest.fixture(scope="session")
def made() -> Any:
    return make_repository(MADE, issues=600, duplicate_rate=0.04)


@pytest.fixture
def large(made: Any) -> Iterator[LocalGitHub]:
    """A repository that is worth a search."""
    with LocalGitHub(clock=FakeClock()) as hub:
        hub.seed(made.issues, marks=made.marks)
        yield hub


@pytest.fixture(scope="session")
def undisturbed(made: Any, sample_issues: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = {}
    for name, size in ((MADE, 40), (TIDEPOOL, 10)):
        folder = tmp_path_factory.mktemp("undisturbed") / "run"
        with LocalGitHub(clock=FakeClock()) as hub:
            hub.seed(made.issues, marks=made.marks)
            hub.seed(sample_issues)
            collected(hub, folder, [name], page_size=size)
            assert 5 <= hub.requests() <= 30
        found[name] = digest(folder)
    return found


@pytest.fixture
def address(sample_issues: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalGitHub]:
    """A local GitHub that the command line asks."""
    with LocalGitHub() as hub:
        hub.seed(sample_issues)
        monkeypatch.setenv("GITHUB_API_URL", hub.url)
        monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret0secret0")
        yield hub
