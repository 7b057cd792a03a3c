"""Which files are GH Archive's, told by their content, and which hours are missing between them."""

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from stscurate.errors import InputError
from stscurate.records import Tally
from stscurate.sources.gharchive.lines import Hour

_NAME = re.compile(r"(\d{4})-(\d\d)-(\d\d)-(\d{1,2})\.json(?:\.gz|\.xz|\.bz2)?")
_PACKED = (".gz", ".xz", ".bz2")
_KINDS = (".json", *(f"{kind}{packed}" for kind in (".json", ".ndjson", ".jsonl") for packed in _PACKED))
_OF_DUMPS = (".json", ".jsonl", ".ndjson")
_SMALL = 1 << 22  # bytes of a file that is read whole to know what it is
_HOUR = timedelta(hours=1)


def archive_files(path: Path) -> list[Path]:
    """The files of an archive, in the order of their hours, then of their names. InputError without any."""
    if not path.exists():
        raise InputError(f"{path} doesn't exist: check the path.")
    if path.is_file():
        return [path]
    found = [file for file in _files(path) if file.name.endswith(_KINDS)]
    if not found:
        raise InputError(f"{path} has no file of GH Archive in it (2015-01-01-15.json.gz): check the path.")
    return sorted(found, key=lambda file: (hour_of(file) or datetime.max, file.relative_to(path).as_posix()))


def is_archive(path: Path) -> bool:
    """Whether the first file with anything in it begins with an event of GH Archive, by content, not by its name.

    Where all are empty their names decide.
    """
    if not path.exists():
        return False
    files = [path] if path.is_file() else [file for file in _files(path) if file.name.endswith(_KINDS)]
    for file in files:
        if found := _begins_with(file):
            return found == "event"
    return bool(files) and all(hour_of(file) for file in files)


def is_mixed(path: Path) -> tuple[Path, Path] | None:
    """A file of hours and one of issues, where a folder holds both; the first file of each ending tells for all."""
    if not path.is_dir():
        return None
    firsts: dict[tuple[str, bool], Path] = {}
    for file in _files(path):
        if any(name in _OF_DUMPS for name in file.suffixes[-2:]):
            firsts.setdefault((_ending(file), hour_of(file) is not None), file)
    found = {_begins_with(file): file for file in reversed(firsts.values())}
    return (found["event"], found["issue"]) if {"event", "issue"} <= found.keys() else None


def _ending(file: Path) -> str:
    return "".join(file.suffixes[-2:] if file.suffix in _PACKED else file.suffixes[-1:])


def hour_of(path: Path) -> datetime | None:
    """The hour that a file's name tells."""
    match = _NAME.fullmatch(path.name)
    try:
        return datetime.strptime("-".join(match.groups()), "%Y-%m-%d-%H") if match else None
    except ValueError:
        return None


def count_missing(files: list[Path], tally: Tally) -> None:
    """Count the hours between the first and the last that have no file, under the span in which none has."""
    hours = sorted({hour for file in files if (hour := hour_of(file))})
    for before, after in pairwise(hours):
        missing = (after - before) // _HOUR - 1
        if missing:
            first, last = _written(before + _HOUR), _written(after - _HOUR)
            tally.count("hours_missing", first if missing == 1 else f"{first} to {last}", missing)


def _written(hour: datetime) -> str:
    return f"{hour:%Y-%m-%d}-{hour.hour}"


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts):
            yield file


def _begins_with(file: Path) -> str | None:
    """What a file holds first: "event", "issue", "other", or None for a file without anything."""
    try:
        line = Hour(file).first()
    except (InputError, OSError):
        return "other"
    if not line:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(line.decode("utf-8", "replace").lstrip("\ufeff \t\r\n"))
    except (ValueError, RecursionError):
        value = _whole(file)
    keys = value.keys() if isinstance(value, dict) else set()
    if {"type", "created_at"} <= keys and keys & {"payload", "repo", "repository"}:
        return "event"
    return "issue" if {"number", "title"} <= keys or "issue" in keys else "other"


def _whole(file: Path) -> Any:
    """The JSON of a file that has it on many lines."""
    try:
        return json.loads(file.read_bytes()) if file.suffix == ".json" and file.stat().st_size < _SMALL else None
    except (ValueError, RecursionError):
        return None
