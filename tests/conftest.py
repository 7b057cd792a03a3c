"""What all tests share: the command line in this process, the sample, and GitHub's published schemas."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

ROOT = Path(__file__).parent.parent

Command = Callable[..., Result]

# A shell that runs the tests in the background has Ctrl-C ignored, which some of them press.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def command() -> Command:
    """`command("collect-issues", "--from", path, ...)`: the exit code, standard output and standard error apart."""
    from stscurate.cli import app

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)

    return run


@pytest.fixture(scope="session")
def sample_issues() -> Path:
    """The issues written for this project."""
    return ROOT / "datasets" / "github-issues" / "sample.jsonl"


@pytest.fixture(scope="session")
def github_schema() -> Path:
    """GitHub's GraphQL schema, which the local GitHub answers by. A skip where it can't be had, a failure in CI."""
    from tests.local_github.schema import SDL

    return _fetched(SDL)


@pytest.fixture(scope="session")
def github_openapi() -> Path:
    """GitHub's description of its REST endpoints, as `github_schema`."""
    from tests.local_github.schema import OPENAPI

    return _fetched(OPENAPI)


def _fetched(schema: Path) -> Path:
    if not schema.exists():
        reason = f"{schema.relative_to(ROOT)} is missing: scripts/fetch-schemas brings it where there is npm"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return schema


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random embedding model that loads and learns."""
    from tests.tiny_models import tiny_sentence_transformer

    return tiny_sentence_transformer(tmp_path_factory.mktemp("models") / "tiny-encoder")


@pytest.fixture(scope="session")
def tiny_llm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random causal language model of the LLaMA architecture."""
    from tests.tiny_models import tiny_causal_lm

    return tiny_causal_lm(tmp_path_factory.mktemp("models") / "tiny-llm")
