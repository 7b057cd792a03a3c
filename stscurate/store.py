"""State on disk: a run folder of finished stages that any kill leaves whole.

    runs/demo/
      manifest.json            per finished stage: inputs, settings, seed, versions, rows, drops
      pairs/00000.parquet ...  the tables of the stages, in shards
      answers.sqlite           answers that were paid for or were slow (services/cache.py)
      timings.jsonl            the side table of times: nothing else here depends on the clock
      .partial/STAGE/          a stage that isn't finished: its shards so far, each with its tally

A shard is written beside its place, flushed and renamed, its tally last: a shard with a tally is whole. When all
are there the stage's entry is written, the folders move to their place, and the manifest takes the entry over.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from stscurate import __version__
from stscurate.errors import InputError, RunBusyError, SettingsChangedError
from stscurate.records import Tally, check

_VERSIONS_OF = ("numpy", "pyarrow", "sentence-transformers", "torch", "transformers")


@dataclass(frozen=True)
class Entry:
    """What the manifest says of a finished stage; `fresh` is False where it was found finished."""

    stage: str
    key: dict[str, Any]  # inputs, settings, seed, stscurate version: what a rerun must match
    outputs: dict[str, dict[str, Any]]  # table -> rows, sha256
    tally: Tally
    versions: dict[str, str]  # of the packages that shaped the result
    fresh: bool = True

    @property
    def rows(self) -> int:
        """Rows of the stage's first table."""
        return next((int(output["rows"]) for output in self.outputs.values()), 0)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as it stands in the manifest."""
        return {**self.key, "versions": self.versions, "outputs": self.outputs, **self.tally.as_dict()}

    @classmethod
    def from_dict(cls, stage: str, data: Mapping[str, Any]) -> "Entry":
        """The entry that `as_dict` wrote, marked as found."""
        key = {name: data[name] for name in ("inputs", "seed", "settings", "stscurate")}
        return cls(stage, key, dict(data["outputs"]), Tally.from_dict(data), dict(data["versions"]), fresh=False)


class Run:
    """A run folder, held by this process alone while it is open.

    `replace` says that a finished stage with other settings may be made anew (the command line's --yes).
    """

    def __init__(self, folder: Path, *, replace: bool = False):
        self.folder = folder
        self.replace = replace

    @classmethod
    @contextmanager
    def open(cls, folder: Path, *, replace: bool = False) -> Iterator[Self]:
        """Create the folder if needed and lock it. RunBusyError while another process holds it."""
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file: --out names a folder.")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / ".lock").exists():
            raise InputError(f"{folder} holds files that aren't a run: name an empty or a new folder with --out.")
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock"):
            yield cls(folder, replace=replace)

    @property
    def entries(self) -> dict[str, Entry]:
        """The finished stages by name, in the order in which they were finished."""
        path = self.folder / "manifest.json"
        if not path.exists():
            return {}
        return {name: Entry.from_dict(name, data) for name, data in json.loads(path.read_text())["stages"].items()}

    def has(self, table: str) -> bool:
        """Whether a finished stage made this table."""
        return any(table in entry.outputs for entry in self.entries.values())

    def table(self, table: str) -> pa.Table:
        """A finished table, whole. InputError where no stage has made it."""
        self.fingerprint(table)
        return check(pq.read_table(self.folder / table, partitioning=None), table)

    def fingerprint(self, table: str) -> str:
        """SHA-256 of a finished table's shards, from the manifest. InputError where no stage has made it."""
        for entry in self.entries.values():
            if table in entry.outputs:
                return str(entry.outputs[table]["sha256"])
        made = ", ".join(sorted(table for entry in self.entries.values() for table in entry.outputs)) or "nothing"
        raise InputError(f"{self.folder} has no finished {table} (it has {made}): run the stage that makes them first.")

    def stage(
        self,
        name: str,
        *,
        tables: Sequence[str],
        inputs: Mapping[str, str],
        settings: Mapping[str, Any],
        seed: int = 0,
    ) -> "Stage":
        """Begin, go on with, or find finished the stage `name`, which makes `tables`.

        inputs: name -> SHA-256 of everything read; settings: JSON data that shapes the result. Where the stage
        is finished with the same key, `stage.entry` is set and there is nothing to do. SettingsChangedError
        where it is finished with another key and the run may not replace it.
        """
        key = stage_key(inputs, settings, seed)
        found = self.entries.get(name)
        if found and found.key == key and all((self.folder / table).is_dir() for table in tables):
            shutil.rmtree(self.folder / ".partial" / name, ignore_errors=True)  # of a kill in the commit's last step
            return Stage(self, name, tables, key, found)
        if found and not self.replace:
            raise SettingsChangedError(f"{self.folder}: {changed(name, found.key, key)}")
        return Stage(self, name, tables, key, None)

    def write_entry(self, entry: Entry | None, name: str) -> None:
        """Set, or with None remove, what the manifest says of the stage `name`."""
        entries = {stage: found.as_dict() for stage, found in self.entries.items() if stage != name}
        if entry:
            entries[name] = entry.as_dict()
        write_json(self.folder / "manifest.json", {"format": 1, "stages": entries})


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
        entry = Entry(self.name, self.key, outputs, tally, _versions())
        write_json(self._partial / "entry.json", entry.as_dict())
        self._move(entry)
        with (self.run.folder / "timings.jsonl").open("a") as file:
            file.write(json.dumps({"stage": self.name, "seconds": round(time.monotonic() - self._began, 3)}) + "\n")
        return entry

    def _go_on(self) -> Entry | None:
        """Begin, or keep what a killed process has left; if it was killed while it committed, end that."""
        start_partial(self._partial, self.key)
        decided = self._partial / "entry.json"
        if not decided.exists():
            return None
        entry = Entry.from_dict(self.name, json.loads(decided.read_text()))
        self._move(entry)
        return entry

    def _move(self, entry: Entry) -> None:
        self.run.write_entry(None, self.name)  # until the end the stage isn't finished
        for name in self.tables:
            if (self._partial / name).exists():  # a kill may have come after some were moved
                shutil.rmtree(self.run.folder / name, ignore_errors=True)
                (self._partial / name).rename(self.run.folder / name)
        self.run.write_entry(entry, self.name)
        shutil.rmtree(self._partial)


class Artifact:
    """A folder that appears whole or not at all (a model, a published set), with a manifest.json inside.

    Work goes on in `work`, a folder beside its place that survives a kill; `commit` renames the result into place.
    """

    def __init__(self, folder: Path, *, entry: Entry | None, work: Path, stage: str, key: dict[str, Any]):
        self.folder = folder
        self.entry = entry
        self.work = work
        self.stage = stage
        self.key = key

    @classmethod
    @contextmanager
    def open(
        cls,
        folder: Path,
        *,
        stage: str,
        inputs: Mapping[str, str],
        settings: Mapping[str, Any],
        seed: int = 0,
        replace: bool = False,
    ) -> Iterator[Self]:
        """Begin, go on with, or find finished (`entry` is set) the folder. Arguments as in Run.stage.

        InputError where the folder holds files that aren't ours; SettingsChangedError where it was made otherwise.
        """
        key = stage_key(inputs, settings, seed)
        work = folder.with_name(folder.name + ".partial")
        manifest = folder / "manifest.json"
        entry = None
        if manifest.exists():
            stages = json.loads(manifest.read_text()).get("stages", {})
            found = Entry.from_dict(stage, stages[stage]) if stage in stages else None
            if found and found.key == key:
                entry = found
            elif not replace:
                what = changed(stage, found.key, key) if found else f"it isn't the result of {stage}"
                raise SettingsChangedError(f"{folder}: {what}")
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} holds files that aren't a result of {stage}: name another folder with --out.")
        if entry:
            shutil.rmtree(work, ignore_errors=True)  # of a kill in the commit's last step
            yield cls(folder, entry=entry, work=work, stage=stage, key=key)
            return
        work.mkdir(parents=True, exist_ok=True)
        with locked(work.with_name(work.name + ".lock")):
            start_partial(work, key)
            yield cls(folder, entry=None, work=work, stage=stage, key=key)

    @property
    def result(self) -> Path:
        """The folder that `commit` will move into place; made empty by `clear_result`."""
        return self.work / "result"

    def clear_result(self) -> Path:
        """An empty result folder, whatever a killed process left in it."""
        shutil.rmtree(self.result, ignore_errors=True)
        self.result.mkdir()
        return self.result

    def commit(self, outputs: dict[str, dict[str, Any]], tally: Tally) -> Entry:
        """Write the manifest into the result, move it into place, and remove what the work has left."""
        entry = Entry(self.stage, self.key, outputs, tally, _versions())
        write_json(self.result / "manifest.json", {"format": 1, "stages": {self.stage: entry.as_dict()}})
        sync_tree(self.result)
        replaced = self.work / "replaced"
        shutil.rmtree(replaced, ignore_errors=True)
        if self.folder.exists():
            self.folder.rename(replaced)  # --yes was given, or it is empty; by a rename, since a removal can be killed
        self.result.rename(self.folder)
        self.abandon()
        return entry

    def abandon(self) -> None:
        """Remove what the work has left, where it isn't to be gone on with."""
        shutil.rmtree(self.work)
        self.work.with_name(self.work.name + ".lock").unlink(missing_ok=True)


def stage_key(inputs: Mapping[str, str], settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What must be equal for a finished stage to be used again, as JSON gives it back."""
    key = {"stscurate": __version__, "inputs": dict(inputs), "settings": dict(settings), "seed": seed}
    return dict(json.loads(json.dumps(key, sort_keys=True)))


def changed(stage: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """A sentence that names the differences between two keys, with the mend."""
    parts = []
    for group in ("inputs", "settings"):
        for name in sorted(old[group].keys() | new[group].keys()):
            before, after = old[group].get(name), new[group].get(name)
            if before != after:
                parts.append(f"{name} changed" if group == "inputs" else f"{name} was {before!r}, now {after!r}")
    parts += [f"{name} was {old[name]}, now {new[name]}" for name in ("seed", "stscurate") if old[name] != new[name]]
    mend = "Name another --out to keep both, or add --yes to make it anew."
    return f"{stage} was made otherwise ({'; '.join(parts)}). {mend}"


def fingerprint(path: Path) -> str:
    """SHA-256 of a file, or of a folder's files with their relative names; hidden files are left out."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    digest = hashlib.sha256()
    for file_path in sorted(path.rglob("*")):
        relative = file_path.relative_to(path)
        if file_path.is_file() and not any(part.startswith(".") for part in relative.parts):
            digest.update(f"{relative.as_posix()}\0{fingerprint(file_path)}\n".encode())
    return digest.hexdigest()


def start_partial(folder: Path, key: dict[str, Any]) -> None:
    """Keep a killed process's work in `folder` if it was for the same key; begin empty otherwise."""
    key_file = folder / "key.json"
    if not key_file.exists() or json.loads(key_file.read_text()) != key:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_json(key_file, key)


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a shard so that it is there whole or not at all."""
    with atomic(path) as file:
        pq.write_table(table, file, compression="zstd")


def write_json(path: Path, data: Any) -> None:
    """Write JSON so that it is there whole or not at all."""
    with atomic(path) as file:
        file.write((json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """A file open for bytes which takes the name `path` only when it is complete and on the disk."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_tree(folder: Path) -> None:
    """Flush every file of a folder to the disk, so that a rename can't outlive its content."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock; it falls with the process, so a kill leaves none behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunBusyError(
                f"Another process is working in {path.parent}: wait for it to end, or name another --out."
            ) from None
        yield


def _rows(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))


def _versions() -> dict[str, str]:
    installed = {}
    for package in _VERSIONS_OF:
        with suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed
