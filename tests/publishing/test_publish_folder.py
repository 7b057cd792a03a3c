from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stscurate.errors import InputError, SettingsChangedError
from stscurate.publishing import publish_folder, writing
from stscurate.store import Run
from tests.publishing.samples import PUBLISHED_PAIRS, files, pair, write_pairs, write_run, write_triplets
from tests.tiny_models import tiny_sentence_transformer


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Run.open(tmp_path / "demo") as opened:
        write_run(opened)
        yield opened


@pytest.fixture
def published(run: Run, tmp_path: Path) -> Path:
    publish_folder(run, tmp_path / "set", licence="cc-by-4.0", language=["en", "zh", "ar"])
    return tmp_path / "set"


def load(folder: Path, cache: Path, config: str | None = None) -> Any:
    import datasets

    return datasets.load_dataset(str(folder), config, cache_dir=str(cache))


def rows(data: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {split: [tuple(row.values()) for row in part] for split, part in data.items()}


def test_pairs_load_as_the_default_config_with_gold_before_annotators_in_evaluation(
    published: Path, tmp_path: Path
) -> None:
    data = load(published, tmp_path / "cache")
    assert data["train"].column_names == ["sentence1", "sentence2", "score"]
    assert rows(data) == PUBLISHED_PAIRS
    assert rows(load(published, tmp_path / "cache", "pairs")) == PUBLISHED_PAIRS


def test_pair_class_has_named_classes(published: Path, tmp_path: Path) -> None:
    data = load(published, tmp_path / "cache", "pair-class")
    train, validation, test = PUBLISHED_PAIRS["train"], PUBLISHED_PAIRS["validation"], PUBLISHED_PAIRS["test"]
    assert data["train"].features["labels"].names == ["different", "same"]
    assert data["train"].column_names == ["sentence1", "sentence2", "labels"]
    assert rows(data) == {
        "train": [(*train[0][:2], 1), (*train[1][:2], 0), (*train[3][:2], 1)],
        "validation": [(*validation[0][:2], 1)],
        "test": [(*test[1][:2], 0)],
    }


def test_gis_has_the_columns_of_github_issues_similarity(published: Path, tmp_path: Path) -> None:
    data = load(published, tmp_path / "cache", "gis")
    assert data["test"].column_names == ["text1", "text2", "label"]
    assert data["test"].features["label"].dtype == "int64"
    assert rows(data)["test"] == [("Not the same.", "Something else.", 0)]


def test_triplets_are_training_rows(published: Path, tmp_path: Path) -> None:
    data = load(published, tmp_path / "cache", "triplets")
    assert data["train"].column_names == ["anchor", "positive", "negative"]
    assert rows(data) == {
        "train": [("one two three four", "one two three", "one two"), ("五 六 七 八", "五 六 七", "五 六")]
    }


def test_provenance_tells_where_each_row_of_pairs_comes_from(published: Path, tmp_path: Path) -> None:
    data = load(published, tmp_path / "cache", "provenance")
    assert {split: part["pair_id"][:] for split, part in data.items()} == {
        "train": ["p0", "p1", "p2", "p3"],
        "validation": ["p4", "p5"],
        "test": ["p6", "p7"],
    }
    assert data["train"]["score_from"][:] == ["annotators", "annotators", "annotators", "label"]
    assert data["validation"]["score_from"][:] == ["label", "annotators"]
    assert data["test"]["score_from"][:] == ["score", "label"]
    assert data["train"][0] == {
        "pair_id": "p0",
        "id1": "b#1",
        "origin": "made up",
        "tier": 1,
        "flags": [],
        "component": "c1",
        "repository": "a/b",
        "licence": "MIT",
        "score_from": "annotators",
        "annotators": ["large", "small", "small"],
        "raw": [4.5, 4.5, 4.5],
        "scales": ["0..5", "0..5", "0..5"],
        "orders": ["ab", "ab", "ba"],
        "prompts": ["5eed", "5eed", "5eed"],
    }  # id2 is null in every row, so there is no such column
    assert data["validation"]["raw"][1] == [1.5, None, None]
    assert data["train"]["annotators"][3] == []
    assert data["train"]["flags"][1] == ["long"]


@pytest.mark.parametrize(
    ("config", "loss"),
    [
        ("pairs", "CoSENTLoss"),
        ("pair-class", "ContrastiveLoss"),
        ("gis", "ContrastiveLoss"),
        ("triplets", "MultipleNegativesRankingLoss"),
    ],
)
def test_sentence_transformers_trains_a_step_on_each_layout(
    published: Path, tmp_path: Path, config: str, loss: str
) -> None:
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.training_args import SentenceTransformerTrainingArguments

    model = SentenceTransformer(str(tiny_sentence_transformer(tmp_path / "model")), device="cpu")
    before = model.encode("The file is empty.")
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path / "out"),
        max_steps=1,
        per_device_train_batch_size=4,
        learning_rate=0.01,
        warmup_steps=0,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    data = load(published, tmp_path / "cache", config)["train"]
    objective = getattr(losses, loss)(model)
    trainer = SentenceTransformerTrainer(model, args=arguments, train_dataset=data, loss=objective)
    assert trainer.train().training_loss > 0
    assert abs(model.encode("The file is empty.") - before).max() > 1e-3


def test_second_call_finds_the_folder_finished(run: Run, published: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in published.rglob("*")}
    entry = publish_folder(run, published, licence="cc-by-4.0", language=["en", "zh", "ar"])
    assert not entry.fresh
    assert {path: path.stat().st_mtime_ns for path in published.rglob("*")} == before


def test_the_same_run_gives_the_same_bytes(run: Run, published: Path, tmp_path: Path) -> None:
    entry = publish_folder(run, tmp_path / "again", licence="CC-BY-4.0", language=["en", "zh", "ar"])
    assert entry.fresh
    assert files(tmp_path / "again") == files(published)
    assert not list(tmp_path.glob("*.partial*"))


def test_tally_counts_what_was_published_and_what_not(run: Run, tmp_path: Path) -> None:
    entry = publish_folder(run, tmp_path / "set", licence="mit")
    assert entry.tally.as_dict() == {
        "rows_in": 11,
        "dropped": {"no_score_or_label": 1},
        "counts": {
            "gis": {"test": 1, "train": 3, "validation": 1},
            "pair-class": {"test": 1, "train": 3, "validation": 1},
            "pairs": {"test": 2, "train": 4, "validation": 2},
            "provenance": {"test": 2, "train": 4, "validation": 2},
            "triplets": {"train": 2},
        },
    }
    assert entry.rows == 8
    assert entry.outputs["triplets"]["rows"] == 2


def test_other_settings_need_leave_to_replace(run: Run, published: Path) -> None:
    with pytest.raises(SettingsChangedError, match=r"licences was \['cc-by-4.0'\], now \['mit'\]"):
        publish_folder(run, published, licence="mit", language=["en", "zh", "ar"])
    assert publish_folder(run, published, licence="mit", replace=True).fresh
    assert "license: mit\n" in (published / "README.md").read_text()


def test_files_of_others_are_never_replaced(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "set"
    place.mkdir()
    (place / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds files that aren't a result of publish"):
        publish_folder(run, place, licence="mit", replace=True)
    assert files(place) == {"thesis.txt": b"mine"}


def test_large_splits_are_cut_into_shards_that_load_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "SHARD_ROWS", 100)
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, [pair(f"p{n}", f"left {n}", f"right {n}", score=n / 250) for n in range(250)])
        publish_folder(run, tmp_path / "set", licence="mit")
    names = sorted(path.name for path in (tmp_path / "set" / "data" / "pairs").iterdir())
    assert names == [f"train-{n:05}-of-00003.parquet" for n in range(3)]
    assert sorted(path.name for path in (tmp_path / "set" / "data").iterdir()) == ["pairs", "provenance"]
    data = load(tmp_path / "set", tmp_path / "cache")
    assert rows(data) == {"train": [(f"left {n}", f"right {n}", n / 250) for n in range(250)]}


def test_row_groups_hold_ten_thousand_rows_at_most(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, [pair(f"p{n}", f"left {n}", f"right {n}", score=n / 10_001) for n in range(10_001)])
        publish_folder(run, tmp_path / "set", licence="mit")
    (path,) = (tmp_path / "set" / "data" / "pairs").iterdir()
    assert [pq.read_metadata(path).row_group(n).num_rows for n in range(2)] == [10_000, 1]


def test_triplets_alone_are_a_set(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_triplets(run, ["one two three four"])
        publish_folder(run, tmp_path / "set", licence="mit")
    assert rows(load(tmp_path / "set", tmp_path / "cache")) == {
        "train": [("one two three four", "one two three", "one two")]
    }


def test_nothing_to_publish_says_what_to_run(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, [pair("p", "No label.", "No score.")])
        with pytest.raises(InputError, match="no pair with a score or label, and no triplets: run annotate"):
            publish_folder(run, tmp_path / "set", licence="mit")


def test_unknown_split_names_its_row(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, [pair("p", "a", "b", label=1), pair("q", "c", "d", label=1, split="holdout")])
        with pytest.raises(InputError, match="row 1 has split 'holdout': name it train, validation or test"):
            publish_folder(run, tmp_path / "set", licence="mit")
