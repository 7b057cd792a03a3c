"""What a stage counted, as lines for a person: our own names in words, those that users gave as they are."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stscurate.records import Tally

# Headings of counts by names that users gave: those of annotators, of files and hours, of a published config's splits.
_BY_ANNOTATOR = {"votes", "cut", "not_asked", "pairs_asked_about", "constant"}
_BY_ANNOTATOR |= {"ratings_of_no_pair", "empty_cells", "unrated_pairs"}
_BY_FILE = {"broken_lines", "files_cut_off", "hours_empty", "hours_missing"}
_BY_SPLIT = {"pairs", "pair-class", "gis", "ids", "provenance", "triplets"}
_OF_USERS = _BY_ANNOTATOR | _BY_FILE | _BY_SPLIT
_BEHIND_A_NAME = {"failed", "order_gap"}  # headings of counts by "ANNOTATOR: what"
_SOURCE = "rows of "  # a heading that goes on with a source's name
_SPLIT = "split_"  # a reason that goes on with a split's name


def lines_of(tally: "Tally") -> Iterator[str]:
    """A line a heading, and one for what was dropped."""
    for heading, counter in sorted(tally.counts.items()):
        name = heading if heading.startswith(_SOURCE) else in_words(heading)
        yield f"{name}: {_counted({_key(heading, key): count for key, count in counter.items()})}"
    if tally.dropped:
        yield f"dropped: {_counted({in_words(reason): count for reason, count in tally.dropped.items()})}"


def in_words(name: str) -> str:
    """A name of ours with spaces.

    >>> in_words("not_asked"), in_words("split_dev_2")
    ('not asked', 'split dev_2')
    """
    if name.startswith(_SPLIT):
        return f"split {name.removeprefix(_SPLIT)}"
    return name.replace("_", " ")


def _key(heading: str, key: str) -> str:
    if heading in _OF_USERS:
        return key
    if heading in _BEHIND_A_NAME:
        name, colon, what = key.rpartition(": ")
        return f"{name}{colon}{in_words(what)}"
    return in_words(key)


def _counted(counter: Mapping[str, int]) -> str:
    is_ = " = " if any(key[-1:].isdigit() for key in counter) else " "  # "tier: 1 30, 3 12" would be a riddle
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{key}{is_}{value:,}" for key, value in ordered)
