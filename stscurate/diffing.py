"""What differs between two runs: the settings of their stages, and the rows of their tables.

Of the first run only hashes are held in memory, 16 bytes a row and 8 a column; the second is read row by row past them.
Rows are the same by their key: issues by repository and number, pairs by the ids of their issues, or by `pair_id`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stscurate.manifest import Entry
from stscurate.records import SCHEMAS
from stscurate.store import Run

_KEYS = {
    "issues": ("repository", "number"),
    "links": ("repository", "duplicate", "canonical_repository", "canonical"),
    "repositories": ("repository",),
    "texts": ("text_id",),
    "pairs": ("id1", "id2"),
    "votes": ("pair_id", "annotator", "scoring", "prompt", "order", "sample"),
    "scores": ("pair_id",),
    "triplets": ("text_id",),
}
_WITHOUT_IDS = {"pairs": ("pair_id",)}  # the key of rows whose own is null
_CALLED = {"state_reason": "state", "closed_at": "state", "clean_text": "text"}
_NUMBERS = ("score", "raw", "weight")  # their changes are told by size
_MOVES = ("split", "label", "tier")  # their changes are told by value

_Key = bytes


@dataclass
class TableDiff:
    """One table: rows of each run, what happened to them, and the first of them as examples.

    changed_in: heading -> rows in which it changed; moves: "split: train -> test" -> rows; sizes: column -> mean and
    largest absolute change of a number; examples: {"what": added, gone or changed, "row": key, heading: [old, new]}.
    """

    table: str
    rows: tuple[int, int]
    added: int = 0
    gone: int = 0
    changed: int = 0
    changed_in: Counter[str] = field(default_factory=Counter)
    moves: Counter[str] = field(default_factory=Counter)
    sizes: dict[str, dict[str, float]] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)  # that one of the runs lacks
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether the rows are the same."""
        return not (self.added or self.gone or self.changed or self.columns)


@dataclass(frozen=True)
class Difference:
    """Differences between stages, {"stage", "what", "first", "second"}, and of each table that either run has."""

    stages: list[dict[str, Any]]
    tables: list[TableDiff]

    @property
    def equal(self) -> bool:
        """Whether the runs hold the same, made the same way."""
        return not self.stages and all(table.equal for table in self.tables)


def diff_runs(first: Run, second: Run, *, rows: int = 5) -> Difference:
    """Compare two runs. rows: examples of each kind (added, gone, changed) in each table.

    InputError where a table isn't as its stage left it.
    """
    tables = [name for name in SCHEMAS if first.has(name) or second.has(name)]
    return Difference(
        list(_stages(first.entries, second.entries)), [_table(first, second, name, rows) for name in tables]
    )


def _stages(first: Mapping[str, Entry], second: Mapping[str, Entry]) -> Iterator[dict[str, Any]]:
    for stage in dict.fromkeys([*first, *second]):
        told = [_told(entries[stage]) if stage in entries else None for entries in (first, second)]
        if told[0] is None or told[1] is None:
            yield {"stage": stage, "what": "finished", "first": told[0] is not None, "second": told[1] is not None}
            continue
        for what in dict.fromkeys([*told[0], *told[1]]):
            old, new = told[0].get(what), told[1].get(what)
            if old != new:
                yield {"stage": stage, "what": what, "first": old, "second": new}


def _told(entry: Entry) -> dict[str, Any]:
    """What the manifest says of how a stage was made and of what it left out, flat."""
    groups = {
        "setting": entry.key["settings"],
        "input": entry.key["inputs"],
        "version": {"stscurate": entry.key["stscurate"], **entry.versions},
        "dropped": entry.tally.dropped,
    }
    return {"seed": entry.key["seed"]} | {
        f"{group} {name}": value for group, values in groups.items() for name, value in values.items()
    }


def _table(first: Run, second: Run, name: str, rows: int) -> TableDiff:
    counts = tuple(_rows(run, name) for run in (first, second))
    found = TableDiff(name, (counts[0], counts[1]))
    if first.has(name) and second.has(name) and first.fingerprint(name) == second.fingerprint(name):
        return found
    columns = [_columns(run, name) for run in (first, second)]
    shared = [column for column in SCHEMAS[name].names if all(column in had for had in columns if had)]
    found.columns = sorted(columns[0] ^ columns[1]) if all(columns) else []
    known: dict[_Key, tuple[bytes, tuple[Any, ...]]] = {}
    for key, row in _keyed(first, name):
        known[key] = (_hashes(row, shared), _values(row))
    sizes: dict[str, list[float]] = {}
    examples: dict[str, dict[_Key, dict[str, Any]]] = {"added": {}, "changed": {}, "gone": {}}
    for key, row in _keyed(second, name):
        old = known.pop(key, None)
        if old is None:
            found.added += 1
            what = "added"
        elif old[0] == (new := _hashes(row, shared)):
            continue
        else:
            what = "changed"
            found.changed += 1
            places = [at for at in range(len(shared)) if old[0][at * 8 : at * 8 + 8] != new[at * 8 : at * 8 + 8]]
            found.changed_in.update({_CALLED.get(shared[at], shared[at]) for at in places})
            _measure(found, sizes, old[1], _values(row))
        if len(examples[what]) < rows:
            examples[what][key] = row
    found.gone = len(known)
    found.sizes = {column: {"mean": total / times, "most": most} for column, (times, total, most) in sizes.items()}
    found.examples = list(_examples(first, name, examples, list(known)[:rows], shared))
    return found


def _measure(found: TableDiff, sizes: dict[str, list[float]], old: Sequence[Any], new: Sequence[Any]) -> None:
    for column, before, after in zip((*_NUMBERS, *_MOVES), old, new, strict=True):
        if before == after:
            continue
        if column in _MOVES:
            found.moves[f"{column}: {_shown(before)} -> {_shown(after)}"] += 1
        elif before is not None and after is not None:
            times, total, most = sizes.get(column, (0, 0, 0))
            change = abs(after - before)
            sizes[column] = [times + 1, total + change, max(most, change)]


def _examples(
    first: Run, name: str, examples: dict[str, dict[_Key, dict[str, Any]]], gone: list[_Key], shared: list[str]
) -> Iterator[dict[str, Any]]:
    """The examples with their old values, for which the first run is read once more."""
    wanted = {*examples["changed"], *gone}
    old = {key: row for key, row in _keyed(first, name) if key in wanted} if wanted else {}
    for row in examples["added"].values():
        yield {"what": "added", "row": _name(row, name)}
    for key in gone:
        yield {"what": "gone", "row": _name(old[key], name)}
    for key, row in examples["changed"].items():
        before = old[key]
        yield {
            "what": "changed",
            "row": _name(row, name),
            **{column: [before[column], row[column]] for column in shared if before[column] != row[column]},
        }


def _keyed(run: Run, name: str) -> Iterator[tuple[_Key, dict[str, Any]]]:
    """Each row with the hash of its key; a key that stands twice counts its rows."""
    seen: Counter[_Key] = Counter()
    for row in _all_rows(run, name):
        key = _digest(_key(row, name), 16)
        seen[key] += 1
        yield (key if seen[key] == 1 else _digest((key, seen[key]), 16)), row


def _all_rows(run: Run, name: str) -> Iterator[dict[str, Any]]:
    if run.has(name):
        for batch in run.batches(name):
            yield from batch.to_pylist()


def _key(row: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    columns = _KEYS[name]
    if name in _WITHOUT_IDS and None in (row.get(column) for column in columns):
        columns = _WITHOUT_IDS[name]
    values = (row.get(column) for column in columns)
    if name in ("issues", "links", "repositories", "pairs"):  # GitHub compares names so
        return tuple(value.lower() if isinstance(value, str) else value for value in values)
    return tuple(values)


def _name(row: Mapping[str, Any], name: str) -> str:
    """The row's key as a person reads it."""
    if name == "issues":
        return f"{row['repository']}#{row['number']}"
    if name == "links":
        return f"{row['repository']}#{row['duplicate']} -> {row['canonical_repository']}#{row['canonical']}"
    if name == "pairs" and row.get("id1") and row.get("id2"):
        return f"{row['id1']} {row['id2']}"
    return " ".join(str(row.get(column)) for column in _WITHOUT_IDS.get(name, _KEYS[name]))


def _values(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(column) for column in (*_NUMBERS, *_MOVES))


def _hashes(row: Mapping[str, Any], columns: Iterable[str]) -> bytes:
    return b"".join(_digest(row[column], 8) for column in columns)


def _digest(value: Any, size: int) -> bytes:
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=size).digest()


def _columns(run: Run, name: str) -> set[str]:
    return set(run.columns(name)) if run.has(name) else set()


def _rows(run: Run, name: str) -> int:
    return next((int(entry.outputs[name]["rows"]) for entry in run.entries.values() if name in entry.outputs), 0)


def _shown(value: Any) -> str:
    return "-" if value is None else str(value)
