"""A config's rows as files."""

import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from stscurate.disk import atomic, fingerprint
from stscurate.publishing.layouts import Layout

SHARD_ROWS = 100_000  # rows of a file at most
_GROUP_ROWS = 10_000  # rows of a Parquet row group: what a reader holds at once


def write_layout(layout: Layout, result: Path) -> dict[str, int]:
    """Write the config's splits as shards of at most SHARD_ROWS rows, and give the bytes of each split in memory.

    Shards that a killed process finished are kept.
    """
    sizes: dict[str, int] = {}
    place = result / "data" / layout.name
    place.mkdir(parents=True, exist_ok=True)
    for split, rows in layout.splits():
        shards = math.ceil(rows.num_rows / SHARD_ROWS)
        for shard in range(shards):
            path = place / f"{split}-{shard:05}-of-{shards:05}.parquet"
            # in one chunk: how the run was cut into shards must not show in the bytes
            part = rows.slice(shard * SHARD_ROWS, SHARD_ROWS).combine_chunks()
            sizes[split] = sizes.get(split, 0) + part.nbytes
            if not path.exists():
                with atomic(path) as file:
                    pq.write_table(part, file, compression="zstd", row_group_size=_GROUP_ROWS)
    return sizes


def output_of(layout: Layout, result: Path) -> dict[str, Any]:
    """What the manifest says of the config."""
    return {"rows": layout.table.num_rows, "sha256": fingerprint(result / "data" / layout.name)}
