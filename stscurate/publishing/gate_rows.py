"""Gates that compare rows: scores, pairs and components in two splits, near duplicates, licences of sources."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.methods.leaks import text_digest
from stscurate.methods.near_duplicates import near_duplicates
from stscurate.publishing.gate_texts import MASKED, Place, texts_of
from stscurate.resources import definition

NEAR = 0.8
_ENOUGH = 100  # scores: of fewer that are alike nothing follows
_LOW = 0.2  # a scale of 0 to 5 that was divided twice ends here


def flat_scores(pairs: pa.Table) -> Iterator[str]:
    """A sentence where 100 scores or more are all the same, or none is above 0.2."""
    if pairs.num_rows < _ENOUGH:
        return
    ends = pc.min_max(pairs["score"]).as_py()
    if ends["min"] == ends["max"]:
        yield f"all {pairs.num_rows:,} scores are {ends['min']:g}"
    elif ends["max"] <= _LOW:
        yield f"none of {pairs.num_rows:,} scores is above {ends['max']:g}, as if divided by their range twice"


def duplicates(pairs: pa.Table) -> Iterator[str]:
    """The pairs of two splits that have the same two texts, in either order."""
    first: dict[tuple[str, ...], tuple[int, str, str]] = {}
    columns = (pairs[name].to_pylist() for name in ("text1", "text2", "row", "pair_id", "split"))
    for text1, text2, row, key, split in zip(*columns, strict=True):
        texts = tuple(sorted((text_digest(text1), text_digest(text2))))
        seen_row, seen_key, seen_split = first.setdefault(texts, (row, key, split))
        if split != seen_split:
            yield f"pairs row {seen_row} ({seen_key}), in {seen_split}, and row {row} ({key}), in {split}"


def leaking_components(pairs: pa.Table) -> Iterator[str]:
    """The rows whose component stands in another split before."""
    first: dict[str, tuple[int, str]] = {}
    rows = (pairs[name].to_pylist() for name in ("component", "row", "split"))
    for component, row, split in zip(*rows, strict=True):
        if component is not None:
            seen_row, seen_split = first.setdefault(component, (row, split))
            if split != seen_split:
                yield f"component {component} in pairs row {seen_row} ({seen_split}) and row {row} ({split})"


def near_copies(pairs: pa.Table, triplets: pa.Table | None) -> Iterator[str]:
    """Texts of two splits with a Jaccard similarity of five-word sequences of 0.8 or more, but for equal ones.

    Exact (`near_duplicates`); a text that stands in a split more often is named once.
    """
    places: dict[tuple[str, str], tuple[Place, str]] = {}
    for place, text in texts_of(pairs, triplets):
        if place.column not in MASKED:
            places.setdefault((place.split, text_digest(text)), (place, text))
    if len({split for split, _ in places}) < 2:
        return
    keys, found = list(places), list(places.values())
    pairs_found, similarity = near_duplicates([text for _, text in found], threshold=NEAR)
    for (left, right), value in zip(pairs_found.tolist(), similarity.tolist(), strict=True):
        if keys[left][0] != keys[right][0] and keys[left][1] != keys[right][1]:
            yield f"{value:.2f} alike are {found[left][0]} and {found[right][0]}"


def licences(pairs: pa.Table) -> Iterator[str]:
    """The sources that aren't known to allow their texts to be passed on, each with its rows and the first of them.

    Rows that name neither a repository nor a licence are whoever's publishes them: the set's licence holds for them.
    """
    rows: dict[tuple[str | None, str | None], list[int]] = {}
    columns = (pairs[name].to_pylist() for name in ("repository", "licence", "row"))
    for repository, licence, row in zip(*columns, strict=True):
        if (repository or licence) and not (licence and is_allowed(licence)):
            rows.setdefault((repository, licence), []).append(row)
    for (repository, licence), found in rows.items():
        why = f"licence {licence} isn't on the list of those allowed" if licence else "licence isn't known"
        yield f"{repository or 'a source'}: {why} ({len(found):,} rows, from pairs row {found[0]} on)"


def is_allowed(expression: str) -> bool:
    """Whether an SPDX expression allows its texts to be passed on: one of an OR, all of an AND.

    >>> is_allowed("MIT OR LicenseRef-own"), is_allowed("MIT AND LicenseRef-own"), is_allowed("(MIT OR x) AND ISC")
    (True, False, True)
    """
    words = re.findall(r"[()]|[^\s()]+", expression)
    value, rest = _either(words)
    return value and not rest


def _either(words: list[str]) -> tuple[bool, list[str]]:
    value, words = _both(words)
    while words[:1] == ["OR"]:
        other, words = _both(words[1:])
        value = value or other
    return value, words


def _both(words: list[str]) -> tuple[bool, list[str]]:
    value, words = _one(words)
    while words[:1] == ["AND"]:
        other, words = _one(words[1:])
        value = value and other
    return value, words


def _one(words: list[str]) -> tuple[bool, list[str]]:
    if words[:1] == ["("]:
        value, words = _either(words[1:])
        return value and words[:1] == [")"], words[1:]
    value = bool(words) and words[0].lower() in _allowed()
    words = words[1:]
    return value, words[2:] if words[:1] == ["WITH"] else words  # an exception allows more, never less


@cache
def _allowed() -> frozenset[str]:
    """All that the files of datasets/licences name, in lower case."""
    lists = [tomllib.loads(path.read_text("utf-8")) for path in sorted(definition("licences").glob("*.toml"))]
    return frozenset(name.lower() for one in lists for name in one["allowed"])
