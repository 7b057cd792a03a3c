"""What others' tools make of a published set: MTEB, mlcroissant, and `datasets` with odd texts and columns."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stscurate.errors import InputError, SchemaError
from stscurate.evaluation.mteb_task import sts_task
from stscurate.publishing import publish_folder
from stscurate.publishing.gate_schema import schema_changes
from stscurate.publishing.verify import compare_rows
from stscurate.records import Tally, from_rows
from stscurate.store import Run
from tests.publishing.samples import PUBLISHED_PAIRS, pair, vote, write_pairs, write_run
from tests.publishing.test_publish_folder import load, rows
from tests.tiny_models import tiny_sentence_transformer


@pytest.fixture
def published(tmp_path: Path) -> Path:
    with Run.open(tmp_path / "demo") as run:
        write_run(run)
        publish_folder(run, tmp_path / "set", licence="cc-by-4.0", croissant=True)
    return tmp_path / "set"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")  # mteb's own
def test_mteb_runs_a_published_split_as_its_task(tmp_path: Path) -> None:
    import mteb
    from scipy.stats import spearmanr
    from sentence_transformers import SentenceTransformer

    texts = [("The file is empty.", "An empty file."), ("It crashes.", "The menu is grey."), ("Half alike.", "Alike."),
             ("Words here.", "Other words there."), ("One more.", "And another one more.")]  # fmt: skip
    gold = [0.9, 0.1, 0.55, 0.4, 0.75]
    rated = enumerate(zip(texts, gold, strict=True))
    made = [pair(f"p{n}", *both, score=score, split="test") for n, (both, score) in rated]
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, made)
        publish_folder(run, tmp_path / "set", licence="mit")
    task = sts_task(tmp_path / "set", name="Tiny")
    assert (task.min_score, task.max_score, len(task.metadata.dataset["revision"])) == (0, 1, 64)
    model = SentenceTransformer(str(tiny_sentence_transformer(tmp_path / "model")), device="cpu")
    result = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    left, right = (model.encode([both[side] for both in texts], normalize_embeddings=True) for side in (0, 1))
    expected = spearmanr((left * right).sum(axis=1), gold).statistic
    assert result.task_results[0].scores["test"][0]["cosine_spearman"] == pytest.approx(expected, abs=1e-6)


def test_a_task_of_a_split_that_is_not_there_is_refused(published: Path) -> None:
    with pytest.raises(InputError, match="has no split dev of pairs"):
        sts_task(published, name="x", split="dev")
    with pytest.raises(InputError, match="Language 'english' isn't known here"):
        sts_task(published, name="x", language="english")


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"
)  # mlcroissant's
def test_mlcroissant_accepts_the_description_and_reads_the_rows_by_it(published: Path) -> None:
    import mlcroissant

    found = mlcroissant.Dataset(jsonld=published / "croissant.json")
    assert not found.metadata.ctx.issues.errors
    read = [
        (row["pairs-test/sentence1"].decode(), row["pairs-test/sentence2"].decode(), row["pairs-test/score"])
        for row in found.records("pairs-test")
    ]
    assert read == PUBLISHED_PAIRS["test"]
    told = json.loads((published / "croissant.json").read_text())
    assert [records["@id"] for records in told["recordSet"]][:3] == ["pairs-train", "pairs-validation", "pairs-test"]
    assert "--croissant" in (published / "README.md").read_text()


def test_texts_of_all_kinds_come_back_as_they_were(tmp_path: Path) -> None:
    texts = [
        "NUL \x00 in it",
        "\u202eright to left\u202c עברית",
        "👩‍👩‍👧‍👦 🏳️‍🌈",
        "e\u0301 and é",
        "a\r\n\t\u2028b",
        "\ufeffmark",
        "𝔘 �",
    ]
    made = [pair(f"p{n}", text, f"other {n}", score=n / 10, split="train") for n, text in enumerate(texts)]
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, made)
        publish_folder(run, tmp_path / "set", licence="mit")
    assert rows(load(tmp_path / "set", tmp_path / "cache"))["train"] == [
        (text, f"other {n}", n / 10) for n, text in enumerate(texts)
    ]


def test_half_a_surrogate_pair_is_refused_by_row() -> None:
    with pytest.raises(SchemaError, match="column text1, row 1 holds half of a surrogate pair"):
        from_rows([pair("p", "fine", "b"), pair("q", "half \ud83d", "b")], "pairs")


def test_a_key_that_row_one_lacks_is_refused_not_dropped() -> None:
    first = pair("p", "a", "b")
    del first["score"]
    with pytest.raises(SchemaError, match="row 0 lacks score"):
        from_rows([first, pair("q", "c", "d", score=0.5)], "pairs")
    with pytest.raises(SchemaError, match="row 1 has unknown note"):
        from_rows([pair("p", "a", "b"), {**pair("q", "c", "d"), "note": "x"}], "pairs")


def test_votes_of_one_split_alone_are_lists_of_the_same_type_in_all(tmp_path: Path) -> None:
    """`datasets` refuses a set whose splits have other nested columns, and a column of lists is nested."""
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, [pair("p", "a", "b", label=1, split="train"), pair("q", "c", "d", label=0, split="test")])
        stage = run.stage("votes", tables=["votes"], inputs={}, settings={"llm": ["x"]})
        stage.write(0, {"votes": from_rows([vote("p", "small", 2.5)], "votes")}, Tally(rows_in=1))
        stage.commit()
        publish_folder(run, tmp_path / "set", licence="mit")
    data = load(tmp_path / "set", tmp_path / "cache", "provenance")
    assert data["train"].features == data["test"].features
    assert (data["train"]["raw"][:], data["test"]["raw"][:]) == ([[2.5]], [[]])


def test_a_nested_struct_with_other_keys_in_another_split_is_not_what_was_sent(tmp_path: Path) -> None:
    """Readers fill keys that a split lacks with nulls, or drop those that the first one lacks: neither passes."""
    train, test = pa.table({"who": [{"name": "a", "at": {"x": 1}}]}), pa.table({"who": [{"name": "b", "at": {"y": 2}}]})
    pq.write_table(test, tmp_path / "test.parquet")
    for loaded in (
        test.cast(train.schema),  # as the first split has them: y is lost
        pa.table({"who": pa.array([{"name": "b", "at": {"x": None, "y": 2}}])}),  # the keys of both
    ):
        with pytest.raises(Exception, match=r"config c, split test: column who is struct<.*>, not struct<.*y: int64>>"):
            compare_rows(loaded, [tmp_path / "test.parquet"], "config c, split test")
    assert compare_rows(test, [tmp_path / "test.parquet"], "config c, split test") == 1
    pq.write_table(pa.table({"all": [[{"y": 2}]]}), tmp_path / "lists.parquet")
    large = pa.table({"all": pa.array([[{"y": 2}]], pa.large_list(pa.struct([("y", pa.int64())])))})
    assert compare_rows(large, [tmp_path / "lists.parquet"], "as some readers lay lists out") == 1
    told = [{"name": "who", "struct": [{"name": key, "dtype": "int64"}]} for key in ("x", "y")]
    before = {"dataset_info": {"config_name": "c", "features": told[:1]}}
    assert list(schema_changes(before, {"c": told[1:]})) == [
        "config c: column who was struct of x int64, now struct of y int64"
    ]


def test_nulls_of_one_split_are_strings_in_its_file_and_a_column_of_nulls_alone_is_left_out(tmp_path: Path) -> None:
    made = [
        pair("p", "a", "b", score=0.5, split="train", id1="n#1"),
        pair("q", "c", "d", score=0.25, split="test"),  # id1 is null in all of this split
    ]
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, made)
        publish_folder(run, tmp_path / "set", licence="mit")
    kinds: dict[str, Any] = {}
    for split in ("train", "test"):
        schema = pq.read_schema(tmp_path / "set" / "data" / "provenance" / f"{split}-00000-of-00001.parquet")
        kinds[split] = {field.name: str(field.type) for field in schema}
    assert kinds["train"] == kinds["test"]
    assert kinds["test"]["id1"] == "string"
    assert "id2" not in kinds["train"]
    data = load(tmp_path / "set", tmp_path / "cache", "provenance")
    assert (data["train"]["id1"][:], data["test"]["id1"][:]) == (["n#1"], [None])
    assert not (tmp_path / "set" / "data" / "pair-class").exists()  # no labels: no empty config, and no empty split
    assert set(load(tmp_path / "set", tmp_path / "cache")) == {"train", "test"}
