import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from stscurate.audit import find_leaks, read_splits
from stscurate.audit.leaks import LEAKS
from stscurate.errors import InputError
from stscurate.methods.texts import normalise
from stscurate.store import Run
from stscurate.tables import TextRow, import_pairs, pairs_source
from tests.conftest import Command

TRAIN = "sentence1,sentence2,score\nA cat sits.,A dog runs.,1\nIt rains.,It pours.,4\nOne.,Two.,0\n"
TEST = "sentence1,sentence2,score\nit  POURS.,It rains.,5\nA bird.,A cat sits.,2\nNew.,Newer.,3\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "train.csv").write_text(TRAIN)
    (tmp_path / "test.csv").write_text(TEST)
    return [f"train={tmp_path / 'train.csv'}", f"test={tmp_path / 'test.csv'}"]


def test_rows_are_named_in_both_splits_and_counted_each_way(files: list[str]) -> None:
    found = find_leaks(read_splits(files, scale="0-5"))
    assert found.rows.schema.equals(LEAKS)
    places = [(row["place"], row["column"], row["other_place"], row["other_column"]) for row in found.rows.to_pylist()]
    assert places == [
        ("train.csv, line 2", "sentence1", "test.csv, line 3", "sentence2"),
        ("train.csv, line 3", "sentence1", "test.csv, line 2", "sentence2"),
        ("train.csv, line 3", "sentence2", "test.csv, line 2", "sentence1"),
        ("test.csv, line 2", "sentence1", "train.csv, line 3", "sentence2"),
        ("test.csv, line 2", "sentence2", "train.csv, line 3", "sentence1"),
        ("test.csv, line 3", "sentence2", "train.csv, line 2", "sentence1"),
    ]
    first = found.rows.to_pylist()[3]
    assert (first["text"], first["other_text"], first["similarity"]) == ("it  POURS.", "It pours.", 1.0)
    assert found.counts[1] == {
        "split": "test",
        "leaks into": "train",
        "rows": 3,
        "leaked rows": 2,
        "share": 2 / 3,
        "texts": 6,
        "leaked texts": 3,
        "whole pairs": 1,
        "gold differs": 1,
    }


def test_near_duplicates_count_beside_equal_texts(files: list[str]) -> None:
    words = [f"w{i}" for i in range(30)]
    rows = {
        "a": [row("a1", " ".join(words)), row("a2", "just this")],
        "b": [
            row("b1", " ".join([*words, "w"])),
            row("b2", " ".join([*words, "x", "y", "z"])),
            row("b3", "Just this!"),
        ],
        "c": [row("c1", " ".join(words).upper())],
    }
    found = find_leaks(rows, near=0.8)
    said = {(row["place"], row["other_place"]): row["similarity"] for row in found.rows.to_pylist()}
    assert said == {
        ("a1", "b1"): 26 / 27,  # nearer than b2, with 26 of 29 sequences
        ("a2", "b3"): 1.0,
        ("a1", "c1"): 1.0,
        ("b1", "a1"): 26 / 27,
        ("b2", "a1"): 26 / 29,
        ("b3", "a2"): 1.0,
        ("b1", "c1"): 26 / 27,
        ("b2", "c1"): 26 / 29,
        ("c1", "a1"): 1.0,
        ("c1", "b1"): 26 / 27,
    }
    counts = {(count["split"], count["leaks into"]): count for count in found.counts}
    assert (counts["a", "b"]["leaked rows"], counts["a", "b"]["rows near"]) == (0, 2)
    assert (counts["a", "c"]["leaked rows"], counts["a", "c"]["rows near"]) == (1, 0)


def row(place: str, *texts: str) -> TextRow:
    return TextRow(place, None, {f"text{at}": text for at, text in enumerate(texts, 1)}, None)


def test_counts_are_those_of_the_slow_way() -> None:
    generator = random.Random(0)
    splits = {
        name: [
            row(f"{name} {at}", *(f"Text  {generator.randrange(60)}" for _ in range(2)))
            for at in range(generator.randrange(10, 40))
        ]
        for name in ("train", "dev", "test")
    }
    for count in find_leaks(splits).counts:
        mine, theirs = splits[count["split"]], splits[count["leaks into"]]
        there = [normalise(text) for other in theirs for text in other.texts.values()]
        leaked = [[normalise(text) in there for text in row.texts.values()] for row in mine]
        assert count["leaked rows"] == sum(map(any, leaked))
        assert count["leaked texts"] == sum(map(sum, leaked))
        pairs = [{normalise(text) for text in other.texts.values()} for other in theirs]
        assert count["whole pairs"] == sum({normalise(text) for text in row.texts.values()} in pairs for row in mine)


def test_splits_of_one_file_of_a_run_and_of_plain_texts(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text('text1,text2,label,split\na b,c d,1,train\nx,C D,0,test\n"  ",a b,0,dev\n')
    (tmp_path / "texts.txt").write_text("a B\nz\n")
    splits = read_splits([str(tmp_path / "pairs.csv"), str(tmp_path / "texts.txt")])
    assert list(splits) == ["train", "test", "validation", "texts.txt"]
    found = find_leaks(splits)
    counts = {(count["split"], count["leaks into"]): count["leaked texts"] for count in found.counts}
    assert {key: value for key, value in counts.items() if value} == {
        ("train", "test"): 1,
        ("test", "train"): 1,
        ("train", "validation"): 1,
        ("validation", "train"): 1,
        ("train", "texts.txt"): 1,
        ("texts.txt", "train"): 1,
        ("validation", "texts.txt"): 1,
        ("texts.txt", "validation"): 1,
    }
    with Run.open(tmp_path / "run") as run:
        import_pairs(run, pairs_source(tmp_path / "pairs.csv"))
    names = list(read_splits([f"ours={tmp_path / 'run'}", f"theirs={tmp_path / 'texts.txt'}"]))
    assert names == ["ours: train", "ours: test", "theirs"]
    datasets = pytest.importorskip("datasets", reason="the library datasets isn't installed")
    folder = tmp_path / "folder"
    datasets.DatasetDict(
        {name: datasets.Dataset.from_dict({"text": [text]}) for name, text in (("train", "A"), ("test", "a"))}
    ).save_to_disk(str(folder))
    assert [count["leaked rows"] for count in find_leaks(read_splits([str(folder)])).counts] == [1, 1]


def test_triplets_leak_by_any_of_their_texts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("anchor,positive,negative\none,two,three\n")
    (tmp_path / "b.csv").write_text("text\nThree\n")
    found = find_leaks(read_splits([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]))
    assert [(row["column"], row["other_column"]) for row in found.rows.to_pylist()] == [
        ("negative", "text"),
        ("text", "negative"),
    ]


def test_what_can_not_be_compared_is_named(tmp_path: Path, files: list[str]) -> None:
    with pytest.raises(InputError, match="Only one split was found"):
        read_splits(files[:1], scale="0-5")
    with pytest.raises(InputError, match="both have a split train"):
        read_splits([files[0], f"train={files[1].removeprefix('test=')}"], scale="0-5")
    with pytest.raises(InputError, match="give it as NAME=FILE"):
        read_splits(["=x"])
    with pytest.raises(InputError, match=r"from 0\.5 to 1"):
        find_leaks(read_splits(files, scale="0-5"), near=0.1)


def test_the_command_draws_writes_and_fails_when_told(command: Command, tmp_path: Path, files: list[str]) -> None:
    out = tmp_path / "new" / "leaks.parquet"
    call = ("audit", "leaks", *files, "--scale", "0-5")
    done = command(*call, "--out", out)
    assert done.exit_code == 0
    assert "4 rows hold a text of another split" in done.stdout
    assert "train.csv, line 2, sentence1: 'A cat sits.'" in done.stdout
    assert pq.read_table(out).num_rows == 6
    again = command(*call, "--out", out)
    assert (again.exit_code, "add --yes" in again.stderr) == (2, True)
    failed = command(*call, "--fail", "--json")
    assert failed.exit_code == 1
    found = json.loads(failed.stdout)
    assert (found["leaked_rows"], len(found["leaks"]), len(found["examples"])) == (4, 2, 5)
    (tmp_path / "clean.csv").write_text("text\nsomething else\n")
    clean = command("audit", "leaks", files[0], tmp_path / "clean.csv", "--scale", "0-5", "--fail")
    assert (clean.exit_code, "0 rows hold" in clean.stdout) == (0, True)
