"""Numbers that people gave to pairs, from a file of theirs: who gave which number to which pair, on which scale.

`matched` finds the pairs that are meant, which is what votes of people and gold of a run's pairs both need.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from stscurate import cells
from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.files import RawTable, read_table
from stscurate.roles import parse_scale, parted
from stscurate.store import Run

_IDS = ("pair_id", "id")
_TEXTS = (("text1", "sentence1", "query", "anchor"), ("text2", "sentence2", "positive"))
_RATERS = tuple(f"{name}{end}" for name in ("rater", "annotator", "worker") for end in ("", "_id"))
_NUMBERS = ("score", "rating", "raw", "vote", "label", "labels")
# rater1, score_anna; but not what tells of a score, such as score_std.
_ABOUT = "s|ids?|name|std|sd|stdev|var|variance|count|n|num|number|at|time|date|min|max|range|type|scale|source|comment"
_COLUMN_OF_RATER = re.compile(
    rf"(?:rater|annotator|worker|score|rating|vote)(?![ _-]?(?:{_ABOUT})$)[ _-]?\w+", re.IGNORECASE
)
_USUAL = ((0, 1), (0, 5), (0, 10), (0, 100), (-1, 1))


class Rating(NamedTuple):
    """A number that somebody gave to a pair, named by its id, its two texts, or both. rater: "" if nobody is named."""

    rater: str
    value: float
    pair_id: str | None
    texts: tuple[str, str] | None = None


@dataclass(frozen=True)
class Ratings:
    """What a file holds, in its order. low, high: the scale's ends. empty: cells without a number."""

    name: str
    fingerprint: str
    rows: list[Rating]
    low: float
    high: float
    empty: int

    @property
    def scale(self) -> str:
        """As votes name it: "0..5"."""
        return f"{self.low:g}..{self.high:g}"

    def matched(self, pairs: Iterable[tuple[str, str, str]]) -> tuple[dict[str, list[Rating]], int]:
        """The ratings of each of the pairs (id, text1, text2) by its id, and how many belong to none of them.

        An id counts before texts, which are found in either order, and whatever spaces stand between their words; but
        where the texts beside it are those of another pair, it is of another numbering, and they count. A pair of texts
        that stands twice in the run gets its ratings in both places.
        """
        keys = {pair_id: _key(text1, text2) for pair_id, text1, text2 in pairs}
        all_texts = set(keys.values())
        by_id: dict[str, list[int]] = {}
        by_texts: dict[tuple[str, str], list[int]] = {}
        for at, row in enumerate(self.rows):
            key = _key(*row.texts) if row.texts else None
            if row.pair_id in keys and (key == keys[row.pair_id] or key not in all_texts):
                by_id.setdefault(row.pair_id, []).append(at)
            elif key:
                by_texts.setdefault(key, []).append(at)
        found = {pair_id: sorted(by_id.get(pair_id, []) + by_texts.get(key, [])) for pair_id, key in keys.items()}
        used = {at for rows in found.values() for at in rows}
        given = {pair_id: [self.rows[at] for at in rows] for pair_id, rows in found.items() if rows}
        return given, len(self.rows) - len(used)

    def gold(self, pairs: Iterable[tuple[str, str, str]]) -> dict[str, float]:
        """Each rated pair's mean over all ratings, brought to 0..1, by its id: to calibrate annotators by."""
        found, _ = self.matched(pairs)
        width = self.high - self.low
        return {
            pair_id: (sum(row.value for row in rows) / len(rows) - self.low) / width for pair_id, rows in found.items()
        }


def read_ratings(path: Path, *, scale: str | None = None) -> Ratings:
    """Ratings of a file (Parquet, CSV, TSV, JSON lines): pair_id, or text1 and text2; and numbers of one rater or more.

    Numbers stand in a column score (rating, vote, label), beside a column `rater` where several people's are in one
    column; or in a column for each rater, named rater1, score_anna or the like, beside which a column `score` is taken
    for their mean and left out. scale: "0-5"; without it the first of 0-1, 0-5, 0-10, 0-100 and -1-1 that holds all.

    InputError names the place of a cell that is no number, or off the scale.
    """
    raw = read_table(path)
    ids = next((name for name in _IDS if name in raw.columns), None)
    texts = [next((name for name in usual if name in raw.columns), None) for usual in _TEXTS]
    if ids is None and None in texts:
        raise InputError(f"{path} names no pairs: it needs a column pair_id, or text1 and text2.{parted(raw.columns)}")
    by = next((name for name in _RATERS if name in raw.columns), None)
    columns = _columns(raw, by, taken={ids, by, *texts})
    rows: list[Rating] = []
    places: list[str] = []
    empty = 0
    for row in range(len(raw)):
        for rater, column in columns:
            value = raw.columns[column][row]
            if value is None or value == "":
                empty += 1
                continue
            number = cells.as_number(value)
            if not math.isfinite(number):
                raise InputError(f"{raw.place(row)}: {column} holds {value!r:.40}, which is no number: mend the cell.")
            who = (cells.as_text(raw.columns[by][row]) or "") if by else rater
            pair_id, both = _pair(raw, row, ids, texts)
            rows.append(Rating(who, number, pair_id, both))
            places.append(raw.place(row))
    if not rows:
        raise InputError(f"{path} holds no number: its column {columns[0][1]} is empty.")
    low, high = _ends(path, [row.value for row in rows], scale)
    for row_, place in zip(rows, places, strict=True):
        if not low <= row_.value <= high:
            raise InputError(f"{place}: {row_.value:g} isn't within {low:g} to {high:g}: mend the cell, or the scale.")
    return Ratings(path.resolve().name, fingerprint(path), rows, low, high, empty)


def run_ratings(run: Run) -> Ratings:
    """What the pairs of a run are labelled with: their scores, or labels as 0 and 1."""
    columns = (run.table("pairs")[name].to_pylist() for name in ("pair_id", "score", "label"))
    said = [(pair_id, label if score is None else score) for pair_id, score, label in zip(*columns, strict=True)]
    rows = [Rating("", float(value), pair_id) for pair_id, value in said if value is not None]
    if not rows:
        raise InputError(f"{run.folder} has no labelled pair: give a file of ratings instead.")
    return Ratings(run.folder.name, run.fingerprint("pairs"), rows, 0.0, 1.0, len(said) - len(rows))


def _columns(raw: RawTable, by: str | None, *, taken: set[str | None]) -> list[tuple[str, str]]:
    """(rater, column) of each column of numbers."""
    free = [name for name in raw.columns if name not in taken]
    several = [name for name in free if _COLUMN_OF_RATER.fullmatch(name)]
    single = next((name for name in _NUMBERS if name in free), None)
    if several and not by:
        if single:
            _check_mean(raw, single, several)
        return [(name, name) for name in several]
    if single is None:
        raise InputError(
            f"{raw.name} has no column of numbers: it needs score, or one a rater (rater1, rater2); "
            f"it has {', '.join(raw.columns)}."
        )
    return [("", single)]


def _check_mean(raw: RawTable, score: str, raters: list[str]) -> None:
    """InputError where `score` is nothing between the numbers that are taken for those of the raters."""
    for row in range(len(raw)):
        mean = cells.as_number(raw.columns[score][row])
        given = [number for name in raters if math.isfinite(number := cells.as_number(raw.columns[name][row]))]
        if given and math.isfinite(mean) and not min(given) - 0.01 <= mean <= max(given) + 0.01:
            raise InputError(
                f"{raw.place(row)}: {score} is {mean:g}, and no mean of {', '.join(raters)}, which look like ratings: "
                "rename what isn't a person's rating, or drop the column that isn't meant."
            )


def _pair(
    raw: RawTable, row: int, ids: str | None, texts: list[str | None]
) -> tuple[str | None, tuple[str, str] | None]:
    pair_id = cells.as_text(raw.columns[ids][row]) if ids else None
    one, two = (cells.text(raw, column, row) if column else None for column in texts)
    if pair_id is None and not (one and two):
        raise InputError(f"{raw.place(row)} names no pair: give its id, or its two texts.")
    return pair_id, (one, two) if one and two else None


def _ends(path: Path, values: list[float], scale: str | None) -> tuple[float, float]:
    if scale is not None:
        return parse_scale(scale)
    for low, high in _USUAL:
        if low <= min(values) and max(values) <= high:
            return float(low), float(high)
    raise InputError(
        f"{path} holds numbers from {min(values):g} to {max(values):g}: say on which scale, as in file:{path}#1-7."
    )


def _key(text1: str, text2: str) -> tuple[str, str]:
    one, two = sorted(" ".join(text.split()) for text in (text1, text2))
    return one, two
