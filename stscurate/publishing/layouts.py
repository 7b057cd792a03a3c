"""From a run's tables to the published configs, whose column order is what the libraries read unchanged.

pairs       sentence1, sentence2, score 0..1      (sentence-transformers, MTEB)
pair-class  sentence1, sentence2, labels          (the same, as classes)
gis         text1, text2, label                   (angle_emb; as GitHub Issues Similarity has it)
triplets    anchor, positive, negative
provenance  pair_id, ids, origin, tier, votes ... row n of a split tells where row n of `pairs` comes from
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stscurate.publishing.buckets import Joined
from stscurate.publishing.parts import InMemory, Parts
from stscurate.publishing.scored import counted, filled
from stscurate.records import VOTES

CLASSES = ("different", "same")
VOTE_KEYS = ("annotator", "scoring", "order", "sample", "prompt")  # by which the votes of a pair are sorted
_PROVENANCE = ("pair_id", "id1", "id2", "origin", "tier", "flags", "component", "repository", "licence", "score_from")
_VOTE_LISTS = {"annotators": "annotator", "raw": "raw", "scales": "scale", "orders": "order", "prompts": "prompt"}
VOTE_COLUMNS = ("pair_id", *dict.fromkeys((*VOTE_KEYS, *_VOTE_LISTS.values())))
TRIPLET = ("anchor", "positive", "negative")
_ROWS_AT_ONCE = 10_000

Piece = tuple[pa.RecordBatch, pa.Array]  # rows of a config, and the split of each


@dataclass(frozen=True)
class Layout:
    """One config: its columns, its rows by split in the order of SPLITS, and a way to read the rows in order."""

    name: str
    schema: pa.Schema
    counts: Mapping[str, int]
    read: Callable[[], Iterator[Piece]]

    @classmethod
    def of_table(cls, name: str, table: pa.Table, split: pa.ChunkedArray) -> "Layout":
        """One whose rows are in memory, or mapped."""
        whole = table.append_column("split", split)

        def read() -> Iterator[Piece]:
            batches = whole.to_batches(max_chunksize=_ROWS_AT_ONCE)  # nothing is copied
            return ((batch.select(table.column_names), batch["split"]) for batch in batches)

        return cls(name, table.schema, counted(InMemory(whole)), read)

    @property
    def num_rows(self) -> int:
        """How many rows there are in all splits."""
        return sum(self.counts.values())


def layouts(pairs: Parts, votes: Joined | None, triplets: Parts | None) -> list[Layout]:
    """The configs that have rows, of `scored_pairs` and the run's votes and triplets; triplets are training rows.

    votes: of `buckets.join`, columns VOTE_COLUMNS, sorted by VOTE_KEYS.
    """
    found = text_layouts(pairs)
    if triplets is not None:
        found.append(_triplets(triplets))
    found.append(provenance_layout(pairs, votes))
    return [layout for layout in found if layout.num_rows]


def text_layouts(pairs: Parts) -> list[Layout]:
    """The configs `pairs`, `pair-class` and `gis` of columns text1, text2, score, label and split."""
    scored = _columns(sentence1="string", sentence2="string", score="double")
    classes = _columns(sentence1="string", sentence2="string", labels="int64")
    gis = _columns(text1="string", text2="string", label="int64")
    labelled = counted(pairs, "label")
    return [
        Layout("pairs", scored, counted(pairs), lambda: _with_texts(pairs, "score", scored)),
        Layout("pair-class", classes, labelled, lambda: _with_texts(pairs, "label", classes)),
        Layout("gis", gis, labelled, lambda: _with_texts(pairs, "label", gis)),
    ]


def provenance_layout(pairs: Parts, votes: Joined | None) -> Layout:
    """The config `provenance`; a column of nulls alone says nothing, and libraries stumble over it."""
    names = filled(pairs, _PROVENANCE)
    lists = {name: pa.list_(VOTES.field(column).type) for name, column in _VOTE_LISTS.items()} if votes else {}
    schema = pa.schema([*(pa.field(name, pairs.schema.field(name).type) for name in names), *lists.items()])

    def read() -> Iterator[Piece]:
        for batch in pairs.batches([*names, "row", "split"]):
            columns = [batch[name] for name in names]
            if votes and batch.num_rows:
                columns += _vote_lists(batch["row"].to_numpy(), votes)
            yield pa.record_batch(columns, schema=schema), batch["split"]

    return Layout("provenance", schema, counted(pairs), read)


def features(schema: pa.Schema) -> list[dict[str, object]]:
    """The columns as a card's `dataset_info` names them; `labels` are the classes "different" and "same"."""
    return [{"name": field.name, **_feature(field)} for field in schema]


def _feature(field: pa.Field) -> dict[str, object]:
    if field.name == "labels":
        names = {str(number): name for number, name in enumerate(CLASSES)}
        return {"dtype": {"class_label": {"names": names}}}
    if pa.types.is_list(field.type):
        return {"list": _dtype(field.type.value_type)}
    return {"dtype": _dtype(field.type)}


def _dtype(kind: pa.DataType) -> str:
    return "float64" if pa.types.is_float64(kind) else str(kind)  # Arrow's own name for it is "double"


def _columns(**kinds: str) -> pa.Schema:
    return pa.schema([pa.field(name, pa.type_for_alias(kind)) for name, kind in kinds.items()])


def _with_texts(pairs: Parts, value: str, schema: pa.Schema) -> Iterator[Piece]:
    """The two texts and a value, of the pairs that have one."""
    for batch in pairs.batches(["text1", "text2", value, "split"]):
        kept = batch.filter(pc.is_valid(batch[value]))
        columns = [kept["text1"], kept["text2"], kept[value].cast(schema.types[2])]
        yield pa.record_batch(columns, schema=schema), kept["split"]


def _triplets(triplets: Parts) -> Layout:
    schema = pa.schema([triplets.schema.field(name) for name in TRIPLET])

    def read() -> Iterator[Piece]:
        for batch in triplets.batches(schema.names):
            columns = [batch[name] for name in schema.names]
            yield pa.record_batch(columns, schema=schema), pa.repeat("train", batch.num_rows)

    return Layout("triplets", schema, {"train": triplets.num_rows} if triplets.num_rows else {}, read)


def _vote_lists(rows: np.ndarray, votes: Joined) -> list[pa.Array]:
    """The votes of each pair as lists of equal length, sorted by VOTE_KEYS."""
    found = votes.between(int(rows[0]), int(rows[-1]))
    counts = np.bincount(np.searchsorted(rows, found["row"].to_numpy()), minlength=len(rows))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    return [pa.ListArray.from_arrays(offsets, found[column].combine_chunks()) for column in _VOTE_LISTS.values()]
