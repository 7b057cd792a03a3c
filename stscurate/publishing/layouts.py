"""From a run's tables to the published configs, whose column order is what the libraries read unchanged.

pairs       sentence1, sentence2, score 0..1      (sentence-transformers, MTEB)
pair-class  sentence1, sentence2, labels          (the same, as classes)
gis         text1, text2, label                   (angle_emb; as GitHub Issues Similarity has it)
triplets    anchor, positive, negative
provenance  pair_id, ids, origin, tier, votes ... row n of a split tells where row n of `pairs` comes from
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stscurate.errors import InputError
from stscurate.records import SPLITS, first_true

CLASSES = ("different", "same")
_PROVENANCE = ("pair_id", "id1", "id2", "origin", "tier", "flags", "component", "repository", "licence", "score_from")
_VOTE_LISTS = {"annotators": "annotator", "raw": "raw", "scales": "scale", "orders": "order", "prompts": "prompt"}


@dataclass(frozen=True)
class Layout:
    """One config: its rows, and the split of each."""

    name: str
    table: pa.Table
    split: pa.ChunkedArray

    def counts(self) -> dict[str, int]:
        """Rows by split, those without rows left out."""
        found = {item["values"]: item["counts"] for item in pc.value_counts(self.split).to_pylist()}
        return {split: found[split] for split in SPLITS if split in found}

    def splits(self) -> Iterator[tuple[str, pa.Table]]:
        """(split, its rows) in the order of SPLITS, one at a time: only one split's copy is in memory."""
        for split in self.counts():
            yield split, self.table.filter(pc.equal(self.split, split))


def scored_pairs(pairs: pa.Table, scores: pa.Table | None) -> pa.Table:
    """The pairs that have a score to publish: `split` and `score` filled in, and new columns `score_from`, `row`.

    Training rows take the annotators' score (`scores`) before the pair's own score and its label; validation and
    test rows take it last, so that an evaluation is by gold wherever there is any. score_from: "annotators",
    "score" or "label"; row: the pair's place in the run's table. InputError for a split of another name.
    """
    split = pc.fill_null(pairs["split"], "train")
    unknown = first_true(pc.invert(pc.is_in(split, value_set=pa.array(SPLITS))))
    if unknown >= 0:
        raise InputError(
            f"pairs: row {unknown} has split {split[unknown].as_py()!r:.40}: name it train, validation or test."
        )
    label = pairs["label"].cast(pa.float64())
    candidates = {"annotators": _scores_of(pairs, scores), "score": pairs["score"], "label": label}
    names = {name: pc.if_else(pc.is_valid(values), name, None) for name, values in candidates.items()}
    train = pc.equal(split, "train")
    filled = {
        "split": split,
        "score": _first_known(candidates, train),
        "score_from": _first_known(names, train),
        "row": pa.array(np.arange(pairs.num_rows)),
    }
    kept = {name: pairs[name] for name in pairs.column_names if name not in filled}
    table = pa.table(kept | filled)
    return table.filter(pc.is_valid(table["score"]))


def layouts(pairs: pa.Table, votes: pa.Table | None, triplets: pa.Table | None) -> list[Layout]:
    """The configs that have rows, of `scored_pairs` and the run's votes and triplets; triplets are training rows."""
    found = text_layouts(pairs)
    if triplets is not None:
        split = pa.chunked_array([pa.repeat("train", triplets.num_rows)])
        found.append(Layout("triplets", triplets.select(["anchor", "positive", "negative"]), split))
    found.append(Layout("provenance", _provenance(pairs, votes), pairs["split"]))
    return [layout for layout in found if layout.table.num_rows]


def text_layouts(pairs: pa.Table) -> list[Layout]:
    """The configs `pairs`, `pair-class` and `gis` of columns text1, text2, score, label and split."""
    labelled = pairs.filter(pc.is_valid(pairs["label"]))
    label = labelled["label"].cast(pa.int64())
    text1, text2 = labelled["text1"], labelled["text2"]
    return [
        Layout(
            "pairs",
            pa.table({"sentence1": pairs["text1"], "sentence2": pairs["text2"], "score": pairs["score"]}),
            pairs["split"],
        ),
        Layout("pair-class", pa.table({"sentence1": text1, "sentence2": text2, "labels": label}), labelled["split"]),
        Layout("gis", pa.table({"text1": text1, "text2": text2, "label": label}), labelled["split"]),
    ]


def features(table: pa.Table) -> list[dict[str, object]]:
    """The columns as a card's `dataset_info` names them; `labels` are the classes "different" and "same"."""
    return [{"name": field.name, **_feature(field)} for field in table.schema]


def _feature(field: pa.Field) -> dict[str, object]:
    if field.name == "labels":
        names = {str(number): name for number, name in enumerate(CLASSES)}
        return {"dtype": {"class_label": {"names": names}}}
    if pa.types.is_list(field.type):
        return {"list": _dtype(field.type.value_type)}
    return {"dtype": _dtype(field.type)}


def _dtype(kind: pa.DataType) -> str:
    return "float64" if pa.types.is_float64(kind) else str(kind)  # Arrow's own name for it is "double"


def _first_known(values: dict[str, pa.ChunkedArray], train: pa.ChunkedArray) -> pa.ChunkedArray:
    """The first value that isn't null: annotators, score, label in training rows; annotators last in the rest."""
    annotators, *gold = (values[name] for name in ("annotators", "score", "label"))
    return pc.if_else(train, pc.coalesce(annotators, *gold), pc.coalesce(*gold, annotators))


def _scores_of(pairs: pa.Table, scores: pa.Table | None) -> pa.ChunkedArray:
    if scores is None:
        return pa.chunked_array([pa.nulls(pairs.num_rows, pa.float64())])
    place = pc.index_in(pairs["pair_id"], value_set=scores["pair_id"].combine_chunks())
    return scores["score"].take(place)


def _provenance(pairs: pa.Table, votes: pa.Table | None) -> pa.Table:
    columns = {name: pairs[name] for name in _PROVENANCE}
    if votes is not None and pairs.num_rows:
        columns |= _vote_lists(pairs, votes)
    return pa.table({name: column for name, column in columns.items() if column.null_count < len(column)})


def _vote_lists(pairs: pa.Table, votes: pa.Table) -> dict[str, pa.Array]:
    """The votes of each pair as lists of equal length, sorted by annotator, scoring, order and sample."""
    pair = pc.index_in(votes["pair_id"], value_set=pairs["pair_id"].combine_chunks())
    votes = votes.append_column("pair", pair).filter(pc.is_valid(pair))
    keys = [(name, "ascending") for name in ("pair", "annotator", "scoring", "order", "sample", "prompt")]
    votes = votes.sort_by(keys)
    counts = np.bincount(votes["pair"].to_numpy(), minlength=pairs.num_rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    values = {name: votes[column].combine_chunks() for name, column in _VOTE_LISTS.items()}
    return {name: pa.ListArray.from_arrays(offsets, column) for name, column in values.items()}
