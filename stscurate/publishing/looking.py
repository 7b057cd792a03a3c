"""A published set as it lies in a folder: its configs and splits by its card, and their first rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stscurate.errors import InputError, first_line
from stscurate.publishing.card import read_front_matter


@dataclass(frozen=True)
class Split:
    """A split of a config, and its Parquet files in order."""

    config: str
    name: str
    files: Sequence[Path]

    @property
    def rows(self) -> int:
        """How many rows it has, by the ends of its files."""
        return sum(pq.read_metadata(path).num_rows for path in self.files)

    def first(self, rows: int) -> list[dict[str, Any]]:
        """Its first rows."""
        found: list[dict[str, Any]] = []
        for path in self.files:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(rows):
                    found += batch.to_pylist()
                    if len(found) >= rows:
                        return found[:rows]
        return found


def published_splits(folder: Path) -> list[Split]:
    """The splits of all configs that the card names and whose files lie there, in its order; none without such a card.

    InputError where a file is broken.
    """
    try:
        matter = read_front_matter((folder / "README.md").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, InputError):
        return []
    configs = matter.get("configs")
    found = [
        Split(str(config["config_name"]), str(part["split"]), sorted(folder.glob(str(part["path"]))))
        for config in (configs if isinstance(configs, list) else [])
        for part in _parts(config)
    ]
    found = [split for split in found if split.files and all(path.suffix == ".parquet" for path in split.files)]
    for path in (path for split in found for path in split.files):
        try:
            pq.read_metadata(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(
                f"{path} isn't a whole Parquet file ({first_line(error)}): publish the run again."
            ) from None
    return found


def _parts(config: Any) -> Iterator[dict[str, Any]]:
    """What a config names as a list of splits with paths; other ways to name files aren't ours."""
    files = config.get("data_files") if isinstance(config, dict) and "config_name" in config else None
    for part in files if isinstance(files, list) else []:
        if isinstance(part, dict) and {"split", "path"} <= part.keys() and not str(part["path"]).startswith("/"):
            yield part
