"""Texts of one split that stand in another, equal after normalisation or nearly so, in any set of splits."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa

from stscurate.errors import InputError
from stscurate.methods.near_duplicates import near_duplicates
from stscurate.methods.texts import normalise
from stscurate.tables import TextRow, text_rows

_NAMES = ("split", "place", "column", "text", "other_split", "other_place", "other_column", "other_text")
LEAKS = pa.schema(
    [*(pa.field(name, pa.string(), nullable=False) for name in _NAMES), pa.field("similarity", pa.float64(), False)]
)

Splits = Mapping[str, Sequence[TextRow]]


@dataclass(frozen=True)
class Leaks:
    """Counts of each split against each other one, and every text that leaks, by schema LEAKS, as it stands in each."""

    counts: list[dict[str, Any]]
    rows: pa.Table


def read_splits(
    files: Sequence[str], *, columns: str | None = None, scale: str | None = None
) -> dict[str, list[TextRow]]:
    """The splits by name, of files given as FILE or NAME=FILE, runs, and `datasets` folders.

    A row belongs to the split that it names ("NAME: train" where its file was given a name), else to its file's.
    columns and scale hold for all files. InputError where fewer than two splits are found, or a name stands twice.
    """
    splits: dict[str, list[TextRow]] = defaultdict(list)
    of_file: dict[str, str] = {}
    for given in dict.fromkeys(files):
        name, path = _named(given)
        for row in text_rows(path, columns=columns, scale=scale):
            split = (f"{name}: {row.split}" if name else row.split) if row.split else name or path.name
            if of_file.setdefault(split, given) != given:
                raise InputError(
                    f"{given} and {of_file[split]} both have a split {split}: name files, as in a={given}."
                )
            splits[split].append(row)
    if len(splits) < 2:
        raise InputError(
            f"Only one split was found ({', '.join(splits)}): give two files or more, or a file with a column split."
        )
    return dict(splits)


def find_leaks(splits: Splits, *, near: float | None = None) -> Leaks:
    """Compare every split with every other one.

    Texts are equal if `normalise` makes them so. near: texts with a Jaccard similarity of five-word sequences from
    there on (0.5 to 1) count too, where no equal one is found; of several the nearest. A text that leaks is listed
    once for each other split that holds it, beside the first of its copies there. Of the counts, "whole pairs" are
    rows whose two texts stand together in a row of the other split, in either order, and "gold differs" those of them
    whose gold isn't any that they have there.
    """
    indices = {name: _Index.of(rows) for name, rows in splits.items()}
    alike = _alike(indices, near) if near is not None else {}
    counts, found = [], []
    for one, other in permutations(splits, 2):
        leaks = [leak for row in splits[one] for leak in _of_row(row, indices[other], alike)]
        equal = {leak.row.place for leak in leaks if leak.similarity is None}
        whole = [(row.gold, indices[other].golds.get(_pair(row))) for row in splits[one] if len(row.texts) > 1]
        count: dict[str, Any] = {
            "split": one,
            "leaks into": other,
            "rows": len(splits[one]),
            "leaked rows": len(equal),
            "share": len(equal) / len(splits[one]),
            "texts": sum(len(row.texts) for row in splits[one]),
            "leaked texts": sum(leak.similarity is None for leak in leaks),
            "whole pairs": sum(golds is not None for _, golds in whole),
            "gold differs": sum(1 for gold, golds in whole if golds and gold is not None and gold not in golds),
        }
        if near is not None:
            count["rows near"] = len({leak.row.place for leak in leaks} - equal)
        counts.append(count)
        found += [leak.as_dict(one, other) for leak in leaks]
    return Leaks(counts, pa.Table.from_pylist(found, schema=LEAKS))


@dataclass(frozen=True)
class _Leak:
    """A row's text, and the first row of another split with the same text or (similarity is set) one near it."""

    row: TextRow
    column: str
    other: TextRow
    other_column: str
    similarity: float | None = None

    def as_dict(self, split: str, other_split: str) -> dict[str, Any]:
        """A row of LEAKS."""
        mine = (split, self.row.place, self.column, self.row.texts[self.column])
        theirs = (other_split, self.other.place, self.other_column, self.other.texts[self.other_column])
        found: dict[str, Any] = dict(zip(_NAMES, mine + theirs, strict=True))
        return found | {"similarity": 1.0 if self.similarity is None else self.similarity}


@dataclass(frozen=True)
class _Index:
    """Where each normalised text of a split first stands, and the gold of each pair of texts."""

    first: dict[str, tuple[TextRow, str]]
    golds: dict[tuple[str, ...], set[float]]

    @classmethod
    def of(cls, rows: Sequence[TextRow]) -> "_Index":
        first: dict[str, tuple[TextRow, str]] = {}
        golds: dict[tuple[str, ...], set[float]] = defaultdict(set)
        for row in rows:
            for column, text in row.texts.items():
                first.setdefault(normalise(text), (row, column))
            if len(row.texts) > 1:
                golds[_pair(row)] |= set() if row.gold is None else {row.gold}
        return cls(first, dict(golds))


def _of_row(row: TextRow, other: _Index, alike: Mapping[str, Sequence[tuple[float, str]]]) -> list[_Leak]:
    leaks = []
    for column, text in row.texts.items():
        key = normalise(text)
        near = next(((value, name) for value, name in alike.get(key, ()) if name in other.first), None)
        if key in other.first:
            leaks.append(_Leak(row, column, *other.first[key]))
        elif near:
            leaks.append(_Leak(row, column, *other.first[near[1]], similarity=near[0]))
    return leaks


def _alike(indices: Mapping[str, _Index], near: float) -> dict[str, list[tuple[float, str]]]:
    """For each text the texts near it, the nearest first."""
    texts = list(dict.fromkeys(text for index in indices.values() for text in index.first))
    alike: dict[str, list[tuple[float, str]]] = defaultdict(list)
    pairs, similarity = near_duplicates(texts, threshold=near)
    for (one, other), value in zip(pairs.tolist(), similarity.tolist(), strict=True):
        alike[texts[one]].append((value, texts[other]))
        alike[texts[other]].append((value, texts[one]))
    return {text: sorted(found, key=lambda pair: -pair[0]) for text, found in alike.items()}


def _pair(row: TextRow) -> tuple[str, ...]:
    return tuple(sorted(normalise(text) for text in row.texts.values()))


def _named(given: str) -> tuple[str | None, Path]:
    name, equals, path = given.partition("=")
    if not equals or Path(given).exists():
        return None, Path(given)
    if not name or not path:
        raise InputError(f"{given}: give it as NAME=FILE.")
    return name, Path(path)
