"""The work of a call: the pairs, who is asked about which, and the votes written to the run in shards."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import overload

import pyarrow as pa

from stscurate.annotators.asking import kept_so_far
from stscurate.annotators.base import Annotator, Pair, Row
from stscurate.annotators.cascade import Cascade, doubts
from stscurate.annotators.people import FileAnnotator
from stscurate.errors import StscurateError
from stscurate.methods.numbers import Flags, Floats
from stscurate.progress import Progress
from stscurate.records import VOTES, Tally, from_rows
from stscurate.services.answers import Answers
from stscurate.store import Stage

_SHARD = 10_000  # pairs
_AT_ONCE = 1000  # pairs that are Python objects at one time


class Pairs(Sequence[Pair]):
    """The pairs of a table, which become Python objects only where they are looked at."""

    def __init__(self, table: pa.Table):
        self._table = table.select(Pair._fields).combine_chunks()

    def __len__(self) -> int:
        """Pairs."""
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        """One of them, or a list of some."""
        if isinstance(index, int):
            return self[index : index + 1 or None][0]
        start, stop, step = index.indices(len(self))
        part = self._table.slice(start, max(stop - start, 0))
        return [Pair(*values) for values in zip(*(part[name].to_pylist() for name in Pair._fields), strict=True)][
            ::step
        ]

    def __iter__(self) -> Iterator[Pair]:
        """Each, a thousand in memory at a time."""
        for start in range(0, len(self), _AT_ONCE):
            yield from self[start : start + _AT_ONCE]

    def where(self, flags: Flags) -> "Pairs":
        """Those whose flag is set, in their order."""
        return Pairs(self._table.filter(pa.array(flags)))

    @property
    def ids(self) -> list[str]:
        """Their ids."""
        return list(self._table["pair_id"].to_pylist())


@dataclass(frozen=True)
class Work:
    """The pairs to vote on, how many of the run's are left out, and the answers there are.

    cascade: who is dear, where some are. chosen: (pairs,) which the dear ones are asked about; None while that isn't
    known. unsure: (pairs,) how far a curve of relevance leaves each open; None without one.
    """

    pairs: Pairs
    left_out: int
    answers: Answers
    cascade: Cascade | None = None
    chosen: Flags | None = None
    unsure: Floats | None = None

    def dear(self, annotator: Annotator) -> bool:
        """Whether it is asked about the chosen pairs alone."""
        return self.cascade is not None and annotator.name in self.cascade.dear

    def can_ask(self, annotator: Annotator) -> bool:
        """Whether it is known which pairs it is to be asked about."""
        return self.chosen is not None or not self.dear(annotator)

    def of(self, annotator: Annotator) -> Pairs:
        """The pairs that it is asked about."""
        return self.pairs.where(self.chosen) if self.dear(annotator) and self.chosen is not None else self.pairs

    def asks(self, annotator: Annotator, start: int, stop: int) -> int:
        """How many of the pairs from `start` to `stop` it is asked about; of all, from 0 on, while that isn't known."""
        if self.cascade is None or not self.dear(annotator):
            return stop - start
        if self.chosen is None:
            return self.cascade.count(len(self.pairs)) if start == 0 else 0
        return int(self.chosen[start:stop].sum())

    def choose(self, cheap: Sequence[Annotator], progress: Progress, *, seed: int) -> "Work":
        """With the pairs chosen by the votes of the cheap; as it is where some of those haven't been asked for."""
        if self.cascade is None:
            return self
        voted = zip(*(votes_of(annotator, self, progress) for annotator in cheap), strict=True)
        tables = [VOTES.empty_table()]
        while part := list(islice(voted, _SHARD)):
            if any(len(rows) < one.per_pair for found in part for one, rows in zip(cheap, found, strict=True)):
                return self
            tables.append(from_rows([row for found in part for rows in found for row in rows], "votes"))
        found = doubts(pa.concat_tables(tables), self.pairs.ids)
        found = found if self.unsure is None else found + self.unsure
        return replace(self, chosen=self.cascade.chosen(found, seed=seed))


def votes_of(annotator: Annotator, work: Work, progress: Progress) -> Iterator[list[Row]]:
    """An annotator's votes on each pair; none on those that it isn't asked about."""

    def named(label: str, done: int, total: int | None) -> None:
        progress(f"{label} of {annotator.name}", done, total)

    pairs = work.of(annotator)
    try:
        found = annotator.vote(pairs, work.answers, named)
        if pairs is work.pairs or work.chosen is None:
            yield from found
        else:
            for asked in work.chosen.tolist():
                yield next(found) if asked else []
    except StscurateError as error:
        raise type(error)(f"{error}{kept_so_far(annotator, pairs, work.answers)}") from None


def write(
    stage: Stage, annotators: Sequence[Annotator], absent: Sequence[Annotator], work: Work, progress: Progress
) -> int:
    """Write the votes of all pairs; those of `absent` are counted as not asked. Gives back how many there are."""
    pairs, written = work.pairs, 0
    voted = zip(*(votes_of(annotator, work, progress) for annotator in annotators), strict=True)
    for index, start in enumerate(range(0, max(len(pairs), 1), _SHARD)):
        stop = min(start + _SHARD, len(pairs))
        tally = Tally(rows_in=stop - start)
        rows: list[Row] = []
        given = Counter[str]()
        for of_pair in islice(voted, _SHARD):
            for annotator, found in zip(annotators, of_pair, strict=True):
                rows += found
                given[annotator.name] += len(found)
                _count(tally, annotator, found)
            if not any(of_pair):
                tally.drop("not_asked" if any(one.per_pair for one in annotators) else "unrated")
        _count_asked(tally, given, (*annotators, *absent), work, start, stop)
        if index == 0:
            tally.rows_in += work.left_out
            tally.drop("other_split", work.left_out)
            for people in (found for found in annotators if isinstance(found, FileAnnotator)):
                for what, count in people.left_out(pairs).items():
                    tally.count(what, people.name, count)
        stage.write(index, {"votes": from_rows(rows, "votes")}, tally)
        written += len(rows)
    return written


def _count_asked(
    tally: Tally, given: Counter[str], annotators: Sequence[Annotator], work: Work, start: int, stop: int
) -> None:
    """Count the votes that aren't there yet and, in a cascade, the pairs that each annotator is asked about."""
    for annotator in annotators:
        asked = work.asks(annotator, start, stop)
        if work.cascade:
            tally.count("pairs_asked_about", annotator.name, asked)
        if (missing := asked * annotator.per_pair - given[annotator.name]) > 0:
            tally.count("not_asked", annotator.name, missing)


def _count(tally: Tally, annotator: Annotator, rows: Sequence[Row]) -> None:
    """Count one annotator's votes on one pair."""
    orders: dict[str, list[float]] = {}
    for row in rows:
        tally.count("votes", row["annotator"])
        if row["error"]:
            tally.count("failed", f"{annotator.name}: {row['error']}")
        if row["cut"]:
            tally.count("cut", annotator.name)
        if row["raw"] is not None and row["order"] != "both":
            orders.setdefault(row["order"], []).append(row["raw"])
    if len(orders) == 2 and rows[0]["scale"] != "relative":
        low, high = map(float, rows[0]["scale"].split(".."))
        ab, ba = (sum(raw) / len(raw) for raw in orders.values())
        tally.count("order_gap", f"{annotator.name}: {_gap(abs(ab - ba) / (high - low))}")


def _gap(share: float) -> str:
    """How far a pair's votes in its two orders lie apart, as a share of the scale; each stands in the votes."""
    return "none" if share < 1e-9 else next((f"to {end}" for end in (0.1, 0.3) if share <= end), "above 0.3")
