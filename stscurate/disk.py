"""Files that are there whole or not at all, locks that fall with their process, and hashes of what is on the disk."""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from stscurate.errors import RunBusyError


def fingerprint(path: Path, only: Sequence[str] = ()) -> str:
    """SHA-256 of a file, or of a folder's files with their relative names; hidden files are left out.

    only: patterns of relative names (`Path.match`), of which a file must fit one; none for all files.
    """
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    digest = hashlib.sha256()
    for file_path in sorted(path.rglob("*")):
        relative = file_path.relative_to(path)
        if only and not any(relative.match(pattern) for pattern in only):
            continue
        if file_path.is_file() and not any(part.startswith(".") for part in relative.parts):
            digest.update(f"{relative.as_posix()}\0{fingerprint(file_path)}\n".encode())
    return digest.hexdigest()


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
def locked(path: Path, folder: Path | None = None) -> Iterator[None]:
    """Hold an advisory lock; it falls with the process, so a kill leaves none behind.

    folder: where the work is done, for RunBusyError; the lock's own without one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunBusyError(
                f"Another process is working in {folder or path.parent}: wait for it to end, or name another --out."
            ) from None
        yield
