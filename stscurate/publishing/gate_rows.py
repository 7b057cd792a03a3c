"""Gates that look at columns: scores off their scale, licences of sources."""

import re
import tomllib
from functools import cache

import pyarrow.compute as pc

from stscurate.publishing.findings import Findings
from stscurate.publishing.parts import Parts
from stscurate.resources import definition
from stscurate.wording import counted

_ENOUGH = 100  # scores: of fewer that are alike nothing follows
_LOW = 0.2  # a scale of 0 to 5 that was divided twice ends here


def flat_scores(pairs: Parts) -> Findings:
    """A sentence where 100 scores or more are all the same, or none is above 0.2."""
    found = Findings()
    if pairs.num_rows < _ENOUGH:
        return found
    ends = [pc.min_max(batch["score"]).as_py() for batch in pairs.batches(["score"])]
    low, high = min(end["min"] for end in ends), max(end["max"] for end in ends)
    if low == high:
        found.add(f"all {pairs.num_rows:,} scores are {low:g}")
    elif high <= _LOW:
        found.add(f"none of {pairs.num_rows:,} scores is above {high:g}, as if divided by their range twice")
    return found


def licences(pairs: Parts) -> Findings:
    """The sources that aren't known to allow their texts to be passed on, each with its rows and the first of them.

    Rows that name neither a repository nor a licence are whoever's publishes them: the set's licence holds for them.
    """
    rows: dict[tuple[str | None, str | None], list[int]] = {}  # the first row, and how many
    allowed = cache(is_allowed)
    for batch in pairs.batches(["repository", "licence", "row"]):
        columns = (batch[name].to_pylist() for name in ("repository", "licence", "row"))
        for repository, licence, row in zip(*columns, strict=True):
            if (repository or licence) and not (licence and allowed(licence)):
                rows.setdefault((repository, licence), [row, 0])[1] += 1
    found = Findings()
    for (repository, licence), (first, count) in rows.items():
        why = f"licence {licence} isn't on the list of those allowed" if licence else "licence isn't known"
        found.add(f"{repository or 'a source'}: {why} ({counted(count, 'row')}, from pairs row {first} on)")
    return found


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
