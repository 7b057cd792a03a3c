"""What every annotator is, and the one form of its votes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from stscurate.progress import Progress
from stscurate.services.answers import Answers

Row = dict[str, Any]  # of the table `votes`


class Pair(NamedTuple):
    """Two texts to compare."""

    pair_id: str
    text1: str
    text2: str


class Plan(NamedTuple):
    """What an annotator has yet to be asked, and what is answered, both counted in units: "requests", "texts", ...

    under_way: requests in batches that are sent, and whose answers aren't fetched yet.
    Where requests are sent also: tokens, about; cost in US dollars, None without a known price; hours that the
    service's limits allow at least, None where they aren't known.
    """

    annotator: str
    unit: str
    due: int
    known: int
    tokens: int | None = None
    cost: float | None = None
    hours: float | None = None
    under_way: int = 0


class Annotator(Protocol):
    """Something that votes on pairs. A new kind takes a file with such a class, and its line in `build` of specs.py."""

    name: str
    settings: dict[str, Any]  # all that shapes its votes
    inputs: dict[str, str]  # fingerprints of the models and files it reads
    prompts: dict[str, dict[str, Any]]  # the words by which it asks, as plain data, by the hash that its votes name
    per_pair: int  # votes that a pair has at the least, once all is asked: 0 where people may have left it out

    def plan(self, pairs: Sequence[Pair], answers: Answers) -> Plan:
        """What `vote` would have to ask; nothing is asked."""

    def vote(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
        """Ask for all that `answers` lacks, keeping each answer as it arrives; then give each pair's votes."""


def distinct_texts(pairs: Sequence[Pair]) -> list[str]:
    """The pairs' texts, each once, as they come."""
    return list(dict.fromkeys(text for pair in pairs for text in (pair.text1, pair.text2)))


def vote_row(pair: Pair, annotator: str, scoring: str, prompt: str, **values: Any) -> Row:
    """A row of the table `votes`; what isn't given is empty."""
    row: Row = {"pair_id": pair.pair_id, "annotator": annotator, "scoring": scoring, "prompt": prompt, "sample": 0}
    return row | dict.fromkeys(("raw", "entropy", "missing_mass", "answer", "tokens", "error")) | values
