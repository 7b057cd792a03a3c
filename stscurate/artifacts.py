"""Folders that appear whole or not at all: a model, an evaluation, a published set."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from stscurate.disk import locked, sync_tree, write_json
from stscurate.errors import InputError, RunBusyError, SettingsChangedError
from stscurate.manifest import Entry, changed, partial_key, read_manifest, stage_key, start_partial, versions
from stscurate.records import Tally


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

        InputError where the folder holds files that aren't ours, or can't take another's place; SettingsChangedError
        where it was made otherwise.
        """
        key = stage_key(inputs, settings, seed)
        folder = _place(folder)
        work = _work(folder)
        _put_back(folder, work, key)
        found = read_manifest(folder).get(stage)
        # --yes replaces a result of this stage alone, never a run or anything else.
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file, and what {stage} makes is a folder: name another.")
        if not found and folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} holds files that aren't a result of {stage}: name another folder.")
        entry = found if found and found.key == key else None
        if found and not entry and not replace:
            raise SettingsChangedError(f"{folder}: {changed(stage, found.key, key)}")
        artifact = cls(folder, entry=entry, work=work, stage=stage, key=key)
        if entry:
            artifact._tidy()
            yield artifact
            return
        if folder.resolve() == Path.cwd():
            raise InputError(
                f"{folder} is the folder that you work in, and what {stage} makes takes its place whole: name one in "
                "it, as in --out results."
            )
        work.mkdir(parents=True, exist_ok=True)
        with locked(artifact._lock, folder):
            start_partial(work, key)
            try:
                yield artifact
            except InputError:  # what was given has to change, and with it the key
                artifact.abandon()
                raise

    @property
    def result(self) -> Path:
        """The folder that `commit` will move into place; made empty by `clear_result`."""
        return self.work / "result"

    @property
    def replaced(self) -> Path:
        """Where `commit` puts what stood in the folder; it stays there after a kill, until the next commit."""
        return self.work / "replaced"

    def clear_result(self) -> Path:
        """An empty result folder, whatever a killed process left in it."""
        shutil.rmtree(self.result, ignore_errors=True)
        self.result.mkdir()
        return self.result

    def commit(self, outputs: dict[str, dict[str, Any]], tally: Tally) -> Entry:
        """Write the manifest into the result, move it into place, and remove what the work has left."""
        entry = Entry(self.stage, self.key, outputs, tally, versions(), self.folder)
        write_json(
            self.result / "manifest.json", {"format": 1, "kind": self.stage, "stages": {self.stage: entry.as_dict()}}
        )
        sync_tree(self.result)
        if self.folder.exists():
            shutil.rmtree(self.replaced, ignore_errors=True)
            self.folder.rename(self.replaced)  # --yes was given, or it is empty; a removal could be killed half-way
        self.result.rename(self.folder)
        self.abandon()
        return entry

    def abandon(self) -> None:
        """Remove what the work has left, where it isn't to be gone on with."""
        shutil.rmtree(self.work)
        self._lock.unlink(missing_ok=True)

    @property
    def _lock(self) -> Path:
        return _lock(self.work)

    def _tidy(self) -> None:
        """Remove what a kill in the commit's last steps has left, unless another process is at work there."""
        if self._lock.exists():
            with suppress(RunBusyError), locked(self._lock):
                shutil.rmtree(self.work, ignore_errors=True)
                self._lock.unlink(missing_ok=True)


def _put_back(folder: Path, work: Path, key: dict[str, Any]) -> None:
    """Where a kill came between a commit's two renames and other work is to be done now, what stood there stands again.

    The same work goes on instead, and reads what it needs of the old where that lies.
    """
    old = work / "replaced"
    if not old.is_dir() or folder.exists() or partial_key(work) == key:
        return
    with locked(_lock(work), folder):
        if old.is_dir() and not folder.exists():
            old.rename(folder)


def unfinished(folder: Path) -> tuple[Path, dict[str, Any] | None]:
    """Where work on that folder goes on, and the key of what lies there; None where there is nothing."""
    work = _work(_place(folder))
    return work, partial_key(work)


def _place(folder: Path) -> Path:
    """The folder by a name that one beside it can be made of; where it is a link, what that leads to.

    InputError for a link that leads nowhere, and for the root.
    """
    if folder.is_symlink() and not folder.exists():
        raise InputError(f"{folder} is a link that leads nowhere: make the folder that it names, or name another.")
    place = folder.resolve() if folder.is_symlink() or folder.name in ("", "..") else folder
    if not place.name:
        raise InputError(f"{folder} can't be made: name another folder.")
    return place


def _lock(work: Path) -> Path:
    return work.with_name(work.name + ".lock")


def _work(folder: Path) -> Path:
    return folder.with_name(folder.name + ".partial")
