"""Reading what a user brings: Parquet, CSV, TSV, JSON lines, plain text, `datasets` folders, runs.

`read_table` gives the file's own columns, with the place of every row for messages; `roles.py` tells
which is what, and `tables.py` makes records of them.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from stscurate.errors import InputError, first_line
from stscurate.exports import answer_rows
from stscurate.smart import SUFFIXES, smart_records
from stscurate.wording import counted

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_JSON_LINES = {".jsonl", ".ndjson", ".json"}
_KINDS = (
    "Parquet, CSV, TSV, JSON (lines, or an array), plain text (.txt), SMART's format (.ALL, .QRY), each also as .gz, "
    ".xz or .bz2, or a folder"
)


class _Commas(csv.excel):
    """Strict: a quote that is never closed would take all rows behind it into one field."""

    strict = True


class _Tabs(csv.Dialect):
    """Tab-separated STS and MRPC files hold stray quotes: they are read without quoting."""

    delimiter = "\t"
    quoting = csv.QUOTE_NONE
    lineterminator = "\n"


_DELIMITED: dict[str, type[csv.Dialect]] = {".csv": _Commas, ".tsv": _Tabs}


@dataclass(frozen=True)
class RawTable:
    """A file as it stands: its columns, and where each row is found in it ("line 7", "row 6")."""

    name: str
    columns: dict[str, list[Any]]
    places: list[str]

    def __len__(self) -> int:
        """Rows."""
        return len(self.places)

    def place(self, row: int) -> str:
        """The row as a user finds it, for messages."""
        return f"{self.name}, {self.places[row]}"


def read_table(path: Path, *, names: list[str] | None = None) -> RawTable:
    """Read a whole file or folder; `names` are the columns of a CSV or TSV without a header line.

    InputError for a missing, empty, broken or unknown file, with the place of the fault.
    """
    if not path.exists():
        raise InputError(f"{path} doesn't exist: check the path.")
    if not path.is_dir() and not path.is_file():
        raise InputError(f"{path} is a pipe or a device, and is read more than once: write it to a file first.")
    table = _read_folder(path) if path.is_dir() else _read_file(path, names)
    if not len(table):
        raise InputError(f"{path} is empty: it needs at least one row.")
    return table


def open_text(path: Path) -> IO[str]:
    """Open a text file, compressed or not, as UTF-8; a byte-order mark is skipped."""
    opener = _OPENERS.get(path.suffix, open)
    return io.TextIOWrapper(opener(path, "rb"), encoding="utf-8-sig", newline="")


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number, value) of each line that isn't blank. InputError names the line that isn't JSON."""
    with reading(path), open_text(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                cut = "" if line.endswith("\n") else " and the file ends within it: it may have been cut off"
                raise InputError(
                    f"{path}, line {number} isn't valid JSON ({error.msg} at character {error.pos}){cut}. "
                    "Mend or remove the line."
                ) from None
            except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets within brackets
                raise InputError(f"{path}, line {number} can't be read as JSON ({error}): remove the line.") from None


def _json_array(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with reading(path), open_text(path) as file:
            yield from enumerate(json.load(file))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} isn't valid JSON ({error}): mend it, or copy it again.") from None


class reading:  # noqa: N801 - used as a verb: `with reading(path): ...`
    """Turn the faults of a damaged file into one sentence that names it."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Translate what the decoders raise."""
        if isinstance(error, UnicodeDecodeError):
            raise InputError(
                f"{self.path} isn't UTF-8 text (byte {error.start} of the part read: {error.reason}): save it as UTF-8."
            ) from None
        if isinstance(error, EOFError | gzip.BadGzipFile | lzma.LZMAError):
            raise InputError(f"{self.path} is a damaged archive ({error}): copy or download it again.") from None
        if isinstance(error, pa.ArrowInvalid):
            raise InputError(
                f"{self.path} isn't a whole Parquet file ({first_line(error)}): copy or write it again."
            ) from None
        if isinstance(error, PermissionError | IsADirectoryError):
            raise InputError(f"{self.path} can't be read ({error.strerror}): check the path and its rights.") from None


def _read_file(path: Path, names: list[str] | None) -> RawTable:
    suffix = Path(path.stem).suffix if path.suffix in _OPENERS else path.suffix
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: it needs at least one row.")
    if suffix == ".parquet":
        return _read_parquet(path)
    if suffix in _JSON_LINES:
        return _read_json(path, suffix)
    if suffix in _DELIMITED:
        return _read_delimited(path, suffix, names)
    if suffix in {".txt", ".text"}:
        return _read_plain(path)
    if suffix.lower() in SUFFIXES:
        return _read_smart(path)
    raise InputError(f"{path} is of a kind that isn't read: give {_KINDS}.")


def _read_parquet(path: Path) -> RawTable:
    """A Parquet file, or a run's folder of shards."""
    with reading(path):
        _each_once(path, pq.read_schema(path if path.is_file() else min(path.glob("*.parquet"))).names)
        table = pq.read_table(path, partitioning=None)
        for column in table.column_names:
            if pa.types.is_string(table[column].type):
                _valid_text(path, column, table[column])
        columns = {name: table[name].to_pylist() for name in table.column_names}
    return RawTable(path.name, columns, [f"row {row}" for row in range(table.num_rows)])


def _valid_text(path: Path, column: str, values: pa.ChunkedArray) -> None:
    for row, value in enumerate(values.cast(pa.binary()).to_pylist()):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            raise InputError(f"{path}, row {row}: {column} isn't valid UTF-8: mend or drop the row.") from None


def _read_json(path: Path, suffix: str) -> RawTable:
    """JSON lines, or one array of rows; an array that Argilla or Label Studio exported is read as its answers."""
    rows, places = [], []
    with reading(path), open_text(path) as file:
        is_array = suffix == ".json" and file.read(1024).lstrip()[:1] == "["
    kind = "row" if is_array else "line"
    for number, row in _json_array(path) if is_array else json_lines(path):
        if not isinstance(row, dict):
            raise InputError(f"{path}, {kind} {number} holds a {type(row).__name__}: each {kind} is one JSON object.")
        rows.append(row)
        places.append(f"{kind} {number}")
    answers = answer_rows(rows) if is_array else None
    if answers is not None:
        rows, places = answers, [f"answer {number}" for number in range(len(answers))]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return RawTable(path.name, {name: [row.get(name) for row in rows] for name in names}, places)


def _read_delimited(path: Path, suffix: str, names: list[str] | None) -> RawTable:
    rows: list[list[str]] = []
    places: list[str] = []
    csv.field_size_limit(sys.maxsize)
    with reading(path), open_text(path) as file:
        reader = csv.reader(file, dialect=_DELIMITED[suffix])
        try:
            for row in reader:
                if row:
                    rows.append(row)
                    places.append(f"line {reader.line_num}")
        except csv.Error as error:
            begun = f", in the row behind {places[-1]}" if places else ""
            raise InputError(
                f"{path}{begun}: the quotes don't pair up ({error}): write each in a text twice."
            ) from None
    if rows and names is None:
        names, rows, places = [name.strip() for name in rows[0]], rows[1:], places[1:]
    names = names or []
    _each_once(path, names)
    for row, place in zip(rows, places, strict=True):
        if len(row) != len(names):
            raise InputError(
                f"{path}, {place} has {counted(len(row), 'field')} where {len(names)} are due ({', '.join(names)}): "
                "mend its quotes or separators, or name the columns with --columns."
            )
    columns = dict(zip(names, ([row[i] or None for row in rows] for i in range(len(names))), strict=True))
    return RawTable(path.name, columns, places)


def _each_once(path: Path, names: list[str]) -> None:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise InputError(f"{path} has more than one column {', '.join(twice)}: rename or remove all but one.")


def first_fields(path: Path) -> list[str] | None:
    """The first line's fields of a CSV or TSV file; None for other kinds, or an empty file."""
    suffix = Path(path.stem).suffix if path.suffix in _OPENERS else path.suffix
    if suffix not in _DELIMITED or not path.is_file():
        return None
    with reading(path), open_text(path) as file:
        try:
            first = next(csv.reader(file, dialect=_DELIMITED[suffix]), None)
            return first and [name.strip() for name in first]
        except csv.Error:
            return None  # read_table tells what is wrong


def _read_plain(path: Path) -> RawTable:
    with reading(path), open_text(path) as file:
        lines = [line.rstrip("\r\n") for line in file]
    return RawTable(path.name, {"text": lines}, [f"line {number}" for number in range(1, len(lines) + 1)])


def _read_smart(path: Path) -> RawTable:
    with reading(path), open_text(path) as file:
        records = smart_records(file)
    if not records:
        raise InputError(f"{path} holds no record that begins with .I and a number: it isn't in SMART's format.")
    columns = {name: [fields[name] for _, fields in records] for name in records[0][1]}
    return RawTable(path.name, columns, [f"line {number}" for number, _ in records])


def _read_folder(path: Path) -> RawTable:
    if any(path.glob("[0-9]*.parquet")):
        return _read_parquet(path)
    results = sorted(found.parent.name for found in path.glob("*/manifest.json") if b'"stages"' in found.read_bytes())
    if results:  # `datasets` would take their manifests and times for rows
        raise InputError(
            f"{path} is no run, but holds {', '.join(results[:5])}: name one of them, as in {path / results[0]}."
        )
    import datasets

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # it logs many lines of what it then raises
    try:
        if (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
            loaded = datasets.load_from_disk(str(path))
        else:
            loaded = datasets.load_dataset(str(path))
    except Exception as error:  # datasets raises many kinds, some of them private
        raise InputError(
            f"{path} isn't a run, nor a folder that `datasets` can load ({first_line(error)}): give a file of rows, a "
            "run, or a folder that holds such files or that `save_to_disk` wrote."
        ) from None
    splits = dict(loaded) if isinstance(loaded, dict) else {str(loaded.split or "train"): loaded}
    columns: dict[str, list[Any]] = {}
    places: list[str] = []
    for split, part in splits.items():
        table = part.to_dict()
        for name in dict.fromkeys([*columns, *table]):
            column = columns.setdefault(name, [None] * len(places))
            column.extend(table.get(name, [None] * len(part)))
        places += [f"split {split}, row {row}" for row in range(len(part))]
    columns.setdefault("split", [place.split(",")[0].removeprefix("split ") for place in places])
    return RawTable(path.name, columns, places)
