"""The contract between stages: an Arrow schema per table, and the check that holds rows to it.

pyarrow alone isn't strict enough: `from_pylist(schema=...)` drops unknown keys and fills missing ones with
nulls, and `validate(full=True)` lets nulls into non-nullable fields. `from_rows` and `check` catch both, and
text that isn't valid Unicode, ids that stand twice, and numbers out of their range.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.errors import SchemaError

_TEXT = pa.string()
_TIME = pa.timestamp("ms", tz="UTC")  # Parquet knows no whole seconds


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


ISSUES = pa.schema(
    [
        _required("repository", _TEXT),
        _required("number", pa.int64()),
        _required("title", _TEXT),
        _required("body", _TEXT),
        _required("clean_text", _TEXT),
        _required("state", _TEXT),
        pa.field("state_reason", _TEXT),
        _required("labels", pa.list_(_TEXT)),
        _required("author", _TEXT),  # a stable placeholder, never a login
        pa.field("author_association", _TEXT),
        pa.field("created_at", _TIME),
        pa.field("closed_at", _TIME),
        pa.field("url", _TEXT),
        _required("source", _TEXT),
        pa.field("fetched_at", _TIME),
        _required("mentions", pa.list_(_TEXT)),  # issues that this one refers to, as "owner/name#number"
    ]
)

LINKS = pa.schema(
    [
        _required("repository", _TEXT),
        _required("duplicate", pa.int64()),
        _required("canonical_repository", _TEXT),
        _required("canonical", pa.int64()),
        _required("evidence", _TEXT),  # event, state_reason, comment, label
        _required("tier", pa.int8()),  # 1 (surest) to 3
        pa.field("author_association", _TEXT),
        pa.field("at", _TIME),
    ]
)

REPOSITORIES = pa.schema(
    [
        _required("repository", _TEXT),
        pa.field("licence", _TEXT),  # SPDX expression; of the code, which needn't cover what people wrote in issues
        pa.field("licence_from", _TEXT),  # list or github
    ]
)

# What GH Archive tells of issues, an event a row; `issue` and `comment` are JSON with REST's field names.
EVENTS = pa.schema(
    [
        _required("repository", _TEXT),
        _required("number", pa.int64()),
        pa.field("at", _TIME),
        _required("event", _TEXT),  # its id, where it has one
        _required("action", _TEXT),  # opened, closed, reopened, ...; "created", "edited" and "deleted" are of comments
        _required("actor", _TEXT),  # a stable placeholder
        pa.field("issue", _TEXT),
        pa.field("comment", _TEXT),
    ]
)

TEXTS = pa.schema([_required("text_id", _TEXT), _required("text", _TEXT)])

PAIRS = pa.schema(
    [
        _required("pair_id", _TEXT),
        _required("text1", _TEXT),
        _required("text2", _TEXT),
        pa.field("label", pa.int8()),  # 0 or 1
        pa.field("score", pa.float64()),  # 0..1
        _required("weight", pa.float64()),
        pa.field("split", _TEXT),  # of SPLITS; null where nobody has split
        _required("origin", _TEXT),
        pa.field("id1", _TEXT),
        pa.field("id2", _TEXT),
        pa.field("component", _TEXT),
        pa.field("repository", _TEXT),
        pa.field("licence", _TEXT),
        pa.field("tier", pa.int8()),
        _required("flags", pa.list_(_TEXT)),
        pa.field("tokens1", pa.int32()),
        pa.field("tokens2", pa.int32()),
    ]
)

VOTES = pa.schema(
    [
        _required("pair_id", _TEXT),
        _required("annotator", _TEXT),
        _required("scoring", _TEXT),
        _required("prompt", _TEXT),  # hash of the prompt
        _required("order", _TEXT),  # ab, ba, or both where one number covers both directions
        _required("sample", pa.int16()),
        pa.field("raw", pa.float64()),  # the annotator's own number, null where it failed
        _required("scale", _TEXT),  # "0..5": absolute, that range; "relative": only the order means something
        pa.field("entropy", pa.float64()),
        pa.field("missing_mass", pa.float64()),
        pa.field("answer", _TEXT),
        _required("cut", pa.int32()),  # tokens left out of the two texts
        pa.field("tokens", pa.int32()),
        pa.field("error", _TEXT),
    ]
)

SCORES = pa.schema(
    [
        _required("pair_id", _TEXT),
        _required("score", pa.float64()),  # 0..1
        pa.field("spread", pa.float64()),  # standard deviation between annotators; null with fewer than two
        _required("annotators", pa.int16()),
        pa.field("agreement", pa.float64()),  # 1 - spread / 0.5, the most that two can differ
        _required("method", _TEXT),
    ]
)

TRIPLETS = pa.schema(
    [
        _required("text_id", _TEXT),
        _required("anchor", _TEXT),
        _required("positive", _TEXT),
        _required("negative", _TEXT),
        pa.field("positive_start", pa.int32()),  # spans count tokens, stop excluded; null where nothing was masked
        pa.field("positive_stop", pa.int32()),
        pa.field("negative_start", pa.int32()),
        pa.field("negative_stop", pa.int32()),
    ]
)

SCHEMAS: dict[str, pa.Schema] = {
    "issues": ISSUES,
    "links": LINKS,
    "repositories": REPOSITORIES,
    "events": EVENTS,
    "texts": TEXTS,
    "pairs": PAIRS,
    "votes": VOTES,
    "scores": SCORES,
    "triplets": TRIPLETS,
}

SPLITS = ("train", "validation", "test")

_RANGES = {"score": (0.0, 1.0), "label": (0, 1), "weight": (0.0, float("inf")), "tier": (1, 3)}
_MENDS = {
    "score": "give the scale of the file (--scale 0-5), or mend the row",
    "label": "labels are 0 (different) or 1 (same); a graded similarity is a score: name its column so",
    "weight": "weights are 0 or more",
    "tier": "tiers are 1, 2 or 3",
}
_KEYS = {"texts": ("text_id",), "pairs": ("pair_id",), "scores": ("pair_id",), "issues": ("repository", "number")}
_KEYS["repositories"] = ("repository",)


@dataclass
class Tally:
    """What happened to the rows of a stage: how many came in, what was dropped and why, what was counted."""

    rows_in: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def drop(self, reason: str, rows: int = 1) -> None:
        """Count rows that are left out, by reason (lower case, underscores)."""
        if rows:
            self.dropped[reason] += rows

    def count(self, name: str, key: object, rows: int = 1) -> None:
        """Count rows of kind `key` under the heading `name`, for example `count("tier", 1)`.

        Both in lower case with underscores, but for what users have named (annotators, files, splits).
        """
        self.counts.setdefault(name, Counter())[str(key)] += rows

    def add(self, other: "Tally") -> None:
        """Add the counts of another part of the same stage."""
        self.rows_in += other.rows_in
        self.dropped.update(other.dropped)
        for name, counter in other.counts.items():
            self.counts.setdefault(name, Counter()).update(counter)

    def as_dict(self) -> dict[str, Any]:
        """Plain, sorted data for JSON."""
        counts = {name: dict(sorted(self.counts[name].items())) for name in sorted(self.counts)}
        return {"rows_in": self.rows_in, "dropped": dict(sorted(self.dropped.items())), "counts": counts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Tally":
        """The tally that `as_dict` wrote."""
        counts = {name: Counter(counter) for name, counter in data["counts"].items()}
        return cls(data["rows_in"], Counter(data["dropped"]), counts)


def from_rows(rows: Sequence[Mapping[str, Any]], name: str) -> pa.Table:
    """Build the table `name` from dicts that have exactly its columns, and check it.

    SchemaError for a missing or unknown key, a wrong type, or text with a lone surrogate.
    """
    schema = SCHEMAS[name]
    expected = set(schema.names)
    for index, row in enumerate(rows):
        if row.keys() != expected:
            raise _columns_error(name, row.keys(), expected, f"row {index}")
    columns = [_column(name, entry, [row[entry.name] for row in rows]) for entry in schema]
    return check(pa.Table.from_arrays(columns, schema=schema), name)


def check(table: pa.Table, name: str) -> pa.Table:
    """Return `table` with the columns of schema `name` in its order, or raise SchemaError.

    Held: columns, types, nulls, valid Unicode, ranges of scores, labels, weights and tiers, unique ids.
    """
    schema = SCHEMAS[name]
    check_columns(table.column_names, name)
    table = table.select(schema.names)
    for entry in schema:
        column = table[entry.name]
        if column.type != entry.type:
            raise SchemaError(
                f"{name}: column {entry.name} is {column.type}, not {entry.type}: cast it before it is written."
            )
        if column.null_count and not entry.nullable:
            row = first_true(pc.is_null(column))
            raise SchemaError(f"{name}: column {entry.name} is empty in row {row}: fill it or drop the row.")
        _check_unicode(name, entry.name, column)
        _check_range(name, entry.name, column)
    if name in _KEYS:
        check_unique(table, _KEYS[name], name)
    return table.cast(schema)


def check_columns(names: Sequence[str], name: str) -> None:
    """Raise SchemaError unless these are the columns of schema `name`, in whatever order."""
    expected = SCHEMAS[name].names
    if sorted(names) != sorted(expected):
        raise _columns_error(name, names, set(expected), "the table")


def check_unique(table: pa.Table, columns: Sequence[str], name: str) -> None:
    """Raise SchemaError naming the two rows where the same values of `columns` stand twice."""
    seen: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(zip(*(table[column].to_pylist() for column in columns), strict=True)):
        if key in seen:
            shown = ", ".join(f"{column} {value}" for column, value in zip(columns, key, strict=True))
            raise SchemaError(f"{name}: {shown} stands twice, in rows {seen[key]} and {row}: keep one of them.")
        seen[key] = row


def first_true(mask: pa.ChunkedArray) -> int:
    """Index of the first true value; -1 without any."""
    return int(pc.index(mask, True).as_py())


def _column(table: str, entry: pa.Field, values: list[Any]) -> pa.Array:
    try:
        return pa.array(values, type=entry.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, TypeError, OverflowError):
        for row, value in enumerate(values):
            _convert(table, entry, value, row)
        raise


def _convert(table: str, entry: pa.Field, value: Any, row: int) -> None:
    try:
        pa.array([value], type=entry.type)
    except UnicodeEncodeError as error:
        raise SchemaError(
            f"{table}: column {entry.name}, row {row} holds half of a surrogate pair (character {error.start}), "
            "which no file can store: replace it or drop the row."
        ) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError):
        raise SchemaError(
            f"{table}: column {entry.name}, row {row} holds {value!r:.60}, which isn't {entry.type}: mend the row."
        ) from None


def _columns_error(name: str, got: Iterable[str], expected: set[str], place: str) -> SchemaError:
    got = list(got)
    missing = sorted(expected - set(got))
    unknown = sorted(set(got) - expected)
    twice = sorted(column for column, times in Counter(got).items() if times > 1)
    parts = [f"lacks {', '.join(missing)}"] if missing else []
    parts += [f"has unknown {', '.join(unknown)}"] if unknown else []
    parts += [f"has {', '.join(twice)} twice"] if twice else []
    return SchemaError(f"{name}: {place} {' and '.join(parts)}: its columns are those of records.py.")


def _check_unicode(table: str, column: str, values: pa.ChunkedArray) -> None:
    if not pa.types.is_string(values.type):
        return
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        for row, value in enumerate(values.cast(pa.binary()).to_pylist()):
            try:
                (value or b"").decode("utf-8")
            except UnicodeDecodeError as error:
                raise SchemaError(
                    f"{table}: column {column}, row {row} isn't valid UTF-8 (byte {error.start}): "
                    "save the file as UTF-8 or drop the row."
                ) from None
        raise


def _check_range(table: str, column: str, values: pa.ChunkedArray) -> None:
    if column not in _RANGES or not pa.types.is_primitive(values.type):
        return
    low, high = _RANGES[column]
    inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))  # NaN is never inside
    row = first_true(pc.fill_null(pc.invert(inside), False))
    if row >= 0:
        raise SchemaError(f"{table}: {column} is {values[row].as_py()} in row {row}: {_MENDS[column]}.")
