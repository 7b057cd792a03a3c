"""Files of a published set: row groups by bytes, and memory that doesn't grow with the set."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stscurate.publishing import writing
from stscurate.publishing.layouts import Layout
from stscurate.publishing.writing import groups_of, measure_layout, write_layout

ROW = 16_384  # bytes of a text


@pytest.fixture
def mapped(tmp_path: Path) -> Layout:
    """256 MB of texts on the disk, of which Arrow holds nothing in memory."""
    rows = 8_000
    schema = pa.schema([("sentence1", pa.string()), ("sentence2", pa.string()), ("score", pa.float64())])
    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for start in range(0, rows, 500):
            texts = [f"{number} " + "x" * (ROW - 8) for number in range(start, start + 500)]
            writer.write_batch(pa.record_batch([texts, texts, np.linspace(0, 1, 500)], schema=schema))
    table = pa.ipc.open_file(pa.memory_map(str(tmp_path / "rows.arrow"))).read_all()
    split = pa.chunked_array([pa.array(["train" if number % 4 else "test" for number in range(rows)])])
    return Layout.of_table("pairs", table, split)


def test_memory_stays_at_a_row_group_whatever_the_set_holds(mapped: Layout) -> None:
    before = pa.total_allocated_bytes()
    peaks, groups = [], []
    for group in groups_of(mapped):
        groups.append(group.table.nbytes)
        peaks.append(pa.total_allocated_bytes() - before)
        del group
    assert sum(groups) > 250e6
    assert max(groups) <= 2**26 + 10_000
    assert max(peaks) < 4 * 2**26  # of each of two splits the rows that wait, and of one its group


def test_row_groups_and_files_end_where_their_bytes_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_GROUP_BYTES", 1_000)
    monkeypatch.setattr(writing, "_SHARD_BYTES", 2_500)
    texts = ["a" * 400, "b" * 400, "c" * 400, "d" * 3_000, *(letter * 400 for letter in "efghi")]
    table = pa.table({"sentence1": texts, "score": np.arange(9.0)})
    layout = Layout.of_table("pairs", table, pa.chunked_array([["train"] * 9]))
    write_layout(layout, tmp_path)
    paths = sorted((tmp_path / "data" / "pairs").iterdir())
    sizes = []
    for path in paths:
        found = pq.read_metadata(path)
        sizes.append([found.row_group(number).num_rows for number in range(found.num_row_groups)])
    # 412 bytes a row: two to a group of 1,000; the row of 3,012 is alone in a file of 2,500
    assert sizes == [[2, 1], [1], [2, 2, 1]]
    assert pa.concat_tables(pq.read_table(path) for path in paths)["sentence1"].to_pylist() == texts


def test_only_what_repeats_has_a_dictionary(tmp_path: Path) -> None:
    table = pa.table(
        {"text1": ["a", "b"], "licence": ["MIT", "MIT"], "annotators": [["x", "y"], ["x"]], "score": [0.5, 1.0]}
    )
    write_layout(Layout.of_table("made", table, pa.chunked_array([["train"] * 2])), tmp_path)
    (path,) = (tmp_path / "data" / "made").iterdir()
    columns = [pq.read_metadata(path).row_group(0).column(number) for number in range(4)]
    assert {column.path_in_schema: column.has_dictionary_page for column in columns} == {
        "text1": False, "licence": True, "annotators.list.element": True, "score": False
    }  # fmt: skip
    assert pq.read_table(path) == table


def test_a_measured_file_has_the_size_and_hash_of_the_real_one(tmp_path: Path) -> None:
    from stscurate.disk import fingerprint

    layout = Layout.of_table(
        "pairs", pa.table({"sentence1": ["a", "b"], "score": [0.5, 1.0]}), pa.chunked_array([["train"] * 2])
    )
    write_layout(layout, tmp_path)
    (measured,) = measure_layout(layout)
    path = tmp_path / measured.path
    assert (measured.rows, measured.size, measured.sha256) == (2, os.path.getsize(path), fingerprint(path))
