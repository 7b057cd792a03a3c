"""What the contract between stages lets through, and what it names."""

import pyarrow as pa
import pytest

from stscurate.errors import SchemaError
from stscurate.records import PAIRS, SCORES, TEXTS, Tally, check, from_rows

SCORE = {"pair_id": "p1", "score": 0.5, "spread": None, "annotators": 1, "agreement": None, "method": "mean"}


def test_rows_come_back_as_they_were() -> None:
    rows = [SCORE, {**SCORE, "pair_id": "p2", "score": 1.0, "spread": 0.25}]
    table = from_rows(rows, "scores")
    assert table.schema.equals(SCORES)
    assert table.to_pylist() == rows


def test_no_rows_make_an_empty_table() -> None:
    assert from_rows([], "pairs").schema.equals(PAIRS)


def test_nul_emoji_and_right_to_left_text_pass() -> None:
    texts = ["a\0b", "שלום 👩‍👩‍👧", "x" * 65_536]
    table = from_rows([{"text_id": str(i), "text": text} for i, text in enumerate(texts)], "texts")
    assert table["text"].to_pylist() == texts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": 1.5}, "score is 1.5 in row 1: give the scale of the file"),
        ({"score": float("nan")}, "score is nan in row 1"),
        ({"score": None}, "column score is empty in row 1"),
        ({"score": "high"}, "column score, row 1 holds 'high', which isn't double"),
        ({"method": 3}, "column method, row 1 holds 3, which isn't string"),
        ({"method": "a\ud800b"}, "column method, row 1 holds half of a surrogate pair (character 1)"),
        ({"annotators": 2**40}, "column annotators, row 1 holds 1099511627776"),
        ({"pair_id": "p1"}, "pair_id p1 stands twice, in rows 0 and 1"),
    ],
)
def test_a_bad_value_is_named_with_its_row(change: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        from_rows([SCORE, {**SCORE, "pair_id": "p2", **change}], "scores")
    assert message in str(caught.value)


def test_an_unknown_or_missing_key_is_named() -> None:
    row = {name: value for name, value in SCORE.items() if name != "method"}
    with pytest.raises(SchemaError, match="row 0 lacks method and has unknown methods"):
        from_rows([{**row, "methods": "mean"}], "scores")


def test_bytes_that_are_not_utf8_are_named() -> None:
    bad = pa.array([b"fine", b"\xed\xa0\x80"], pa.binary()).view(pa.string())
    table = pa.table({"text_id": ["1", "2"], "text": bad})
    with pytest.raises(SchemaError, match=r"column text, row 1 isn't valid UTF-8 \(byte 0\)"):
        check(table, "texts")


def test_nullable_columns_of_another_file_are_held_to_the_contract() -> None:
    """A Parquet file read back says that every column may be null: the values decide."""
    table = pa.table({"text": ["a", "b"], "text_id": ["1", "2"]})
    assert check(table, "texts").schema.equals(TEXTS)


def test_a_label_of_two_is_named() -> None:
    row = dict.fromkeys(PAIRS.names) | {
        "pair_id": "p",
        "text1": "a",
        "text2": "b",
        "weight": 1.0,
        "origin": "file:x",
        "flags": [],
        "label": 2,
    }
    with pytest.raises(SchemaError, match=r"label is 2 in row 0: labels are 0 \(different\) or 1 \(same\)"):
        from_rows([row], "pairs")


def test_tallies_add_up_and_survive_json() -> None:
    first, second = Tally(rows_in=3), Tally(rows_in=4)
    first.drop("too_short", 2)
    first.count("tier", 1)
    second.drop("too_short")
    second.drop("bot", 0)
    second.count("tier", 1, 2)
    first.add(second)
    assert first.as_dict() == {"rows_in": 7, "dropped": {"too_short": 3}, "counts": {"tier": {"1": 3}}}
    assert Tally.from_dict(first.as_dict()) == first
