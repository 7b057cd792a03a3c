"""Pairs -> votes: chat models behind an endpoint, language models and embedding models on this machine."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Unpack

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.annotators.base import Annotator, Pair, Plan, Row
from stscurate.annotators.specs import FORMS, Options, Spec, build, check_key, parse_spec, parse_specs
from stscurate.errors import InputError, StscurateError
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.records import Tally, from_rows
from stscurate.services.answers import Answers
from stscurate.store import Run

__all__ = ["FORMS", "Options", "Spec", "annotate", "parse_spec", "plan"]

_SHARD = 10_000  # pairs


def annotate(
    run: Run,
    specs: Sequence[str],
    *,
    split: str | None = None,
    concurrency: int = 8,
    progress: Progress = silent,
    **options: Unpack[Options],
) -> Entry:
    """Have each annotator of `specs` (see FORMS) vote on every pair of the run: stage and table "votes".

    split: only pairs of that split. concurrency: requests in flight at most, to each endpoint. options: see Options.

    Every answer is kept in the run's answers.sqlite when it arrives, and never asked for again, also where it can't
    be read as a vote (a refusal, no number): asking again at temperature 0 would bring the same for the same price.
    Such votes stand in the table with their `error` and without `raw`, as do those whose ask the server won't take
    (HTTP 400) while it answers others; they are counted under "failed". Asks that bring no answer (timeouts, server
    errors, lost connections) are no votes: the stage isn't finished while there are any. Then ServiceError tells
    what is kept, and the same run again asks only for the rest.

    InputError for an unknown form, two annotators of one name, a missing key or an unknown model.
    """
    parsed = parse_specs(specs)
    annotators = [build(spec, concurrency=concurrency, **options) for spec in parsed]
    inputs = {"pairs": run.fingerprint("pairs")}
    for annotator in annotators:
        inputs |= annotator.inputs
    settings = {"annotators": [annotator.settings for annotator in annotators], "split": split}
    stage = run.stage("votes", tables=["votes"], inputs=inputs, settings=settings, seed=options.get("seed", 0))
    if stage.entry:
        return stage.entry
    check_key(parsed)
    pairs, left_out = _pairs(run, split)
    with Answers(run.folder / "answers.sqlite") as answers:
        voted = zip(*(_votes(annotator, pairs, answers, progress) for annotator in annotators), strict=True)
        for index, start in enumerate(range(0, len(pairs), _SHARD)):
            rows = [row for of_pair in islice(voted, _SHARD) for of_annotator in of_pair for row in of_annotator]
            if not stage.has(index):
                tally = _tally(len(pairs[start : start + _SHARD]), rows)
                if index == 0:
                    tally.rows_in += left_out
                    tally.drop("other_split", left_out)
                stage.write(index, {"votes": from_rows(rows, "votes")}, tally)
    return stage.commit()


def plan(
    run: Run,
    specs: Sequence[str],
    *,
    split: str | None = None,
    **options: Unpack[Options],
) -> list[Plan]:
    """What `annotate` with the same arguments would ask each annotator, and what is answered; nothing is sent."""
    pairs, _ = _pairs(run, split)
    annotators = [build(spec, **options) for spec in parse_specs(specs)]
    with Answers(run.folder / "answers.sqlite") as answers:
        return [annotator.plan(pairs, answers) for annotator in annotators]


def _pairs(run: Run, split: str | None) -> tuple[list[Pair], int]:
    """The pairs to vote on, and how many are left out as of another split."""
    table: pa.Table = run.table("pairs")
    kept = table if split is None else table.filter(pc.fill_null(pc.equal(table["split"], split), False))
    if not kept.num_rows:
        splits = ", ".join(sorted(str(value) for value in pc.unique(table["split"]).to_pylist() if value)) or "none"
        raise InputError(f"{run.folder} has no pairs" + (f" of split {split}: it has {splits}." if split else "."))
    columns = (kept[name].to_pylist() for name in Pair._fields)
    return [Pair(*values) for values in zip(*columns, strict=True)], table.num_rows - kept.num_rows


def _votes(annotator: Annotator, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
    def named(label: str, done: int, total: int | None) -> None:
        progress(f"{label} of {annotator.name}", done, total)

    try:
        yield from annotator.vote(pairs, answers, named)
    except StscurateError as error:
        known = annotator.plan(pairs, answers).known
        kept = f" {known} answers of {annotator.name} are kept: the same command goes on from there." if known else ""
        raise type(error)(f"{error}{kept}") from None


def _tally(pairs: int, rows: Sequence[Row]) -> Tally:
    tally = Tally(rows_in=pairs)
    orders: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for row in rows:
        tally.count("votes", row["annotator"])
        if row["error"]:
            tally.count("failed", f"{row['annotator']}: {row['error']}")
        if row["cut"]:
            tally.count("cut", row["annotator"])
        if row["raw"] is not None and row["order"] != "both":
            key = (row["annotator"], row["scale"], row["pair_id"])
            orders.setdefault(key, {}).setdefault(row["order"], []).append(row["raw"])
    for (annotator, scale, _), found in orders.items():
        if len(found) == 2 and scale != "relative":
            low, high = map(float, scale.split(".."))
            ab, ba = (sum(raw) / len(raw) for raw in found.values())
            tally.count("order_gap", f"{annotator}: {_gap(abs(ab - ba) / (high - low))}")
    return tally


def _gap(share: float) -> str:
    """How far a pair's votes in its two orders lie apart, as a share of the scale; each stands in the votes."""
    return "none" if share < 1e-9 else next((f"to {end}" for end in (0.1, 0.3) if share <= end), "above 0.3")
