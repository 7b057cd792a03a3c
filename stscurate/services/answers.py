"""Answers that were paid for or were slow, kept one by one so that no kill can lose them."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

_SCHEMA = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, kind TEXT NOT NULL, value BLOB NOT NULL)"
_MANY = 500  # below SQLite's smallest limit of variables in one statement


class Answers:
    """A SQLite file (WAL) of key -> bytes; each `put` is on the disk when it returns.

    `key` hashes everything that shapes an answer: change any part and it is asked anew.
    """

    def __init__(self, path: Path):
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(_SCHEMA)

    def __enter__(self) -> Self:
        """The open store."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The stored values of those of `keys` that are known."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, bytes] = {}
        for start in range(0, len(wanted), _MANY):
            part = wanted[start : start + _MANY]
            marks = ",".join("?" * len(part))
            found.update(self._connection.execute(f"SELECT key, value FROM answers WHERE key IN ({marks})", part))  # noqa: S608
        return found

    def put(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values under their keys, all or none, replacing older ones. kind: "vote", "embedding", ..."""
        rows = [(key, kind, value) for key, value in values.items()]
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", rows)
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def answer_key(**parts: Any) -> str:
    """SHA-256 of all that shapes an answer, as canonical JSON: `answer_key(model=..., messages=[...], seed=0)`."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def missing(keys: Sequence[str], known: Mapping[str, bytes]) -> list[int]:
    """Indices of the first occurrence of each key that isn't known: what is still to be asked."""
    first = {key: index for index, key in reversed(list(enumerate(keys)))}
    return sorted(index for key, index in first.items() if key not in known)
