"""A config's rows as files: row groups of at most 64 MB, one of which of each split is in memory at a time."""

import hashlib
import io
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stscurate.disk import atomic, fingerprint
from stscurate.publishing.layouts import Layout, Piece

SHARD_ROWS = 100_000  # rows of a file at most
_SHARD_BYTES = 2**29  # bytes of a file at most, before they are compressed
_GROUP_ROWS = 10_000  # rows of a Parquet row group: what a reader holds at once
_GROUP_BYTES = 2**26
_TEXTS = frozenset({"sentence1", "sentence2", "text1", "text2", "anchor", "positive", "negative", "score"})

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """A row group: its split, the number of its file within the split, its rows in one chunk, and about how many bytes
    these take in memory.
    """

    split: str
    file: int
    table: pa.Table
    size: int


@dataclass(frozen=True)
class Measured:
    """What a file would be: its path in the set, rows, bytes and SHA-256."""

    path: str
    rows: int
    size: int
    sha256: str


class _Measure(io.RawIOBase):
    """A file that keeps nothing but its size and its SHA-256."""

    def __init__(self) -> None:
        self.size = 0
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        """It takes bytes."""
        return True

    def write(self, data: Any) -> int:
        """Count the bytes."""
        view = memoryview(data)
        self.digest.update(view)
        self.size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """How many bytes were written."""
        return self.size


def groups_of(layout: Layout) -> Iterator[Group]:
    """The config's row groups, of 10,000 rows and 64 MB at most, in files of SHARD_ROWS rows and 512 MB at most.

    Those of a split come in order, between those of other splits. A row that is larger stands alone. How the run was
    cut into parts doesn't show in them.
    """
    splits = {split: _Split(split) for split in layout.counts}
    for batch, split in _larger(layout.read()):
        for name in pc.unique(split).to_pylist():
            here = pc.equal(split, name)
            part = batch if pc.all(here).as_py() else batch.filter(here)
            yield from splits[name].add(part, _row_bytes(part))
    for one in splits.values():
        yield from one.end()


def _larger(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The rows in larger pieces, of a row group and more at most: each costs calls whatever it holds."""
    waiting: list[Piece] = []
    rows = size = 0
    for batch, split in pieces:
        waiting.append((batch, split))
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES // 4:
            yield _one(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _one(waiting)


def _one(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    table = pa.Table.from_batches([batch for batch, _ in pieces]).combine_chunks()
    split = pa.chunked_array([split for _, split in pieces]).combine_chunks()
    return pa.record_batch([column.combine_chunks() for column in table.columns], schema=table.schema), split


class _Split:
    """The rows of a split that wait for their row group to be full."""

    def __init__(self, name: str):
        self.name = name
        self.file = 0
        self._waiting: list[pa.RecordBatch] = []
        self._size = 0
        self._files = _Cutter(SHARD_ROWS, _SHARD_BYTES)
        self._groups = _Cutter(_GROUP_ROWS, _GROUP_BYTES)

    def add(self, batch: pa.RecordBatch, sizes: Ints) -> Iterator[Group]:
        """Take rows with their bytes; give the groups that are full."""
        for start, stop, new_file in self._files.cut(sizes):
            if new_file:
                yield from self.end()
                self._groups = _Cutter(_GROUP_ROWS, _GROUP_BYTES)
                self.file += 1
            for first, last, new_group in self._groups.cut(sizes[start:stop]):
                if new_group:
                    yield from self.end()
                self._waiting.append(batch.slice(start + first, last - first))
                self._size += int(sizes[start + first : start + last].sum())

    def end(self) -> Iterator[Group]:
        """Give the group that waits, if one does."""
        if self._waiting:
            table = pa.Table.from_batches(self._waiting).combine_chunks()
            group = Group(self.name, self.file, table, self._size)
            self._waiting, self._size = [], 0
            yield group


class _Cutter:
    """Cuts rows, which come a part at a time, into pieces of at most so many rows and bytes."""

    def __init__(self, rows: int, size: int):
        self._most = (rows, size)
        self._rows = self._bytes = 0

    def cut(self, sizes: Ints) -> Iterator[tuple[int, int, bool]]:
        """(from, to, whether a piece begins there which isn't the first) for rows of these bytes."""
        total = np.cumsum(sizes)
        at, begins = 0, False
        while at < len(sizes):
            before = int(total[at - 1]) if at else 0
            fits = int(np.searchsorted(total, before + self._most[1] - self._bytes, side="right"))
            end = min(max(fits, at + (not self._rows)), at + self._most[0] - self._rows, len(sizes))
            if end > at:
                yield at, end, begins
                self._rows += end - at
                self._bytes += int(total[end - 1]) - before
                at, begins = end, False
            if at < len(sizes):
                self._rows = self._bytes = 0
                begins = True


def write_layout(layout: Layout, result: Path) -> dict[str, int]:
    """Write the config's splits as files, and give about how many bytes each split takes in memory.

    Files that a killed process finished are kept.
    """
    folder = result / "data" / layout.name
    folder.mkdir(parents=True, exist_ok=True)
    sizes: Counter[str] = Counter()
    files: Counter[str] = Counter()
    with ExitStack() as stack:
        open_files = {split: stack.enter_context(_File(folder)) for split in layout.counts}
        for group in groups_of(layout):
            open_files[group.split].write(group)
            sizes[group.split] += group.size
            files[group.split] = group.file + 1
    for split, count in files.items():
        for number in range(count):
            pending = folder / _pending(split, number)
            if pending.exists():
                pending.replace(result / _path(layout, split, number, count))
    return dict(sizes)


def measure_layout(layout: Layout) -> list[Measured]:
    """The files that `write_layout` would write, in order, without writing them."""
    found: dict[str, list[tuple[_Measure, pq.ParquetWriter, int]]] = {split: [] for split in layout.counts}
    for group in groups_of(layout):
        files = found[group.split]
        if len(files) == group.file:
            if files:
                files[-1][1].close()
            measure = _Measure()
            files.append((measure, _writer(measure, group.table.schema), 0))
        measure, writer, rows = files[-1]
        writer.write_table(group.table, row_group_size=group.table.num_rows)
        files[-1] = (measure, writer, rows + group.table.num_rows)
    told = []
    for split, files in found.items():
        for number, (measure, writer, rows) in enumerate(files):
            writer.close()
            path = _path(layout, split, number, len(files))
            told.append(Measured(path, rows, measure.size, measure.digest.hexdigest()))
    return told


def output_of(layout: Layout, result: Path) -> dict[str, Any]:
    """What the manifest says of the config."""
    return {"rows": layout.num_rows, "sha256": fingerprint(result / "data" / layout.name)}


class _File:
    """The file of a split that is being written, by its number: how many there will be shows at the end only."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._number = -1
        self._open = ExitStack()
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> "_File":
        """Nothing is open yet."""
        return self

    def __exit__(self, *reason: Any) -> None:
        """The last file is whole, or, after an error, is gone."""
        self._open.__exit__(*reason)

    def write(self, group: Group) -> None:
        """Write the group to its file, unless a killed process did."""
        if group.file != self._number:
            self._open.close()
            self._number, self._writer = group.file, None
            pending = self._folder / _pending(group.split, group.file)
            named = self._folder.glob(f"{group.split}-{group.file:05}-of-*.parquet")
            if not pending.exists() and not any(named):
                file = self._open.enter_context(atomic(pending))
                self._writer = self._open.enter_context(_writer(file, group.table.schema))
        if self._writer:
            self._writer.write_table(group.table, row_group_size=group.table.num_rows)


def _writer(file: IO[bytes] | io.RawIOBase, schema: pa.Schema) -> pq.ParquetWriter:
    # Texts seldom repeat: a dictionary of them took twice the time and half as many bytes again for short ones, and
    # saved 1 % of long ones that stand in several pairs. What does repeat (repositories, annotators) has one.
    repeating = [_path_of(field) for field in schema if field.name not in _TEXTS]
    return pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=repeating or False)


def _path_of(field: pa.Field) -> str:
    """The column as Parquet names it: a list's is that of its elements."""
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else str(field.name)


def _pending(split: str, number: int) -> str:
    return f"{split}-{number:05}.parquet"


def _path(layout: Layout, split: str, number: int, count: int) -> str:
    return f"data/{layout.name}/{split}-{number:05}-of-{count:05}.parquet"


def _row_bytes(batch: pa.RecordBatch) -> Ints:
    """How many bytes each row takes in memory, but for the bitmaps of what is null."""
    return sum((_bytes(column) for column in batch.columns), np.zeros(batch.num_rows, dtype=np.int64))


def _bytes(column: pa.Array) -> Ints:
    """Of each value: a text's or a list's own and where it begins, all else by its type."""
    if pa.types.is_string(column.type):
        return _whole(pc.binary_length(column)) + 4
    if pa.types.is_list(column.type):
        counts = _whole(pc.list_value_length(column))
        total: Ints = np.concatenate([[0], np.cumsum(_bytes(column.flatten()))])
        ends = np.cumsum(counts)
        own: Ints = total[ends] - total[ends - counts] + 4
        return own
    return np.full(len(column), math.ceil(column.type.bit_width / 8), dtype=np.int64)


def _whole(numbers: pa.Array) -> Ints:
    return np.asarray(pc.fill_null(numbers, 0), dtype=np.int64)
