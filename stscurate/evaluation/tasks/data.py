"""Texts with a group or a class each, of the user's own."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stscurate import cells
from stscurate.errors import InputError
from stscurate.methods.leaks import text_digest
from stscurate.tables import texts_with
from stscurate.wording import counted

FOLDS = 10  # of the cross-validation; a class with fewer texts isn't in all of them
_SPLITS = ("train", "validation", "test")
Row = tuple[str, str, str]


@dataclass(frozen=True)
class Grouped:
    """n texts and the number of each one's group, (n,). alone: how many have no other text in theirs."""

    name: str
    texts: list[str]
    groups: NDArray[np.int64]
    dropped: dict[str, int]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of texts and groups."""
        return _digest(self.texts, self.groups.tolist())

    @property
    def alone(self) -> int:
        """Texts whose group holds no other: candidates, and no queries."""
        return int((np.bincount(self.groups) == 1).sum())


@dataclass(frozen=True)
class Labelled:
    """n texts and the number of each one's class, (n,). splits: of each text, where the file has its own; else ()."""

    name: str
    texts: list[str]
    classes: list[str]  # by number, those to learn first
    labels: NDArray[np.int64]
    splits: tuple[str, ...]
    dropped: dict[str, int]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of texts, classes and splits."""
        return _digest(self.texts, self.classes, self.labels.tolist(), self.splits)

    @property
    def unlearnt(self) -> int:
        """Texts of the split test whose class has no text in train: nothing can tell it."""
        return int((~np.isin(self.labels[self.rows("test")], self.labels[self.rows("train")])).sum())

    def rows(self, split: str) -> NDArray[np.int64]:
        """Places of the split's texts."""
        return np.flatnonzero(np.array(self.splits) == split)


def read_groups(path: Path, *, columns: str | None = None) -> Grouped:
    """A file with columns text (sentence) and group; a text that its group holds already is left out.

    InputError where no group holds two texts.
    """
    dropped: Counter[str] = Counter()
    rows: dict[tuple[str, str], str] = {}
    for text, group, _ in _rows(path, "group", columns, dropped):
        key = group, text_digest(text)
        if key in rows:
            dropped["repeated_in_group"] += 1
        else:
            rows[key] = text
    numbers = {group: number for number, group in enumerate(dict.fromkeys(group for group, _ in rows))}
    places = np.array([numbers[group] for group, _ in rows], dtype=np.int64)
    if not (np.bincount(places, minlength=1) > 1).any():
        raise InputError(
            f"{path}: no group holds two different texts, and a text is to be found by those of its group."
        )
    return Grouped(path.resolve().name, list(rows.values()), places, dict(sorted((+dropped).items())))


def read_labels(path: Path, *, columns: str | None = None) -> Labelled:
    """A file with columns text (sentence) and label, of any kind; with a column split, its splits train and test.

    With these, texts of the test split are left out of the others, and the classes to learn are those of the split
    train. Without, each text counts once, and classes with fewer texts than there are folds are left out. InputError
    where fewer than two classes are left to learn.
    """
    dropped: Counter[str] = Counter()
    rows = list(_rows(path, "label", columns, dropped))
    own = {"train", "test"} <= {split for _, _, split in rows}
    rows = _by_splits(rows, dropped) if own else _once(rows, dropped)
    names = sorted({label for _, label, split in rows if split == "train" or not own})
    if len(names) < 2:
        where = f" (those with fewer than {FOLDS} texts are left out)" if dropped["rare_class"] else ""
        where = " in its split train" if own else where
        raise InputError(
            f"{path} has {counted(len(names), 'class', 'classes')} to learn{where}: a probe needs two at the least."
        )
    classes = [*names, *sorted({label for _, label, _ in rows} - set(names))]
    numbers = {label: number for number, label in enumerate(classes)}
    return Labelled(
        path.resolve().name,
        [text for text, _, _ in rows],
        classes,
        np.array([numbers[label] for _, label, _ in rows], dtype=np.int64),
        tuple(split for _, _, split in rows) if own else (),
        dict(sorted((+dropped).items())),
    )


def told_drops(dropped: Mapping[str, int]) -> str:
    """The rows left out, by reason, for a note."""
    return f"Left out: {', '.join(f'{reason} {rows:,}' for reason, rows in dropped.items()) or 'none'}."


def _digest(*content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _by_splits(rows: list[Row], dropped: Counter[str]) -> list[Row]:
    known = [row for row in rows if row[2] in _SPLITS]
    dropped["other_split"] += len(rows) - len(known)
    tested = {text_digest(text) for text, _, split in known if split == "test"}
    kept = [row for row in known if row[2] == "test" or text_digest(row[0]) not in tested]
    dropped["text_in_test"] += len(known) - len(kept)
    return kept


def _once(rows: list[Row], dropped: Counter[str]) -> list[Row]:
    first = {text_digest(text): (text, label, split) for text, label, split in reversed(rows)}
    dropped["repeated_text"] += len(rows) - len(first)
    found = list(reversed(first.values()))
    sizes = Counter(label for _, label, _ in found)
    kept = [row for row in found if sizes[row[1]] >= FOLDS]
    dropped["rare_class"] += len(found) - len(kept)
    return kept


def _rows(path: Path, role: Literal["group", "label"], columns: str | None, dropped: Counter[str]) -> Iterator[Row]:
    """Text, group or label, and split of each row that has the first two."""
    raw, roles = texts_with(path, role, columns=columns)
    for row in range(len(raw)):
        text, value = cells.text(raw, roles["text"], row), cells.as_text(raw.columns[roles[role]][row])
        if not text or not text.strip():
            dropped["empty_text"] += 1
        elif not value or not value.strip():
            dropped[f"no_{role}"] += 1
        else:
            yield text, value.strip(), cells.split(raw, row) or ""
