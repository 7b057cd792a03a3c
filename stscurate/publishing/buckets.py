"""Rows dealt out to files, each of which fits into memory, for what has to see all rows with one key together."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stscurate.errors import SchemaError

_BUCKET_ROWS = 50_000  # that a file holds about; of larger tables than 12.8 million rows, more
_MOST_BUCKETS = 256
_WAITING_ROWS = 100_000  # held before they are dealt out

Ints = NDArray[np.int64]


def bucket_count(rows: int) -> int:
    """How many files so many rows are dealt out to."""
    return min(_MOST_BUCKETS, 1 + rows // _BUCKET_ROWS)


class Buckets:
    """Rows in files 0 to count - 1 of a folder of their own; all are written before the first is read."""

    def __init__(self, folder: Path, schema: pa.Schema, count: int):
        folder.mkdir()
        self.folder = folder
        self.schema = schema
        self.count = count
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
        self._files = ExitStack()

    def __enter__(self) -> Self:
        """To be filled."""
        return self

    def __exit__(self, *reason: object) -> None:
        """All is written."""
        self._deal()
        self._files.close()

    def add(self, columns: Sequence[object], bucket: Ints) -> None:
        """Rows, a column for each of the schema's, and the file of each."""
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column, field.type)
            for column, field in zip(columns, self.schema, strict=True)
        ]
        schema = self.schema.append(pa.field("bucket", pa.int64()))
        self._waiting.append(pa.record_batch([*arrays, pa.array(bucket, pa.int64())], schema=schema))
        self._rows += len(bucket)
        if self._rows >= _WAITING_ROWS:
            self._deal()

    def read(self, number: int) -> pa.Table:
        """The rows of a file, in the order in which they came."""
        path = self._path(number)
        if not path.exists():
            return self.schema.empty_table()
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            return reader.read_all()

    def tables(self) -> Iterator[pa.Table]:
        """The rows of each file."""
        return (self.read(number) for number in range(self.count))

    def _deal(self) -> None:
        if not self._rows:
            return
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self._rows = [], 0
        bucket = table["bucket"].to_numpy()
        order = np.argsort(bucket, kind="stable")
        numbers, starts = np.unique(bucket[order], return_index=True)
        table = table.select(self.schema.names)
        for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            self._writer(number).write_table(table.take(pa.array(rows)))

    def _writer(self, number: int) -> pa.ipc.RecordBatchStreamWriter:
        if number not in self._writers:
            file = self._files.enter_context(pa.OSFile(str(self._path(number)), "wb"))
            self._writers[number] = self._files.enter_context(pa.ipc.new_stream(file, self.schema))
        return self._writers[number]

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:05}.arrow"


class Joined:
    """The rows of another table that belong to pairs, by the pair's row; of `join`."""

    def __init__(self, buckets: Buckets, width: int, keys: Sequence[str]):
        self._buckets = buckets
        self._width = width
        self._keys = [("row", "ascending"), *((name, "ascending") for name in keys)]
        self._at = -1
        self._table = buckets.schema.empty_table()

    def between(self, first: int, last: int) -> pa.Table:
        """The rows of pairs `first` to `last`, sorted by `row` and the keys; asked for in ascending order."""
        parts = []
        for number in range(first // self._width, last // self._width + 1):
            if number != self._at:
                self._at, self._table = number, self._buckets.read(number).sort_by(self._keys)
            rows = self._table["row"].to_numpy()
            start, stop = np.searchsorted(rows, first), np.searchsorted(rows, last, side="right")
            parts.append(self._table.slice(start, stop - start))
        return pa.concat_tables(parts)


def join(
    pairs: Iterable[pa.RecordBatch],
    others: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    folder: Path,
    *,
    rows: int,
    keys: Sequence[str] = (),
) -> Joined:
    """The rows of `others` by the row of the pair that they name; those of no pair are left out.

    pairs: of columns pair_id and row, the rows ascending and below `rows`; others: of `schema`, pair_id first.
    keys: columns of theirs to sort the rows of a pair by. SchemaError where a pair_id stands twice among the pairs.
    """
    folder.mkdir()
    count = bucket_count(rows)
    sides = (
        (Buckets(folder / "pairs", pa.schema([("pair_id", pa.string()), ("row", pa.int64())]), count), pairs),
        (Buckets(folder / "others", schema, count), others),
    )
    for buckets, batches in sides:
        with buckets:
            for batch in batches:
                buckets.add([batch[name] for name in buckets.schema.names], _by_name(batch["pair_id"], count))
    width = max(1, -(-rows // count))
    found = pa.schema([pa.field("row", pa.int64()), *list(schema)[1:]])
    with Buckets(folder / "found", found, count) as joined:
        for left, right in zip(sides[0][0].tables(), sides[1][0].tables(), strict=True):
            _each_once(left)
            place = pc.index_in(right["pair_id"], value_set=left["pair_id"].combine_chunks())
            right = right.append_column("row", left["row"].take(place)).filter(pc.is_valid(place))
            if right.num_rows:
                columns = [right[name].combine_chunks() for name in found.names]
                joined.add(columns, right["row"].to_numpy() // width)
    return Joined(joined, width, keys)


def _by_name(names: pa.Array, count: int) -> Ints:
    return np.fromiter((zlib.crc32(name.encode()) % count for name in names.to_pylist()), np.int64, len(names))


def _each_once(pairs: pa.Table) -> None:
    if pc.count_distinct(pairs["pair_id"]).as_py() == pairs.num_rows:
        return
    first: dict[str, int] = {}
    for name, row in zip(pairs["pair_id"].to_pylist(), pairs["row"].to_pylist(), strict=True):
        if first.setdefault(name, row) != row:
            raise SchemaError(f"pairs: pair_id {name} stands twice, in rows {first[name]} and {row}: keep one of them.")
