"""The pairs of a run that have a score to publish, on the disk: what layouts, gates and card are made of."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stscurate.errors import InputError
from stscurate.publishing.buckets import Joined, join
from stscurate.publishing.parts import InMemory, OnDisk, Parts, spill
from stscurate.records import PAIRS, SCORES, SPLITS, first_true
from stscurate.store import Run

SCORED = pa.schema(
    [
        *(field for field in PAIRS if field.name not in ("split", "score")),
        pa.field("split", pa.string()),
        pa.field("score", pa.float64()),
        pa.field("score_from", pa.string()),
        pa.field("row", pa.int64()),
    ]
)


def scored_pairs(run: Run, folder: Path) -> Parts:
    """The pairs that have a score to publish: `split` and `score` filled in, and new columns `score_from`, `row`.

    Training rows take the annotators' score (the run's `scores`) before the pair's own score and its label; validation
    and test rows take it last, so that an evaluation is by gold wherever there is any. score_from: "annotators",
    "score" or "label"; row: the pair's place in the run's table. folder: an empty one, for files of this process.
    InputError for a split of another name; SchemaError where a pair_id stands twice.
    """
    if not run.has("pairs"):
        return InMemory(SCORED.empty_table())
    rows, known = rows_of(run, "pairs"), pa.schema([SCORES.field("pair_id"), SCORES.field("score")])
    scores = run.parts("scores", columns=known.names) if run.has("scores") else iter(())
    joined = join(_numbered(run), scores, known, folder / "scores", rows=rows)
    return spill(folder / "pairs.arrow", SCORED, _scored(run, joined))


def spilled(run: Run, table: str, folder: Path, columns: Sequence[str]) -> OnDisk:
    """Columns of another table of the run, to be read as often as those are."""
    found = run.parts(table, columns=columns)
    first = next(found, None)
    schema = pa.schema([]) if first is None else first.schema

    def batches() -> Iterator[pa.RecordBatch]:
        if first is not None:
            yield first
            yield from found

    return spill(folder / f"{table}.arrow", schema, batches())


def rows_of(run: Run, table: str) -> int:
    """How many rows a finished table has."""
    return next((int(entry.outputs[table]["rows"]) for entry in run.entries.values() if table in entry.outputs), 0)


def counted(pairs: Parts, column: str | None = None) -> dict[str, int]:
    """Rows by split in the order of SPLITS, those without rows left out; of a column, where it isn't null."""
    found: Counter[str] = Counter()
    for batch in pairs.batches(["split", column] if column else ["split"]):
        split = batch["split"].filter(pc.is_valid(batch[column])) if column else batch["split"]
        found.update({item["values"]: item["counts"] for item in pc.value_counts(split).to_pylist()})
    return {split: found[split] for split in SPLITS if found[split]}


def filled(pairs: Parts, columns: Sequence[str]) -> list[str]:
    """Those of the columns in which a row has something."""
    found = dict.fromkeys(columns, False)
    for batch in pairs.batches(columns):
        for name in columns:
            found[name] = found[name] or batch[name].null_count < batch.num_rows
    return [name for name in columns if found[name]]


def _numbered(run: Run) -> Iterator[pa.RecordBatch]:
    row = 0
    for batch in run.parts("pairs", columns=["pair_id"]):
        yield batch.append_column("row", pa.array(np.arange(row, row + batch.num_rows)))
        row += batch.num_rows


def _scored(run: Run, scores: Joined) -> Iterator[pa.RecordBatch]:
    row = 0
    for batch in run.parts("pairs"):
        rows = np.arange(row, row + batch.num_rows)
        row += batch.num_rows
        split = pc.fill_null(batch["split"], "train")
        unknown = first_true(pc.invert(pc.is_in(split, value_set=pa.array(SPLITS))))
        if unknown >= 0:
            raise InputError(
                f"pairs: row {rows[unknown]} has split {split[unknown].as_py()!r:.40}: name it train, validation or "
                "test."
            )
        given = scores.between(int(rows[0]), int(rows[-1])).combine_chunks()
        place = pc.index_in(pa.array(rows), value_set=given["row"].combine_chunks())
        candidates = {
            "annotators": given["score"].combine_chunks().take(place),
            "score": batch["score"],
            "label": batch["label"].cast(pa.float64()),
        }
        names = {name: pc.if_else(pc.is_valid(values), name, None) for name, values in candidates.items()}
        train = pc.equal(split, "train")
        columns = {name: batch[name] for name in batch.schema.names}
        columns |= {
            "split": split,
            "score": _first_known(candidates, train),
            "score_from": _first_known(names, train),
            "row": pa.array(rows),
        }
        whole = pa.record_batch([columns[field.name] for field in SCORED], schema=SCORED)
        yield whole.filter(pc.is_valid(whole["score"]))


def _first_known(values: dict[str, pa.Array], train: pa.Array) -> pa.Array:
    """The first value that isn't null: annotators, score, label in training rows; annotators last in the rest."""
    annotators, *gold = (values[name] for name in ("annotators", "score", "label"))
    return pc.if_else(train, pc.coalesce(annotators, *gold), pc.coalesce(*gold, annotators))
