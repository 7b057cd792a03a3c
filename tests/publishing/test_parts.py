"""What publishes sets that don't fit into memory, in parts, against loops that hold everything."""

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stscurate.errors import SchemaError
from stscurate.methods.leaks import text_digest
from stscurate.methods.near_duplicates import shingles
from stscurate.publishing import buckets, findings
from stscurate.publishing.buckets import Buckets, join
from stscurate.publishing.gate_splits import across_splits
from stscurate.publishing.lengths import lengths
from stscurate.publishing.parts import InMemory, spill
from stscurate.records import SPLITS

PAIRS = pa.schema([("pair_id", pa.string()), ("row", pa.int64())])
OTHERS = pa.schema([("pair_id", pa.string()), ("who", pa.string()), ("raw", pa.float64())])


def test_what_was_spilled_is_read_again_by_column_as_often_as_wanted(tmp_path: Path) -> None:
    table = pa.table({"a": range(2_500), "b": [f"text {n}" for n in range(2_500)], "c": [None] * 2_500})
    empty = table.slice(0, 0).to_batches()
    parts = spill(tmp_path / "it", table.schema, [*empty, *table.to_batches(max_chunksize=700)])
    assert (parts.num_rows, parts.schema) == (2_500, table.schema)
    for _ in range(2):
        assert pa.Table.from_batches(parts.batches()) == table
        assert pa.Table.from_batches(parts.batches(["c", "a"])) == table.select(["a", "c"])
        assert pa.Table.from_batches(InMemory(table).batches(["c", "a"])) == table.select(["a", "c"])


@pytest.mark.parametrize("rows_of_a_bucket", [50_000, 7])
def test_rows_are_joined_by_name_and_sorted_within_each_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_of_a_bucket: int
) -> None:
    monkeypatch.setattr(buckets, "_BUCKET_ROWS", rows_of_a_bucket)
    monkeypatch.setattr(buckets, "_WAITING_ROWS", 10)
    draw = random.Random(0)
    names = [f"p{number}" for number in range(60)]
    rows = [(name, row) for row, name in enumerate(names) if row % 5]
    others = [(draw.choice([*names, "nobody"]), draw.choice("abc"), draw.random()) for _ in range(300)]
    others[7] = (*others[7][:2], float("nan"))  # a number that isn't one comes through as well
    expected = defaultdict(list)
    for name, who, raw in sorted(others, key=lambda other: other[1]):
        expected[name].append((who, raw))

    def table(found: list[Any], schema: pa.Schema) -> pa.Table:
        return pa.table([list(column) for column in zip(*found, strict=True)], schema=schema)

    joined = join(
        table(rows, PAIRS).to_batches(max_chunksize=9),
        table(others, OTHERS).to_batches(max_chunksize=13),
        OTHERS,
        tmp_path / "join",
        rows=60,
        keys=["who"],
    )
    for _ in range(2):
        for first, last in ((0, 20), (21, 21), (22, 59)):
            found = joined.between(first, last)
            told = [(row, who, raw) for name, row in rows if first <= row <= last for who, raw in expected[name]]
            assert repr(list(zip(*(found[name].to_pylist() for name in ("row", "who", "raw")), strict=True))) == repr(
                told
            )


def test_an_id_that_stands_twice_in_two_shards_is_refused(tmp_path: Path) -> None:
    pairs = [pa.record_batch([["a", "b"], [0, 1]], schema=PAIRS), pa.record_batch([["c", "a"], [2, 3]], schema=PAIRS)]
    with pytest.raises(SchemaError, match="pair_id a stands twice, in rows 0 and 3"):
        join(pairs, (), OTHERS, tmp_path / "join", rows=4)


def test_rows_are_dealt_out_to_the_files_that_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_WAITING_ROWS", 3)
    with Buckets(tmp_path / "dealt", pa.schema([("n", pa.int64())]), 4) as dealt:
        for start in range(0, 10, 2):
            dealt.add([[start, start + 1]], np.array([start % 3, 3]))
        dealt.add([[]], np.array([], dtype=np.int64))
    assert [table["n"].to_pylist() for table in dealt.tables()] == [[0, 6], [4], [2, 8], [1, 3, 5, 7, 9]]


def made_pairs(seed: int) -> pa.Table:
    """Pairs of few texts, some of them nearly the same, so that all splits share some; some components as well."""
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(40)]
    texts = [" ".join(draw.choices(words, k=30)) for _ in range(12)] + ["", " ", "Short", "SHORT "]
    texts += [f"{text} more" for text in texts[:8]]
    rows = 60
    return pa.table(
        {
            "row": [3 * number for number in range(rows)],
            "pair_id": [f"p{number}" for number in range(rows)],
            "split": draw.choices(SPLITS, [6, 2, 2], k=rows),
            "text1": draw.choices(texts, k=rows),
            "text2": draw.choices(texts, k=rows),
            "component": draw.choices([None, "c1", "c2", "c3"], [5, 1, 1, 1], k=rows),
        }
    )


def held_in_memory(pairs: pa.Table, anchors: list[str]) -> dict[str, list[str]]:
    """The slow way: every text and pair that was seen, in dictionaries, and all texts against all."""
    found: dict[str, list[str]] = {"leak": [], "duplicate": []}
    texts: list[tuple[str, str, str]] = []  # split, place, text
    copies: dict[Any, tuple[str, str]] = {}
    components: dict[str, tuple[int, str]] = {}
    shared = []
    for one in pairs.to_pylist():
        row, key, split = one["row"], one["pair_id"], one["split"]
        for column in ("text1", "text2"):
            texts.append((split, f"pairs row {row} ({key}), {column}, in {split}", one[column]))
        pair = tuple(sorted(text_digest(one[column]) for column in ("text1", "text2")))
        place = f"row {row} ({key}), in {split}"
        first_split, first_place = copies.setdefault(pair, (split, place))
        if first_split != split:
            found["duplicate"].append(f"pairs {first_place}, and {place}")
        if one["component"]:
            first_row, first_split = components.setdefault(one["component"], (row, split))
            if first_split != split:
                told = f"component {one['component']} in pairs row {first_row} ({first_split}) and row {row} ({split})"
                shared.append((first_row, row, told))
    texts += [("train", f"triplets row {n} (t{n}), anchor, in train", text) for n, text in enumerate(anchors)]
    first: dict[str, int] = {}
    leaks = []
    for number, (split, place, text) in enumerate(texts):
        seen = first.setdefault(text_digest(text), number)
        if texts[seen][0] != split and text.strip():
            leaks.append((seen, number, f"the same text in {texts[seen][1]} and {place}"))
    found["leak"] = [told for *_, told in sorted(leaks)] + [told for *_, told in sorted(shared)]
    return found | {"near": nearly_the_same(texts)}


def nearly_the_same(texts: list[tuple[str, str, str]]) -> list[str]:
    """All texts of (split, place, text) against all, each once a split."""
    found = []
    once = list({(split, text_digest(text)): None for split, _, text in texts})
    places = {key: next(p for s, p, t in texts if (s, text_digest(t)) == key) for key in once}
    sets = {key: next(shingles(t) for s, _, t in texts if (s, text_digest(t)) == key) for key in once}
    for at, one in enumerate(once):
        for other in once[at + 1 :]:
            union = sets[one] | sets[other]
            if one[0] != other[0] and one[1] != other[1] and union:
                value = len(sets[one] & sets[other]) / len(union)
                if value >= 0.8:
                    found.append(f"{value:.2f} alike are {places[one]} and {places[other]}")
    return found


@pytest.mark.parametrize("seed", range(4))
def test_gates_find_what_a_loop_with_all_in_memory_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(buckets, "_BUCKET_ROWS", 7)
    pairs = made_pairs(seed)
    anchors = [*pairs["text1"].to_pylist()[:5], "of its own"]
    triplets = pa.table({"text_id": [f"t{number}" for number in range(len(anchors))], "anchor": anchors})
    expected = held_in_memory(pairs, anchors)
    assert all(expected.values())
    found = across_splits(InMemory(pairs), InMemory(triplets), tmp_path)
    assert {name: sorted(one.places) for name, one in found.items()} == {
        name: sorted(told) for name, told in expected.items()
    }
    assert found["leak"].places == expected["leak"]
    assert {name: one.count for name, one in found.items()} == {name: len(told) for name, told in expected.items()}


def test_of_many_findings_the_first_are_kept_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stscurate.publishing import gate_splits

    monkeypatch.setattr(findings, "KEPT", 3)
    monkeypatch.setattr(gate_splits, "KEPT", 3)
    rows = 40
    pairs = pa.table(
        {
            "row": range(rows),
            "pair_id": [f"p{n}" for n in range(rows)],
            "split": ["train"] * 20 + ["test"] * 20,
            "text1": [f"a text {n % 20}" for n in range(rows)],
            "text2": [f"of its own {n}" for n in range(rows)],
            "component": pa.nulls(rows, pa.string()),
        }
    )
    leak = across_splits(InMemory(pairs), None, tmp_path)["leak"]
    assert leak.count == 20
    assert leak.places == [
        f"the same text in pairs row {n} (p{n}), text1, in train and pairs row {n + 20} (p{n + 20}), text1, in test"
        for n in range(3)
    ]


def test_lengths_of_parts_are_numpys_quantiles_of_the_whole() -> None:
    draw = np.random.default_rng(0)
    rows = 1_400
    pairs = pa.table(
        {
            "split": draw.choice(SPLITS, size=rows),
            "text1": ["x" * size for size in draw.integers(1, 300, size=rows)],
            "text2": ["ä" * size for size in draw.integers(1, 30, size=rows)],
            "tokens1": pa.array(draw.integers(1, 50, size=rows), pa.int32(), mask=draw.random(rows) < 0.5),
            "tokens2": pa.nulls(rows, pa.int32()),
        }
    )
    expected = []
    for split in SPLITS:
        here = [row for row in pairs.to_pylist() if row["split"] == split]
        characters = [len(row[name]) for row in here for name in ("text1", "text2")]
        tokens = [row["tokens1"] for row in here if row["tokens1"] is not None]
        for unit, numbers in (("characters", characters), ("tokens", tokens)):
            middle, high = np.quantile(numbers, [0.5, 0.95], method="inverted_cdf")
            expected.append((split, unit, min(numbers), int(middle), int(high), max(numbers)))
    assert lengths(InMemory(pairs)) == expected
