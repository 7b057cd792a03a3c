"""A config's rows as files: row groups of at most 64 MB, one of which is in memory at a time."""

import hashlib
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stscurate.disk import atomic, fingerprint
from stscurate.publishing.layouts import Layout

SHARD_ROWS = 100_000  # rows of a file at most
_SHARD_BYTES = 2**29  # bytes of a file at most, before they are compressed
_GROUP_ROWS = 10_000  # rows of a Parquet row group: what a reader holds at once
_GROUP_BYTES = 2**26


@dataclass(frozen=True)
class Shard:
    """A file to be: its path in the set, and where its row groups begin and end in the config's rows of the split."""

    path: str
    split: str
    table: pa.Table
    rows: NDArray[np.int64]  # their places in the table
    cuts: list[int]  # from one to the next: a row group

    def groups(self) -> Iterator[pa.Table]:
        """The row groups, each in one chunk: how the run was cut into shards must not show in the bytes."""
        for start, stop in zip(self.cuts, self.cuts[1:], strict=False):
            yield self.table.take(pa.array(self.rows[start:stop])).combine_chunks()

    def write(self, file: IO[bytes]) -> int:
        """Write the file; give its rows' bytes in memory."""
        size = 0
        with pq.ParquetWriter(file, self.table.schema, compression="zstd") as writer:
            for group in self.groups():
                writer.write_table(group, row_group_size=group.num_rows)
                size += group.nbytes
        return size


class Measure(io.RawIOBase):
    """A file that keeps nothing but its size and its SHA-256."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()

    def writable(self) -> bool:
        """It takes bytes."""
        return True

    def write(self, data: Any) -> int:
        """Count the bytes."""
        view = memoryview(data)
        self._digest.update(view)
        self.size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """How many bytes were written."""
        return self.size

    @property
    def sha256(self) -> str:
        """Of all that was written, in hexadecimal."""
        return self._digest.hexdigest()


def shards_of(layout: Layout) -> Iterator[Shard]:
    """The config's files in order: of at most SHARD_ROWS rows and 512 MB, in row groups of 10,000 rows and 64 MB."""
    row_bytes = _row_bytes(layout.table)
    for split in layout.counts():
        rows = np.flatnonzero(pc.equal(layout.split, split).to_numpy())
        sizes = row_bytes[rows]
        files = list(_pieces(sizes, 0, len(rows), SHARD_ROWS, _SHARD_BYTES))
        for number, (start, stop) in enumerate(files):
            name = f"data/{layout.name}/{split}-{number:05}-of-{len(files):05}.parquet"
            cuts = [start, *(end for _, end in _pieces(sizes, start, stop, _GROUP_ROWS, _GROUP_BYTES))]
            yield Shard(name, split, layout.table, rows, cuts)


def write_layout(layout: Layout, result: Path) -> dict[str, int]:
    """Write the config's splits as files, and give the bytes of each split in memory.

    Files that a killed process finished are kept.
    """
    sizes: dict[str, int] = {}
    (result / "data" / layout.name).mkdir(parents=True, exist_ok=True)
    for shard in shards_of(layout):
        path = result / shard.path
        if path.exists():
            size = sum(group.nbytes for group in shard.groups())
        else:
            with atomic(path) as file:
                size = shard.write(file)
        sizes[shard.split] = sizes.get(shard.split, 0) + size
    return sizes


def output_of(layout: Layout, result: Path) -> dict[str, Any]:
    """What the manifest says of the config."""
    return {"rows": layout.table.num_rows, "sha256": fingerprint(result / "data" / layout.name)}


def _pieces(sizes: NDArray[np.int64], start: int, stop: int, rows: int, size: int) -> Iterator[tuple[int, int]]:
    """(from, to) of pieces of at most so many rows and bytes; a row that is larger stands alone."""
    total = np.cumsum(sizes[start:stop])
    at = start
    while at < stop:
        before = int(total[at - start - 1]) if at > start else 0
        fits = start + int(np.searchsorted(total, before + size, side="right"))
        end = min(max(fits, at + 1), at + rows, stop)
        yield at, end
        at = end


def _row_bytes(table: pa.Table) -> NDArray[np.int64]:
    """About how many bytes each row takes in memory; texts count as they are, all else by its type."""
    total = np.zeros(table.num_rows, dtype=np.int64)
    for column in table.columns:
        if pa.types.is_string(column.type):
            total += pc.fill_null(pc.binary_length(column), 0).to_numpy() + 4
        elif pa.types.is_list(column.type):
            total += 16 * pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        else:
            total += math.ceil(column.type.bit_width / 8)
    return total
