"""A look at what publishing would do: each gate with what it finds, each file with its rows, bytes and state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stscurate.disk import fingerprint
from stscurate.manifest import read_manifest
from stscurate.publishing.gates import Found, check_names, look
from stscurate.publishing.preparing import card_there, prepare
from stscurate.publishing.writing import measure_layout
from stscurate.store import Run


@dataclass(frozen=True)
class File:
    """A file of the set: rows, bytes and SHA-256 (0 and "" where it goes), and what happens to it."""

    path: str
    rows: int
    bytes: int
    sha256: str
    state: str  # added, changed, same, removed


@dataclass(frozen=True)
class Review:
    """What would be published."""

    gates: Sequence[Found]
    accepted: frozenset[str]
    files: Sequence[File]

    @property
    def refused(self) -> list[Found]:
        """The gates that would refuse."""
        return [found for found in self.gates if found.count and found.gate.name not in self.accepted]

    def gate_rows(self) -> list[dict[str, Any]]:
        """The gates as a table: name, what it looks for, state, findings."""
        return [
            {
                "gate": found.gate.name,
                "looks for": found.gate.looks_for,
                "state": self._state(found),
                "findings": found.count,
            }
            for found in self.gates
        ]

    def _state(self, found: Found) -> str:
        if not found.looked:
            return "not asked for"
        return "refuses" if found in self.refused else "accepted" if found.count else "passes"


def review(
    run: Run,
    folder: Path | None = None,
    *,
    before: Callable[[], Mapping[str, Any] | None] | None = None,
    **options: Any,
) -> Review:
    """What `publish_folder(run, folder, **options)` would find and write; nothing is written.

    Files are made in memory, a row group at a time, so that their sizes and hashes are those they will have; the card
    isn't among them. Errors as of `publish_folder`, but for gates, which are told.
    """
    accept = options.get("accept", ())
    check_names(accept)
    card = before() if before else card_there(folder) if folder else None
    with run.scratch("publish") as scratch:
        ready = prepare(run, scratch, **options)
        texts = not ready.by_ids
        gates = look(ready.pairs, ready.triplets, scratch, texts=texts, published=ready.published, before=card)
        measured = [one for layout in ready.published for one in measure_layout(layout)]
    files = [File(one.path, one.rows, one.size, one.sha256, _state(folder, one.path, one.sha256)) for one in measured]
    return Review(gates, frozenset(accept), [*files, *_removed(folder, {file.path: file for file in files})])


def _state(folder: Path | None, path: str, sha256: str) -> str:
    place = folder / path if folder else None
    if place is None or not place.is_file():
        return "added"
    return "same" if fingerprint(place) == sha256 else "changed"


def _removed(folder: Path | None, kept: Mapping[str, File]) -> list[File]:
    """The files of an earlier publish that there would be no more."""
    if folder is None or "publish" not in read_manifest(folder):
        return []
    there = sorted(path.relative_to(folder).as_posix() for path in (folder / "data").rglob("*.parquet"))
    return [File(path, 0, 0, "", "removed") for path in there if path not in kept]
