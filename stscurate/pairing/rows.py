"""A pair of issues as a row of the table `pairs`, with its flags."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from stscurate.methods.references import find_references, gives_label_away
from stscurate.pairing.corpus import Corpus
from stscurate.tables import pair_id

_NEAR = 0.9  # share of common words above which two texts are called nearly identical
_SOON = 600  # seconds


def pair_row(corpus: Corpus, low: int, high: int, **values: Any) -> dict[str, Any]:
    """The row of two issues; `values` are its label, split, origin, component, repository and tier."""
    text1, text2 = corpus.texts[low], corpus.texts[high]
    return {
        "pair_id": pair_id(text1, text2),
        "text1": text1,
        "text2": text2,
        "score": None,
        "weight": 1.0,
        "id1": corpus.ids[low],
        "id2": corpus.ids[high],
        "licence": None,
        "flags": sorted(_flags(corpus, low, high)),
        "tokens1": None,
        "tokens2": None,
        **values,
    }


def fill_licences(rows: Iterable[dict[str, Any]], repositories: pa.Table | None) -> None:
    """Set the licence of each row's repositories, "MIT AND Apache-2.0" of two; None where one of them isn't known."""
    known = {row["repository"]: row["licence"] for row in repositories.to_pylist()} if repositories is not None else {}
    for row in rows:
        both = dict.fromkeys(known.get(row[side].rpartition("#")[0]) for side in ("id1", "id2"))
        row["licence"] = None if None in both else _all_of(sorted(map(str, both)))


def _all_of(licences: list[str]) -> str:
    """One SPDX expression that asks for all.

    >>> _all_of(["Apache-2.0 OR MIT", "ISC"])
    '(Apache-2.0 OR MIT) AND ISC'
    """
    if len(licences) == 1:
        return licences[0]
    return " AND ".join(f"({licence})" if " OR " in licence else licence for licence in licences)


def _flags(corpus: Corpus, one: int, other: int) -> Iterator[str]:
    if corpus.repositories[one] != corpus.repositories[other]:
        yield "cross_repository"
    if corpus.authors[one] == corpus.authors[other] != "ghost":
        yield "same_author"
    opened = corpus.created[one], corpus.created[other]
    if opened[0] and opened[1] and abs((opened[0] - opened[1]).total_seconds()) < _SOON:
        yield "under_ten_minutes"
    words = set(corpus.normal[one].split()), set(corpus.normal[other].split())
    if len(words[0] & words[1]) > _NEAR * len(words[0] | words[1]):
        yield "near_identical"
    if _says_it(corpus, one, other) or _says_it(corpus, other, one):
        yield "label_in_text"


def _says_it(corpus: Corpus, speaker: int, other: int) -> bool:
    """Whether a text says of what it is a duplicate, or names the other issue."""
    text, repository = corpus.texts[speaker], corpus.repositories[speaker]
    named = (f"{found.repository}#{found.number}".lower() for found in find_references(text, repository))
    return gives_label_away(text, repository) or corpus.ids[other].lower() in named
