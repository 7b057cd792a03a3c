"""Tables that are read in parts, because a set needn't fit into memory: from a file of its own, or from memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

_ROWS_AT_ONCE = 1_000


class Parts(Protocol):
    """A table's columns and number of rows, and its rows in order, as often as they are wanted."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, 1,000 at a time, of all columns or of those named (in the order of the schema)."""


@dataclass(frozen=True)
class InMemory:
    """A table that is in memory anyway."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.table.schema

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order."""
        wanted = [name for name in self.schema.names if columns is None or name in columns]
        yield from self.table.select(wanted).to_batches(max_chunksize=_ROWS_AT_ONCE)


@dataclass(frozen=True)
class OnDisk:
    """A file that `spill` wrote; one part of it is in memory at a time."""

    path: Path
    schema: pa.Schema
    num_rows: int

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order; of columns that aren't wanted nothing is decoded."""
        wanted = [place for place, name in enumerate(self.schema.names) if columns is None or name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
        with pa.OSFile(str(self.path)) as file, pa.ipc.open_file(file, options=options) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


def spill(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> OnDisk:
    """Write the batches to a file, to be read again as often as it takes. It isn't flushed: it is for this process."""
    rows = 0
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for batch in batches:
            if batch.num_rows:
                writer.write_batch(batch)
                rows += batch.num_rows
    return OnDisk(path, schema, rows)
