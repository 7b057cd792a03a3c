"""Files as users bring them: every kind gives the same pairs, every fault one sentence with its place."""

import bz2
import gzip
import json
import lzma
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stscurate.errors import InputError
from stscurate.roles import parse_scale
from stscurate.store import Run
from stscurate.tables import (
    import_pairs,
    pair_id,
    pairs_source,
    rows_fingerprint,
    text_rows,
    texts_source,
    training_source,
)
from stscurate.triplets import make_triplets

ROWS = [("A man plays.", "Someone plays.", 4.0), ('He said "no".', "She said, yes.", 0.5)]
PAIRS = [(text1, text2, score / 5) for text1, text2, score in ROWS]


def write(folder: Path, kind: str) -> Path:
    path = folder / f"pairs.{kind}"
    header = ("sentence1", "sentence2", "score")
    if kind == "parquet":
        pq.write_table(pa.table(dict(zip(header, map(list, zip(*ROWS, strict=True)), strict=True))), path)
        return path
    if kind.startswith("csv"):
        quoted = [['"' + str(cell).replace('"', '""') + '"' for cell in row] for row in [header, *ROWS]]
        text = "".join(",".join(row) + "\r\n" for row in quoted)
    elif kind == "tsv":
        text = "".join("\t".join(map(str, row)) + "\n" for row in [header, *ROWS])
    else:
        text = "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in ROWS)
    opener: Any = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix, open)
    with opener(path, "wb") as file:
        file.write(text.encode())
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "tsv", "jsonl", "csv.gz", "jsonl.xz", "ndjson.bz2"])
def test_every_kind_of_file_gives_the_same_pairs(tmp_path: Path, kind: str) -> None:
    source = pairs_source(write(tmp_path, kind), scale="0-5")
    table = source.table
    found = list(zip(*(table[name].to_pylist() for name in ("text1", "text2", "score")), strict=True))
    assert found == PAIRS
    assert table["pair_id"].to_pylist() == [pair_id(text1, text2) for text1, text2, _ in ROWS]
    assert table["label"].null_count == 2
    assert source.tally.rows_in == 2


def test_a_datasets_folder_and_a_saved_dataset_give_their_splits(tmp_path: Path) -> None:
    import datasets

    rows = {"text1": ["a", "b"], "text2": ["c", "d"], "label": [0, 1]}
    both = datasets.DatasetDict(train=datasets.Dataset.from_dict(rows), test=datasets.Dataset.from_dict(rows))
    both.save_to_disk(str(tmp_path / "saved"))
    table = pairs_source(tmp_path / "saved").table
    assert table["split"].to_pylist() == ["train", "train", "test", "test"]
    assert table["label"].to_pylist() == [0, 1, 0, 1]
    assert table["pair_id"].to_pylist()[2] == f"{pair_id('a', 'c')}-2"


def test_columns_name_a_file_without_header_or_select_in_one_with(tmp_path: Path) -> None:
    bare = tmp_path / "bare.csv"
    bare.write_text("a,b,3\nc,d,1\n")
    assert pairs_source(bare, columns="sentence1,sentence2,score", scale="0-5").table["score"].to_pylist() == [0.6, 0.2]
    skipped = tmp_path / "skipped.tsv"
    skipped.write_text('x\ta "quote\tb\t1\n')
    table = pairs_source(skipped, columns="_,text1,text2,label").table
    assert table.select(["text1", "text2", "label"]).to_pylist() == [{"text1": 'a "quote', "text2": "b", "label": 1}]
    named = tmp_path / "named.csv"
    named.write_text("n,q1,q2,same\n1,a,b,1\n")
    table = pairs_source(named, columns="text1=q1,text2=q2,label=same").table
    assert table.select(["text1", "text2", "label"]).to_pylist() == [{"text1": "a", "text2": "b", "label": 1}]
    assert pairs_source(named, columns="q2,q1").table["text1"].to_pylist() == ["b"]


def test_a_header_line_of_other_names_is_no_row(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("question1,question2\nIs it so?,It is so.\n")
    with pytest.raises(InputError, match=re.escape("--columns text1=question1,text2=question2; if it is")):
        pairs_source(path, columns="text1,text2")
    assert pairs_source(path, columns="text1=question1,text2=question2").table.num_rows == 1


def test_labels_as_pandas_writes_them_and_names_behind_spaces_are_read(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("text1, text2, label\na,b,True\nc,d,False\n")
    assert pairs_source(path).table["label"].to_pylist() == [1, 0]
    assert pairs_source(path, columns="text2,text1").table["text1"].to_pylist() == ["b", "d"]


def test_rows_with_an_empty_text_are_dropped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("text1,text2,label\na,b,1\n,b,1\na,   ,0\n")
    source = pairs_source(path)
    assert source.table.num_rows == 1
    assert source.tally.dropped == {"empty_text": 2}


def test_odd_characters_pass_unchanged(tmp_path: Path) -> None:
    texts = ["a\0b", "‏مرحبا 🎉", "x" * 65_536, "日本\u2028語"]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps({"text1": text, "text2": "b"}) + "\n" for text in texts))
    assert pairs_source(path).table["text1"].to_pylist() == texts
    rows = "".join(f'"{text}",b\n' for text in texts)
    (tmp_path / "pairs.csv").write_text("text1,text2\n" + rows)
    assert pairs_source(tmp_path / "pairs.csv").table["text1"].to_pylist() == texts


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.csv", None, "gone.csv doesn't exist"),
        ("empty.csv", b"", "empty.csv is empty"),
        ("header.csv", b"text1,text2\n", "header.csv is empty"),
        ("kind.xlsx", b"PK", "is of a kind that isn't read: give Parquet, CSV"),
        ("half.parquet", b"PAR1\x15\x04", "isn't a whole Parquet file"),
        ("cut.jsonl", b'{"text1": "a", "text2": "b"}\n{"text1": "a", "te', "line 2 isn't valid JSON"),
        ("list.jsonl", b"[1]\n", "line 1 holds a list: each line is one JSON object"),
        (
            "columns.csv",
            b"a,b\nc,d\n",
            "needs columns text1 and text2; it has a, b. Name them with --columns, for example "
            "--columns text1=a,text2=b.",
        ),
        (
            "headless.csv",
            b"A cat.,A dog.\nA man.,A boy.\n",
            "if the first line is a row, name all columns in order, as in --columns text1,text2 (_ for any other).",
        ),
        ("texts.txt", b"A cat.\n", "it has text. `stscurate sample-pairs` draws pairs from texts."),
        ("semicolons.csv", b"text1;text2;score\na;b;1\n", "Its fields seem to be parted by ';': save it as .csv, with"),
        ("tabs.csv", b"text1\ttext2\na\tb\n", "Its fields seem to be parted by tabs: save it as .tsv."),
        ("fields.csv", b"text1,text2\na,b\na,b,c\n", "line 3 has 3 fields where 2 are due (text1, text2)"),
        ("latin.csv", b"text1,text2\ncaf\xe9,b\n", "isn't UTF-8 text"),
        ("type.jsonl", b'{"text1": 5, "text2": "b"}\n', "line 1: text1 holds 5, which isn't text"),
        ("lone.jsonl", b'{"text1": "a\\ud800", "text2": "b"}\n', "line 1: text1 holds half of a surrogate pair"),
        ("score.csv", b"text1,text2,score\na,b,0.5\na,c,3.5\n", "line 3: score '3.5' isn't within 0 to 1: give the"),
        (
            "nan.csv",
            b"text1,text2,score\na,b,nan\n",
            "line 2: score 'nan' isn't a number: mend the row, leave the field empty",
        ),
        ("word.csv", b"text1,text2,score\na,b,high\n", "line 2: score 'high' isn't a number"),
        ("label.csv", b"text1,text2,label\na,b,2\n", "line 2: label '2': labels are 0 or 1"),
        ("weight.csv", b"text1,text2,weight\na,b,-1\n", "line 2: weight '-1' isn't a number of 0 or more"),
        ("ids.csv", b"id,text1,text2\n7,a,b\n8,a,c\n7,a,d\n", "line 4: id 7 stood already in line 2"),
        ("blank.csv", b"text1,text2\n,b\n", "has no pair with two texts"),
        ("bad.jsonl.gz", b"\x1f\x8b\x08 not really", "is a damaged archive"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        pairs_source(tmp_path / name)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("text1=nothing,text2=b", "has no column nothing; it has a, b"),
        ("left=a,text2=b", "left is no role; the roles are text1"),
    ],
)
def test_a_wrong_column_option_is_named(tmp_path: Path, columns: str, message: str) -> None:
    (tmp_path / "f.csv").write_text("a,b\nc,d\n")
    with pytest.raises(InputError, match=message):
        pairs_source(tmp_path / "f.csv", columns=columns)


@pytest.mark.parametrize("scale", ["5", "a-b", "5-0", "1-1"])
def test_a_scale_that_is_no_range_is_refused(scale: str) -> None:
    with pytest.raises(InputError, match=f"The scale {scale} "):
        parse_scale(scale)


def test_texts_come_from_plain_lines_each_once(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\none\nthree")
    source = texts_source(path)
    assert source.table["text"].to_pylist() == ["one", "two", "three"]
    assert source.tally.as_dict() == {"rows_in": 5, "dropped": {"empty_text": 1, "repeated_text": 1}, "counts": {}}


def test_texts_of_a_run_leave_out_what_is_evaluated_on(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("text1,text2,label,split\na,b,1,train\nc,d,0,dev\ne,f,0,test\n")
    with Run.open(tmp_path / "run") as run:
        import_pairs(run, pairs_source(path))
    assert pairs_source(tmp_path / "run").table["split"].to_pylist() == ["train", "validation", "test"]
    assert texts_source(tmp_path / "run").table["text"].to_pylist() == ["a", "b"]
    assert texts_source(path).table["text"].to_pylist() == ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("unclosed.csv", 'text1,text2\na,b\nc,"d\ne,f\n', "in the row behind line 2: the quotes don't pair up"),
        ("twice.csv", "text1,text2,score,score\na,b,0,1\n", "more than one column score"),
        ("number.jsonl", '{"text1": "a", "score": 1' + "0" * 5000 + "}\n", "line 1 can't be read as JSON"),
        ("deep.jsonl", "[" * 100_000 + "\n", "line 1 can't be read as JSON"),
        ("split.jsonl", '{"text1": "a", "text2": "b", "split": ["x"]}\n', "line 1: split ['x'] isn't a name"),
        ("tier.csv", "text1,text2,tier\na,b,gold\n", "line 2: tier 'gold': tiers are 1, 2 or 3"),
    ],
)
def test_what_could_be_misread_is_refused_with_its_place(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=re.escape(message)):
        pairs_source(path)


def test_two_columns_of_one_name_in_parquet_are_refused(tmp_path: Path) -> None:
    column = pa.array(["a"])
    pq.write_table(pa.Table.from_arrays([column] * 3, names=["text1", "text2", "text2"]), tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="more than one column text2"):
        pairs_source(tmp_path / "twice.parquet")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("q1,q2,scores", "has no column scores; it has q1, q2, score"),  # no reason to take the header for a row
        ("one,two,three", "has none of the columns one,two,three in its first line (q1, q2, score)"),
        ("q1,q2,score,score", "in order they are text1, text2, score"),
        ("q1,q1,score", "--columns: q1 can't be both text1 and text2: name a column for each."),
        ("text1=q1,text2=q1", "--columns: q1 can't be both text1 and text2"),
        ("", "--columns '' leaves a name out"),
        ("q1,,score", "--columns 'q1,,score' leaves a name out"),
    ],
)
def test_columns_that_the_file_lacks_are_named(tmp_path: Path, columns: str, message: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("q1,q2,score\na,b,0.5\n")
    with pytest.raises(InputError, match=re.escape(message)):
        pairs_source(path, columns=columns)


def test_a_csv_tier_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("text1,text2,tier\na,b,2\nc,d,\n")
    assert pairs_source(path).table["tier"].to_pylist() == [2, None]


@pytest.mark.parametrize("column", ["score", "label", "weight", "tier"])
def test_a_number_beyond_all_floats_is_refused_with_its_place(tmp_path: Path, column: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(f'{{"text1": "a", "text2": "b", "{column}": 1{"0" * 400}}}\n')
    with pytest.raises(InputError, match=f"line 1: {column}"):
        pairs_source(path)


def test_flags_are_a_list_or_have_commas_between(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('text1,text2,flags\na,b,near\nc,d,"near, long"\ne,f,\n')
    assert pairs_source(path).table["flags"].to_pylist() == [["near"], ["near", "long"], []]
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"text1": "a", "text2": "b", "flags": ["near"]}\n')
    assert pairs_source(path).table["flags"].to_pylist() == [["near"]]
    path.write_text('{"text1": "a", "text2": "b", "flags": 5}\n')
    with pytest.raises(InputError, match="line 1: flags 5 isn't a list of words"):
        pairs_source(path)


def test_a_scale_may_begin_below_zero() -> None:
    assert (parse_scale("-1-1"), parse_scale("-1..4"), parse_scale("0.5-4.5")) == ((-1, 1), (-1, 4), (0.5, 4.5))
    for scale in ("nan-1", "0-inf", "1.2.3-4", ""):
        with pytest.raises(InputError, match="isn't a range"):
            parse_scale(scale)


def training(path: Path) -> list[tuple[str, str, int | None, float | None]]:
    rows = training_source(path).table.to_pylist()
    return [(row["text1"], row["text2"], row["label"], row["score"]) for row in rows]


def test_the_three_formats_of_angle_emb_are_read_for_training(tmp_path: Path) -> None:
    a, b, c = (tmp_path / name for name in ("a.jsonl", "b.csv", "c.tsv"))
    a.write_text('{"text1": "p", "text2": "q", "label": 1}\n{"text1": "p", "text2": "r", "label": 0}\n')
    b.write_text("id,query,positive,negative\n7,p,q,r\n8,s,t,u\n9,v,,w\n")
    c.write_text("query\tpositive\np\tq\ns\tt\n")
    assert training(a) == [("p", "q", 1, None), ("p", "r", 0, None)]
    assert training(b) == [("p", "q", 1, None), ("p", "r", 0, None), ("s", "t", 1, None), ("s", "u", 0, None)]
    assert training(c) == [("p", "q", 1, None), ("s", "t", 1, None)]
    source = training_source(b)
    assert source.table["pair_id"].to_pylist() == ["7", "7-negative", "8", "8-negative"]
    assert source.tally.as_dict() == {"rows_in": 5, "dropped": {"empty_text": 1}, "counts": {}}


def test_a_label_in_the_file_comes_before_what_its_columns_are_called(tmp_path: Path) -> None:
    path = tmp_path / "scored.csv"
    path.write_text("anchor,positive,score\np,q,0.25\n")
    assert training(path) == [("p", "q", None, 0.25)]
    plain = tmp_path / "plain.csv"
    plain.write_text("sentence1,sentence2\np,q\n")
    assert training(plain) == [("p", "q", None, None)]  # no word of their being alike


def test_positives_and_negatives_get_ids_of_their_own_without_any(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text("anchor,positive,negative\np,q,r\np,q,u\n")
    ids = training_source(path).table["pair_id"].to_pylist()
    assert ids == [pair_id("p", "q"), pair_id("p", "r"), pair_id("p", "q") + "-2", pair_id("p", "u")]


def test_rows_of_a_run_of_triplets_alone_are_its_triplets(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("one two three four five six seven eight\n")
    with Run.open(tmp_path / "run") as run:
        make_triplets(run, texts_source(tmp_path / "texts.txt"), seed=0)
    (row,) = text_rows(tmp_path / "run")
    assert (row.place, row.split, row.gold) == ("run, triplet 1", None, None)
    assert list(row.texts) == ["anchor", "positive", "negative"]
    assert rows_fingerprint(tmp_path / "run") == Run(tmp_path / "run").fingerprint("triplets")
