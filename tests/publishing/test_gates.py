from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stscurate.errors import InputError
from stscurate.publishing import publish_folder
from stscurate.store import Run
from tests.publishing.samples import pair, write_pairs, write_triplets

TOKEN = "ghp_" + "aB3dE6gH9j" * 4  # made up


def publish(
    tmp_path: Path, rows: Sequence[Mapping[str, Any]], *, accept: Sequence[str] = (), anchors: Sequence[str] = ()
) -> str:
    """The card of the rows published; nothing may be left where a gate refuses."""
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, rows)
        if anchors:
            write_triplets(run, anchors)
        try:
            publish_folder(run, tmp_path / "set", licence="mit", accept=accept)
        except InputError:
            assert [path.name for path in tmp_path.iterdir()] == ["run"]
            raise
    return (tmp_path / "set" / "README.md").read_text()


def test_text_in_two_splits_is_refused_whatever_its_case_and_spaces(tmp_path: Path) -> None:
    rows = [
        pair("p", "fine", "fine too", label=1, split="train"),
        pair("q", "The  Same text", "x", label=1, split="train"),
        pair("r", "y", "the same\ttext ", label=0, split="test"),
    ]
    with pytest.raises(InputError) as refused:
        publish(tmp_path, rows)
    assert str(refused.value) == (
        "Splits leak: the same text in pairs row 1 (q), text1, in train and pairs row 2 (r), text2, in test. "
        "Split by component, or drop the rows of one side; --accept leak publishes as it is and says so."
    )
    card = publish(tmp_path, rows, accept=["leak"])
    assert "The gate `leak` was overridden when this was published. Its findings: 1." in card
    assert "The check for leaks was overridden" in card
    assert "No text and no component" not in card


def test_component_in_two_splits_is_refused(tmp_path: Path) -> None:
    rows = [
        pair("p", "a", "b", label=1, split="validation", component="c9"),
        pair("q", "c", "d", label=1, component="c9"),
    ]
    with pytest.raises(InputError, match=r"component c9 in pairs row 0 \(validation\) and row 1 \(train\)\. Split by"):
        publish(tmp_path, rows)


def test_anchor_that_stands_in_the_test_split_is_refused(tmp_path: Path) -> None:
    rows = [pair("p", "one two three four", "b", label=1, split="test")]
    with pytest.raises(InputError, match=r"row 0 \(p\), text1, in test and triplets row 0 \(t0\), anchor, in train"):
        publish(tmp_path, rows, anchors=["One two three four"])


def test_the_same_text_often_in_one_split_is_no_leak(tmp_path: Path) -> None:
    rows = [pair("p", "a", "b", label=1, component="c"), pair("q", "a", "c", label=0, split="train", component="c")]
    assert "No text and no component" in publish(tmp_path, rows)


def test_row_that_is_not_published_leaks_nothing(tmp_path: Path) -> None:
    rows = [pair("p", "a", "b", label=1), pair("q", "a", "c", split="test")]
    assert "for want of any score or label: 1 of the pairs" in publish(tmp_path, rows)


def test_empty_texts_are_refused_and_only_some_of_many_are_named(tmp_path: Path) -> None:
    rows = [pair(f"p{n}", "something", " \n", label=1) for n in range(1_005)]
    with pytest.raises(InputError) as refused:
        publish(tmp_path, rows)
    assert str(refused.value) == (
        "Empty text: pairs row 0 (p0), text2, in train; pairs row 1 (p1), text2, in train; pairs row 2 (p2), text2, "
        "in train; and 1,002 more. Drop or fill these rows; --accept empty publishes as it is and says so."
    )


def test_secret_is_refused_without_being_repeated(tmp_path: Path) -> None:
    rows = [pair("p", "fine", f"my token is {TOKEN}", label=1)]
    with pytest.raises(InputError) as refused:
        publish(tmp_path, rows)
    assert "secret: GitHub token at character 12 of pairs row 0 (p), text2, in train. Remove it" in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert "gate `secret` was overridden" in publish(tmp_path, rows, accept=["secret"])


def test_accepting_a_gate_that_finds_nothing_changes_no_claim(tmp_path: Path) -> None:
    card = publish(tmp_path, [pair("p", "a", "b", label=1)], accept=["leak"])
    assert "overridden" not in card
    assert "No text and no component" in card


def test_unknown_gate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no gate leaks: --accept takes empty, secret, leak"):
        publish(tmp_path, [pair("p", "a", "b", label=1)], accept=["leaks"])


def test_a_table_of_a_run_that_was_changed_is_refused(tmp_path: Path) -> None:
    rows = [pair("p", "a", "b", score=0.5, split="train"), pair("q", "c", "d", score=0.5, split="test")]
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, rows)
        (path,) = (tmp_path / "run" / "pairs").iterdir()
        table = pq.read_table(path, partitioning=None)
        place = table.schema.get_field_index("score")
        pq.write_table(table.set_column(place, table.schema.field(place), pa.array([0.5, 1.5])), path)
        with pytest.raises(InputError, match="run/pairs isn't as it was made"):
            publish_folder(run, tmp_path / "set", licence="mit")
    assert [found.name for found in tmp_path.iterdir()] == ["run"]
