"""Pairs -> votes: chat models behind an endpoint, language models and embedding models on this machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Unpack, overload

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.annotators.asking import ask_chats, kept_so_far
from stscurate.annotators.base import Annotator, Pair, Plan, Row, per_pair
from stscurate.annotators.chat import ChatAnnotator
from stscurate.annotators.people import FileAnnotator
from stscurate.annotators.specs import FORMS, Options, Spec, build, check_key, parse_spec, parse_specs
from stscurate.errors import InputError, StscurateError
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.records import Tally, from_rows
from stscurate.services.answers import Answers
from stscurate.services.purse import Prices, Purse
from stscurate.store import Run, Stage

__all__ = ["FORMS", "Options", "Prices", "Purse", "Spec", "annotate", "parse_spec", "plan"]

_SHARD = 10_000  # pairs
_AT_ONCE = 1000  # pairs that are Python objects at one time
_FOR_GOOD = ": not_finite"  # a failure that asking again doesn't mend


def annotate(
    run: Run,
    specs: Sequence[str],
    *,
    split: str | None = None,
    concurrency: int = 8,
    timeout: float = 60.0,
    prices: Prices | None = None,
    purse: Purse | None = None,
    progress: Progress = silent,
    **options: Unpack[Options],
) -> Entry:
    """Have each annotator of `specs` (see FORMS) vote on every pair of the run: stage and table "votes".

    split: only pairs of that split. concurrency: requests in flight at most, to each endpoint. timeout: seconds for one
    request. prices: of models; those of the package by default. purse: caps on requests and cost, and what was spent.
    options: see Options.

    Every answer is kept in the run's answers.sqlite when it arrives. What is a vote is never asked for again. What
    failed (refused, cut off, not to be read, too slow, HTTP 400, ...) stands in the table with its `error` and without
    `raw`, is counted under "failed", and is asked again by the next call, as is what a cap of the purse or Ctrl-C left
    out, which is counted under "not_asked". So a call may end with part of the votes; the same call goes on.

    InputError for an unknown form, two annotators of one name, a missing key or an unknown model, or a cost to be
    capped without a known price. ServiceError where an endpoint can't be asked to the end: what it answered is kept,
    and stands in the table. KeyboardInterrupt is raised after what is answered stands in the table.
    """
    if concurrency < 1:
        raise InputError("--concurrency is 1 at least.")
    parsed = parse_specs(specs)
    annotators = [build(spec, timeout=timeout, prices=prices, **options) for spec in parsed]
    inputs = {"pairs": run.fingerprint("pairs")}
    for annotator in annotators:
        inputs |= annotator.inputs
    settings = {"annotators": [annotator.settings for annotator in annotators], "split": split}
    standing = run.entries.get("votes")
    seed = options.get("seed", 0)
    stage = run.stage("votes", tables=["votes"], inputs=inputs, settings=settings, seed=seed, again=_lacks_votes)
    if stage.entry:
        return stage.entry
    check_key(parsed)
    pairs, left_out = _pairs(run, split)
    with Answers(run.folder / "answers.sqlite") as answers:
        work = _Work(pairs, left_out, answers)
        chats = [annotator for annotator in annotators if isinstance(annotator, ChatAnnotator)]
        others = [annotator for annotator in annotators if not isinstance(annotator, ChatAnnotator)]
        try:
            ask_chats(chats, pairs, answers, concurrency=concurrency, purse=purse or Purse(), progress=progress)
            _write(stage, annotators, [], work, progress)
        except (KeyboardInterrupt, StscurateError):
            # A finished table of other settings isn't given up for a part of this one.
            if not (standing and standing.key != stage.key) and _write(stage, chats, others, work, silent):
                stage.commit()
            raise
    return stage.commit()


def plan(
    run: Run,
    specs: Sequence[str],
    *,
    split: str | None = None,
    prices: Prices | None = None,
    **options: Unpack[Options],
) -> list[Plan]:
    """What `annotate` with the same arguments would ask each annotator, and what is answered; nothing is sent."""
    pairs, _ = _pairs(run, split)
    annotators = [build(spec, prices=prices, **options) for spec in parse_specs(specs)]
    with Answers(run.folder / "answers.sqlite") as answers:
        return [annotator.plan(pairs, answers) for annotator in annotators]


@dataclass(frozen=True)
class _Work:
    """The pairs to vote on, how many of the run's are left out, and the answers there are."""

    pairs: Sequence[Pair]
    left_out: int
    answers: Answers


class _Pairs(Sequence[Pair]):
    """The pairs of a table, which become Python objects only where they are looked at."""

    def __init__(self, table: pa.Table):
        self._table = table.select(Pair._fields).combine_chunks()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        if isinstance(index, int):
            return self[index : index + 1 or None][0]
        start, stop, step = index.indices(len(self))
        part = self._table.slice(start, max(stop - start, 0))
        return [Pair(*values) for values in zip(*(part[name].to_pylist() for name in Pair._fields), strict=True)][
            ::step
        ]

    def __iter__(self) -> Iterator[Pair]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self[start : start + _AT_ONCE]


def _pairs(run: Run, split: str | None) -> tuple[_Pairs, int]:
    """The pairs to vote on, and how many are left out as of another split."""
    table: pa.Table = run.table("pairs")
    kept = table if split is None else table.filter(pc.fill_null(pc.equal(table["split"], split), False))
    if split is not None and not kept.num_rows:
        splits = ", ".join(sorted(str(value) for value in pc.unique(table["split"]).to_pylist() if value)) or "none"
        raise InputError(f"{run.folder} has no pairs of split {split}: it has {splits}.")
    return _Pairs(kept), table.num_rows - kept.num_rows


def _lacks_votes(entry: Entry) -> bool:
    """Whether another call may bring votes that a finished table lacks."""
    counts = entry.tally.counts
    return "not_asked" in counts or any(not kind.endswith(_FOR_GOOD) for kind in counts.get("failed", ()))


def _write(
    stage: Stage, annotators: Sequence[Annotator], absent: Sequence[Annotator], work: _Work, progress: Progress
) -> int:
    """Write the votes of all pairs; those of `absent` are counted as not asked. Gives back how many there are."""
    pairs, written = work.pairs, 0
    voted = zip(*(_votes(annotator, work, progress) for annotator in annotators), strict=True)
    for index, start in enumerate(range(0, max(len(pairs), 1), _SHARD)):
        tally = Tally(rows_in=min(_SHARD, len(pairs) - start))
        rows: list[Row] = []
        for of_pair in islice(voted, _SHARD):
            for annotator, found in zip(annotators, of_pair, strict=True):
                rows += found
                _count(tally, annotator, found)
            if not any(of_pair):
                tally.drop("not_asked" if any(map(per_pair, annotators)) else "unrated")
        for annotator in absent:
            tally.count("not_asked", annotator.name, tally.rows_in * per_pair(annotator))
        if index == 0:
            tally.rows_in += work.left_out
            tally.drop("other_split", work.left_out)
            for people in (found for found in annotators if isinstance(found, FileAnnotator)):
                for what, count in people.left_out(pairs).items():
                    tally.count(people.name, what, count)
        stage.write(index, {"votes": from_rows(rows, "votes")}, tally)
        written += len(rows)
    return written


def _votes(annotator: Annotator, work: _Work, progress: Progress) -> Iterator[list[Row]]:
    def named(label: str, done: int, total: int | None) -> None:
        progress(f"{label} of {annotator.name}", done, total)

    try:
        yield from annotator.vote(work.pairs, work.answers, named)
    except StscurateError as error:
        raise type(error)(f"{error}{kept_so_far(annotator, work.pairs, work.answers)}") from None


def _count(tally: Tally, annotator: Annotator, rows: Sequence[Row]) -> None:
    """Count one annotator's votes on one pair."""
    if (missing := per_pair(annotator) - len(rows)) > 0:
        tally.count("not_asked", annotator.name, missing)
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
