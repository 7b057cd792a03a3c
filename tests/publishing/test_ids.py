"""Pairs of GitHub issues published by their ids: what is there, what isn't, and what the card says of it."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stscurate.errors import InputError
from stscurate.publishing import publish_folder
from stscurate.publishing.ids import place_of, text_hash
from stscurate.records import Tally, from_rows
from stscurate.store import Run
from tests.pairing.made import issue
from tests.publishing.samples import files, pair, vote, write_pairs, write_triplets
from tests.publishing.test_publish_folder import load, rows

PAIRS = [
    pair("p", "It crashes at start.", "A crash when it starts.", label=1, split="train", id1="a/b#1", id2="a/b#2",
         repository="a/b", licence="MIT", tier=1, component="a/b#1"),
    pair("q", "It crashes at start.", "The menu is grey.", label=0, split="train", id1="a/b#1", id2="a/b#3",
         repository="a/b", licence="MIT"),
    pair("r", "The words are cut.", "Words end too early.", label=1, score=0.75, split="test", id1="a/b#4", id2="c/d#5",
         repository="a/b", tier=2, component="a/b#4"),
]  # fmt: skip


def write_issues(run: Run) -> None:
    stage = run.stage("issues", tables=["issues", "links"], inputs={}, settings={})
    url = "https://github.example/a/b/issues/1"
    stage.write(
        0,
        {"issues": from_rows([issue(1, repository="a/b", url=url)], "issues"), "links": from_rows([], "links")},
        Tally(),
    )
    stage.commit()


def publish(tmp_path: Path, pairs: list[dict[str, Any]] = PAIRS, **options: Any) -> Path:
    with Run.open(tmp_path / "run") as run:
        if not run.has("pairs"):
            write_issues(run)
            write_pairs(run, pairs)
        publish_folder(run, tmp_path / "set", **{"licence": "cc-by-4.0", **options})
    return tmp_path / "set"


def test_ids_labels_and_hashes_load_and_no_text_is_anywhere(tmp_path: Path) -> None:
    place = publish(tmp_path)
    found = load(place, tmp_path / "cache")
    assert found["train"].column_names == [
        "repository", "id1", "id2", "url1", "url2", "hash1", "hash2", "label", "score", "licence",
    ]  # fmt: skip
    first, other = text_hash("It crashes at start."), text_hash("A crash when it starts.")
    assert rows(found) == {
        "train": [
            ("a/b", "a/b#1", "a/b#2", "https://github.example/a/b/issues/1", "https://github.com/a/b/issues/2", first,
             other, 1, 1.0, "MIT"),
            ("a/b", "a/b#1", "a/b#3", "https://github.example/a/b/issues/1", "https://github.com/a/b/issues/3", first,
             text_hash("The menu is grey."), 0, 0.0, "MIT"),
        ],
        "test": [
            ("a/b", "a/b#4", "c/d#5", "https://github.com/a/b/issues/4", "https://github.com/c/d/issues/5",
             text_hash("The words are cut."), text_hash("Words end too early."), 1, 0.75, None),
        ],
    }  # fmt: skip
    assert load(place, tmp_path / "cache", "provenance")["train"]["pair_id"][:] == ["p", "q"]
    assert sorted(path.name for path in (place / "data").iterdir()) == ["ids", "provenance"]
    columns = {name for path in place.rglob("*.parquet") for name in pq.read_schema(path).names}
    assert not columns & {"text1", "text2", "sentence1", "sentence2", "anchor"}
    whole = b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file())
    for row in PAIRS:
        assert row["text1"].encode() not in whole
        assert row["text2"].encode() not in whole


def test_the_hash_is_sha_256_of_the_text_as_it_stands() -> None:
    assert text_hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, B.1
    assert text_hash("Abc") != text_hash("abc")


def test_the_card_says_how_to_fetch_the_texts_and_whose_licence_it_is(tmp_path: Path) -> None:
    card = (publish(tmp_path) / "README.md").read_text()
    assert "stscurate rehydrate FOLDER-OR-REPOSITORY --out RUN" in card
    assert 'load_dataset("FOLDER-OR-REPOSITORY", "ids")' in card
    assert "They belong to the people who wrote them, so they aren't in these files" in card
    assert "It needn't cover what people wrote in its issues" in card
    assert "| MIT | 2 |" in card
    assert "--texts" not in card
    assert "`gis`: the rows" not in card


def test_with_texts_the_layouts_are_those_of_any_pairs_and_the_card_warns_still(tmp_path: Path) -> None:
    place = publish(tmp_path, texts=True, accept=["licence"])
    assert rows(load(place, tmp_path / "cache"))["test"] == [("The words are cut.", "Words end too early.", 0.75)]
    card = (place / "README.md").read_text()
    assert "--texts" in card.split("Then this folder:")[1]
    assert "It needn't cover what people wrote in its issues" in card
    assert "rehydrate" not in card
    assert not (place / "card.json").exists()


def test_texts_are_held_to_the_gates_before_they_are_left_out(tmp_path: Path) -> None:
    leaking = [*PAIRS, pair("s", "IT CRASHES at start.", "x", label=0, split="test", id1="a/b#8", id2="a/b#9")]
    with pytest.raises(InputError, match="the same text in pairs row 0"):
        publish(tmp_path, leaking)


def test_a_repositorys_licence_is_not_taken_for_the_sets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needn't cover what people wrote in its issues\): give one with --licence"):
        publish(tmp_path, PAIRS[:2], licence=None)


def test_a_pair_of_something_else_can_only_be_published_with_its_texts(tmp_path: Path) -> None:
    mixed = [*PAIRS, pair("s", "one", "two", label=0, id1="a/b#8", id2="file 9")]
    with pytest.raises(InputError, match=r"row 3 \(s\) isn't of two issues of GitHub .*--texts"):
        publish(tmp_path, mixed)
    assert (publish(tmp_path, texts=True, accept=["licence"]) / "data" / "gis").is_dir()


def test_triplets_are_left_out_and_counted_and_votes_stay(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, PAIRS)
        write_triplets(run, ["one two three four"])
        stage = run.stage("votes", tables=["votes"], inputs={}, settings={})
        stage.write(0, {"votes": from_rows([vote("q", "small", 1.5)], "votes")}, Tally())
        stage.commit()
        entry = publish_folder(run, tmp_path / "set", licence="other")
    assert entry.tally.dropped == {"triplets_are_texts": 1}
    assert entry.tally.counts["ids"] == {"train": 2, "test": 1}
    assert load(tmp_path / "set", tmp_path / "cache", "provenance")["train"]["raw"][:] == [[], [1.5]]


def test_the_same_run_gives_the_same_bytes_and_other_modes_need_leave(tmp_path: Path) -> None:
    place = publish(tmp_path)
    with Run.open(tmp_path / "run") as run:
        assert not publish_folder(run, place, licence="cc-by-4.0").fresh
        publish_folder(run, tmp_path / "again", licence="cc-by-4.0", title="run")
        assert files(tmp_path / "again") == files(place)
        with pytest.raises(InputError, match="texts was False, now True"):
            publish_folder(run, place, licence="cc-by-4.0", texts=True, accept=["licence"])
    assert json.loads((place / "card.json").read_text())["facts"]["names"] == ["ids", "provenance"]


@pytest.mark.parametrize("name", ["a/b", "a/b#0", "a b#1", "a/b/c#1", "#1", "a/b#1 "])
def test_what_is_no_issue_is_not_taken_for_one(name: str) -> None:
    with pytest.raises(InputError, match="is no issue's id"):
        place_of(name)
    assert place_of("a-b/c.d_e#12") == ("a-b/c.d_e", 12)
