"""What the tests of the collector share: a collection from a local GitHub, and what came of it."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from stscurate.disk import fingerprint
from stscurate.manifest import Entry
from stscurate.services.answers import Answers
from stscurate.services.github import GitHub
from stscurate.sources.github import collect_from_github
from stscurate.sources.lists import Listed
from stscurate.store import Run
from tests.local_github import LocalGitHub

TIDEPOOL, INKPOT = "lanternfish-db/tidepool", "quillworks-tty/inkpot"
MADE = "made/up"
LABELS = ("duplicate",)
Rows = dict[str, dict[str, Any]]


def client(hub: LocalGitHub, answers: Answers | None = None, **options: Any) -> GitHub:
    clock: Any = hub.clock
    return GitHub("t", **{"url": hub.url, "answers": answers, "clock": clock.time, "sleep": clock.sleep, **options})


def collected(
    hub: LocalGitHub,
    folder: Path,
    names: list[str],
    *,
    page_size: int = 100,
    timeout: float = 60.0,
    again: int = 0,
    **options: Any,
) -> Entry:
    """again: the how-manieth time."""
    names_of = ["", *map(str, range(1, again + 1))]
    follows = {"collection": names_of[again], "previous": names_of[again - 1] if again else None}
    listed = [Listed(name, LABELS) for name in names]
    with (
        Run.open(folder, replace=bool(again)) as run,
        Answers(folder / "answers.sqlite") as answers,
        # One request at a time, so that "the k-th request" is the same one each time.
        client(hub, answers, page_size=page_size, timeout=timeout, concurrency=1, **follows) as github,
    ):
        return collect_from_github(run, listed, github, **options)


def digest(folder: Path) -> tuple[str, str, str]:
    return fingerprint(folder / "issues"), fingerprint(folder / "links"), (folder / "manifest.json").read_text()


def issues_of(folder: Path) -> Rows:
    return {f"{row['repository']}#{row['number']}": row for row in Run(folder).table("issues").to_pylist()}


def links_of(folder: Path) -> dict[str, list[tuple[str, str, int]]]:
    """duplicate -> [(canonical, evidence, tier)]"""
    found: dict[str, list[tuple[str, str, int]]] = {}
    for row in Run(folder).table("links").to_pylist():
        canonical = f"{row['canonical_repository']}#{row['canonical']}"
        found.setdefault(f"{row['repository']}#{row['duplicate']}", []).append(
            (canonical, row["evidence"], row["tier"])
        )
    return found


def everything(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def words_in(folder: Path) -> str:
    """All bytes of a run, and all texts of its tables too, which are packed; in lower case."""
    tables = [json.dumps(pq.read_table(path).to_pylist(), default=str) for path in folder.rglob("*.parquet")]
    return "\n".join(tables).lower() + everything(folder).decode("latin-1").lower()
