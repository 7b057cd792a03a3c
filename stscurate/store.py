"""State on disk: a run folder of finished stages that any kill leaves whole.

    runs/demo/
      manifest.json            per finished stage: inputs, settings, seed, versions, rows, drops
      pairs/00000.parquet ...  the tables of the stages, in shards
      answers.sqlite           answers that were paid for or were slow (services/answers.py)
      prompts.json             the words by which annotators were asked, by their hash
      timings.jsonl            the side table of times: nothing else here depends on the clock
      .partial/STAGE/          a stage that isn't finished: its shards so far, each with its tally

A shard is written beside its place, flushed and renamed, its tally last: a shard with a tally is whole. When all
are there the stage's entry is written, the folders move to their place, and the manifest takes the entry over.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from stscurate.disk import fingerprint, locked, write_json, write_parquet
from stscurate.errors import InputError, SettingsChangedError
from stscurate.manifest import Entry, changed, read_manifest, stage_key, start_partial, versions
from stscurate.records import SCHEMAS, Tally, check, check_columns

_ROWS_AT_ONCE = 1_000
_PROMPTS = "prompts.json"
_BYTES_AT_ONCE = 2**20  # of each column of a file: a file may be one row group


def is_run(folder: Path) -> bool:
    """Whether the folder is a run, also one that was copied without its hidden files."""
    if (folder / ".lock").exists():
        return True
    try:
        return bool(json.loads((folder / "manifest.json").read_text("utf-8"))["kind"] == "run")
    except (OSError, ValueError, LookupError, TypeError):
        return False


class Run:
    """A run folder, held by this process alone while it is open.

    `replace` says that a finished stage with other settings may be made anew (the command line's --yes).
    """

    def __init__(self, folder: Path, *, replace: bool = False):
        self.folder = folder
        self.replace = replace

    @classmethod
    @contextmanager
    def open(cls, folder: Path, *, replace: bool = False, new: bool = True) -> Iterator[Self]:
        """Lock the folder, and create it where it isn't there and may be `new`. RunBusyError while another holds it."""
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file, and a run is a folder: name another.")
        if not new and not folder.exists():
            raise InputError(f"There is no run {folder}: check the path.")
        if not new and not is_run(folder):
            raise InputError(f"{folder} isn't a run: check the path.")
        if folder.is_dir() and any(folder.iterdir()) and not is_run(folder):
            raise InputError(f"{folder} holds files that aren't a run: name an empty or a new folder with --out.")
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock"):
            yield cls(folder, replace=replace)

    @property
    def entries(self) -> dict[str, Entry]:
        """The finished stages by name, in the order in which they were finished."""
        return read_manifest(self.folder)

    def has(self, table: str) -> bool:
        """Whether a finished stage made this table."""
        return any(table in entry.outputs for entry in self.entries.values())

    def table(self, table: str) -> pa.Table:
        """A finished table, whole. InputError where no stage has made it, or its shards aren't those that were made."""
        return check(pq.read_table(self._whole(table), partitioning=None), table)

    def batches(self, table: str, *, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """A finished table in parts, as another version may have made it too: its columns aren't checked."""
        for path in sorted(self._whole(table).glob("*.parquet")):
            with pq.ParquetFile(path, buffer_size=_BYTES_AT_ONCE) as file:
                yield from file.iter_batches(_ROWS_AT_ONCE, columns=columns)

    def parts(self, table: str, *, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """A finished table, or columns of it, in parts that aren't empty, each held to its contract by itself.

        Errors as of `table`, but that ids which stand twice are only found within a part.
        """
        schema = SCHEMAS[table]
        for path in sorted(self._whole(table).glob("*.parquet")):
            with pq.ParquetFile(path, buffer_size=_BYTES_AT_ONCE) as file:
                check_columns(file.schema_arrow.names, table)
                wanted = [name for name in schema.names if columns is None or name in columns]
                for batch in file.iter_batches(_ROWS_AT_ONCE, columns=wanted):
                    if not batch.num_rows:
                        continue
                    if columns is None:
                        yield from check(pa.Table.from_batches([batch]), table).to_batches()
                    else:
                        yield batch.select(wanted)

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """An empty folder for what is only needed until the block ends; after a kill it stays until the next one."""
        folder = self.folder / ".partial" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
            with suppress(OSError):  # other work is unfinished there
                folder.parent.rmdir()

    def columns(self, table: str) -> list[str]:
        """The columns that a finished table has on the disk."""
        first = min(self._whole(table).glob("*.parquet"), default=None)
        return list(pq.read_schema(first).names) if first else []

    def fingerprint(self, table: str) -> str:
        """SHA-256 of a finished table's shards, from the manifest. InputError where no stage has made it."""
        for entry in self.entries.values():
            if table in entry.outputs:
                return str(entry.outputs[table]["sha256"])
        made = ", ".join(sorted(table for entry in self.entries.values() for table in entry.outputs)) or "nothing"
        raise InputError(f"{self.folder} has no finished {table} (it has {made}): run the stage that makes them first.")

    def _whole(self, table: str) -> Path:
        """The folder of a finished table, held to the hash that its stage left."""
        folder = self.folder / table
        if self.fingerprint(table) != fingerprint(folder):
            raise InputError(
                f"{folder} isn't as it was made (a file is missing, changed or new): bring it back from a copy, or "
                "remove the folder and run the stage that makes it again."
            )
        return folder

    def stage(
        self,
        name: str,
        *,
        tables: Sequence[str],
        inputs: Mapping[str, str],
        settings: Mapping[str, Any],
        seed: int = 0,
        again: Callable[[Entry], bool] = lambda entry: False,
    ) -> "Stage":
        """Begin, go on with, or find finished the stage `name`, which makes `tables`.

        inputs: name -> SHA-256 of everything read; settings: JSON data that shapes the result. Where the stage
        is finished with the same key, `stage.entry` is set and there is nothing to do, unless `again` says of the
        entry that it lacks what there may be now. SettingsChangedError where it is finished with another key and the
        run may not replace it.
        """
        key = stage_key(inputs, settings, seed)
        found = self.entries.get(name)
        if found and found.key == key and all((self.folder / table).is_dir() for table in tables):
            shutil.rmtree(self.folder / ".partial" / name, ignore_errors=True)  # of a kill in the commit's last step
            return Stage(self, name, tables, key, None if again(found) else found)
        if found and found.key != key and not self.replace:
            raise SettingsChangedError(f"{self.folder}: {changed(name, found.key, key)}")
        stage = Stage(self, name, tables, key, None)
        return Stage(self, name, tables, key, None) if stage.entry and again(stage.entry) else stage

    @property
    def prompts(self) -> dict[str, Any]:
        """The words by which annotators of this run were asked, as plain data, by the hash that votes name."""
        path = self.folder / _PROMPTS
        try:
            return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}
        except (ValueError, TypeError):
            raise InputError(
                f"{path} isn't as it was written: remove it; the card will name prompts by hash."
            ) from None

    def keep_prompts(self, prompts: Mapping[str, Any]) -> None:
        """Keep words by their hash, beside those that are kept."""
        known = self.prompts
        if prompts.keys() - known.keys():
            write_json(self.folder / _PROMPTS, dict(sorted({**known, **prompts}.items())))

    def note(self, **values: Any) -> None:
        """Append to the side table of times and costs."""
        with (self.folder / "timings.jsonl").open("a") as file:
            file.write(json.dumps(values) + "\n")

    def write_entry(self, entry: Entry | None, name: str) -> None:
        """Set, or with None remove, what the manifest says of the stage `name`."""
        entries = {stage: found.as_dict() for stage, found in self.entries.items() if stage != name}
        if entry:
            entries[name] = entry.as_dict()
        write_json(self.folder / "manifest.json", {"format": 1, "kind": "run", "stages": entries})


class Stage:
    """A stage at work in a run: writes shards, knows which are there already, commits them all at once."""

    def __init__(self, run: Run, name: str, tables: Sequence[str], key: dict[str, Any], entry: Entry | None):
        self.run = run
        self.name = name
        self.tables = tables
        self.key = key
        self._began = time.monotonic()
        self._partial = run.folder / ".partial" / name
        self.entry = entry or self._go_on()

    @property
    def scratch(self) -> Path:
        """A folder for what the stage needs until it is committed; it goes with it, and may stay after a kill."""
        return self._partial / "scratch"

    def has(self, index: int) -> bool:
        """Whether shard `index` was finished, in this process or one that was killed."""
        return (self._partial / f"{index:05}.json").exists()

    def write(self, index: int, tables: Mapping[str, pa.Table], tally: Tally) -> None:
        """Write shard `index` of each of the stage's tables, checked against their contracts, and its tally."""
        for name in self.tables:
            folder = self._partial / name
            folder.mkdir(exist_ok=True)
            write_parquet(folder / f"{index:05}.parquet", check(tables[name], name))
        write_json(self._partial / f"{index:05}.json", tally.as_dict())

    def commit(self) -> Entry:
        """Move the shards to their place and name the stage as finished in the manifest."""
        tally = Tally()
        for path in sorted(self._partial.glob("[0-9]*.json")):
            tally.add(Tally.from_dict(json.loads(path.read_text())))
        outputs = {}
        for name in self.tables:
            (self._partial / name).mkdir(exist_ok=True)
            outputs[name] = {"rows": _rows(self._partial / name), "sha256": fingerprint(self._partial / name)}
        entry = Entry(self.name, self.key, outputs, tally, versions(), self.run.folder / self.tables[0])
        write_json(self._partial / "entry.json", entry.as_dict())
        self._move(entry)
        self.run.note(stage=self.name, seconds=round(time.monotonic() - self._began, 3))
        return entry

    def _go_on(self) -> Entry | None:
        """Begin, or keep what a killed process has left; if it was killed while it committed, end that."""
        start_partial(self._partial, self.key)
        decided = self._partial / "entry.json"
        if not decided.exists():
            return None
        entry = Entry.from_dict(self.name, json.loads(decided.read_text()), self.run.folder / self.tables[0])
        self._move(entry)
        return entry

    def _move(self, entry: Entry) -> None:
        self._forget_what_was_made_of(self.run.entries.get(self.name), entry)
        self.run.write_entry(None, self.name)  # until the end the stage isn't finished
        for name in self.tables:
            if (self._partial / name).exists():  # a kill may have come after some were moved
                shutil.rmtree(self.run.folder / name, ignore_errors=True)
                (self._partial / name).rename(self.run.folder / name)
        self.run.write_entry(entry, self.name)
        shutil.rmtree(self._partial)

    def _forget_what_was_made_of(self, old: Entry | None, new: Entry) -> None:
        """Where the same stage brings more than the last time, what was made of that isn't finished any more."""
        if old is None or old.key != new.key:
            return
        stale = {old.outputs[name]["sha256"] for name in self.tables if old.outputs[name] != new.outputs[name]}
        for stage, entry in self.run.entries.items():
            if stale & set(entry.key["inputs"].values()):
                self.run.write_entry(None, stage)


def _rows(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
