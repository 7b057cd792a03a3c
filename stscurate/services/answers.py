"""Answers that were paid for or were slow, kept one by one so that no kill can lose them."""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

_SCHEMA = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, kind TEXT NOT NULL, value BLOB NOT NULL)"
_MANY = 500  # below SQLite's smallest limit of variables in one statement


class Answers:
    """A SQLite file (WAL) of key -> bytes; each `put` is on the disk when it returns.

    synced: False where asking again costs little: then a `put` survives a kill, but the last ones may be lost where
    the power fails, and none waits for the disk.

    `key` hashes everything that shapes an answer: change any part and it is asked anew. What is replaced or deleted
    is overwritten in the file: nothing of it can be read there after `seal`.
    """

    def __init__(self, path: Path, *, synced: bool = True):
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
        self._connection.execute("PRAGMA secure_delete=ON")
        self._connection.execute(_SCHEMA)

    def __enter__(self) -> Self:
        """The open store."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def get(self, keys: Iterable[str], kind: str | None = None) -> dict[str, bytes]:
        """The stored values of those of `keys` that are known, or only those of one kind."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, bytes] = {}
        for start in range(0, len(wanted), _MANY):
            part = wanted[start : start + _MANY]
            query = f"SELECT key, value FROM answers WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608
            if kind is not None:
                query, part = f"{query} AND kind = ?", [*part, kind]
            found.update(self._connection.execute(query, part))
        return found

    def put(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values under their keys, all or none, replacing older ones. kind: "vote", "failed", ..."""
        rows = [(key, kind, value) for key, value in values.items()]
        self._all_or_none(lambda: self._connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", rows))

    def keys(self, kind: str) -> set[str]:
        """The keys of all answers of a kind."""
        return {key for (key,) in self._connection.execute("SELECT key FROM answers WHERE kind = ?", (kind,))}

    def items(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """All answers of a kind, some hundred in memory at a time; they may be replaced or deleted meanwhile."""
        keys = sorted(self.keys(kind))
        for start in range(0, len(keys), _MANY):
            yield from self.get(keys[start : start + _MANY]).items()

    def delete(self, keys: Iterable[str]) -> None:
        """Delete the answers of these keys, all or none, and seal the file."""
        self._all_or_none(
            lambda: self._connection.executemany("DELETE FROM answers WHERE key = ?", ((key,) for key in keys))
        )
        self.seal()

    def seal(self) -> None:
        """Leave nothing behind of what was replaced or deleted, neither in the file nor in its write-ahead log.

        The file is made smaller where a quarter of it or more is free, and the disk has room for doing that.
        """
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages, free = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")
        )
        if free * 4 >= pages:
            with suppress(sqlite3.OperationalError):  # a full disk: what was deleted is overwritten all the same
                self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _all_or_none(self, change: Callable[[], object]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            change()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # a full disk has ended it already
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def answer_key(**parts: Any) -> str:
    """SHA-256 of all that shapes an answer, as canonical JSON: `answer_key(model=..., messages=[...], seed=0)`."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
