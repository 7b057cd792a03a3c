"""What `stscurate train` reads, beyond pairs with scores."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.conftest import Command

ROWS = [("A cat sleeps.", "A cat is asleep.", "The sun shines."), ("It rains.", "Rain falls.", "The start crashes.")]


def test_queries_with_positives_and_negatives_are_pairs_of_either_label(
    tmp_path: Path, command: Command, tiny_model: Path
) -> None:
    data = tmp_path / "b.jsonl"
    data.write_text("".join(json.dumps({"query": q, "positive": p, "negative": n}) + "\n" for q, p, n in ROWS))
    for method in ("angle", "cosent"):
        train = ("train", method, "--data", data, "--model", tiny_model, "--out", tmp_path / method, "--json")
        (stage,) = json.loads(command(*train).stdout)["stages"]
        assert stage["outputs"]["trained"]["rows"] == 4
        assert pq.read_table(tmp_path / method / "row_losses.parquet").num_rows == 4


def positives(folder: Path) -> Path:
    data = folder / "c.jsonl"
    data.write_text("".join(json.dumps({"query": q, "positive": p}) + "\n" for q, p, _ in ROWS))
    return data


def test_positives_alone_are_refused_where_a_ranking_is_learnt(
    tmp_path: Path, command: Command, tiny_model: Path
) -> None:
    data = positives(tmp_path)
    done = command("train", "cosent", "--data", data, "--model", tiny_model, "--out", tmp_path / "model")
    assert done.exit_code == 2
    assert "All training pairs (2) have the score 1" in done.stderr


def test_sources_of_all_kinds_are_trained_together(tmp_path: Path, command: Command, tiny_model: Path) -> None:
    """Scored pairs on two scales, positives alone, and by other losses pairs and texts."""
    folder = tmp_path
    (folder / "five.csv").write_text("text1,text2,score\nA cat.,A dog.,4.5\nIt rains.,A sun.,0\nA cat.,,3\n")
    (folder / "one.csv").write_text("text1,text2,score\nA man.,A boy.,0.5\nIt snows.,A start.,0.1\n")
    (folder / "texts.txt").write_text("The sun shines on all of us.\nThe start crashes when it is late.\nshort\n")
    train = ["train", "angle", "--data", f"{folder / 'five.csv'}#0-5", "--data", positives(folder)]
    train += ["--data", folder / "one.csv", "--also", f"cosent={folder / 'five.csv'}#0-5"]
    train += ["--also", f"arccse={folder / 'texts.txt'}", "--also", f"simcse={folder / 'texts.txt'}"]
    train += ["--also", f"angle={folder / 'one.csv'}", "--model", tiny_model, "--json"]
    (stage,) = json.loads(command(*train, "--turns", "2,1,1,1,1,1,1", "--out", folder / "model").stdout)["stages"]
    found = {each["source"]: each["loss"] for each in stage["settings"]["sources"]}
    assert found == {
        "five.csv": "angle",
        "c.jsonl": "in-batch",
        "one.csv": "angle",
        "five.csv-2": "cosent",
        "texts.txt": "arccse",
        "texts.txt-2": "simcse",
        "one.csv-2": "angle",
    }
    assert stage["settings"]["turns"] == [2, 1, 1, 1, 1, 1, 1]
    assert stage["counts"]["rows of five.csv"] == {"used": 2, "empty_text": 1}
    assert stage["counts"]["rows of texts.txt"] == {"used": 2, "too_short": 1}
    losses = pq.read_table(folder / "model" / "row_losses.parquet").to_pylist()
    scores = {row["score"] for row in losses if row["source"] == "five.csv-2"}
    assert scores == {0.9, 0.0}
    for wrong, message in (("--turns=1,2", "give 7 numbers above 0"), ("--also=best=x.csv", "there is no loss best")):
        refused = command(*train, wrong, "--out", folder / "other")
        assert (refused.exit_code, message in refused.stderr) == (2, True)


def test_a_grid_searches_over_all_sources(tmp_path: Path, command: Command, tiny_model: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "text1,text2,score,split\nA cat.,A dog.,0.5,train\nIt rains.,A sun.,0,train\n"
        "A,B,0,validation\nIt,Is,1,validation\nWe,Go,0.5,validation\n"
    )
    train = ("train", "angle", "--data", tmp_path / "a.csv", "--data", positives(tmp_path), "--model", tiny_model)
    (stage,) = json.loads(command(*train, "--grid", "1,1,0|1", "--out", tmp_path / "model", "--json").stdout)["stages"]
    assert [each["loss"] for each in stage["settings"]["sources"]] == ["angle", "in-batch"]
    assert len(json.loads((tmp_path / "model" / "grid.json").read_text())["cells"]) == 2
    refused = command(*train, "--grid", "1,0|1,1", "--out", tmp_path / "other")
    assert (refused.exit_code, "Positives alone teach the in-batch objective alone" in refused.stderr) == (2, True)


def test_work_of_other_settings_is_named_when_it_is_thrown_away(
    tmp_path: Path, command: Command, tiny_model: Path
) -> None:
    (tmp_path / "a.csv").write_text("text1,text2,score\nA cat.,A dog.,0.5\nIt rains.,A sun.,0\n")
    train = ("train", "cosent", "--data", tmp_path / "a.csv", "--model", tiny_model, "--out", tmp_path / "model")
    assert command(*train).exit_code == 0
    begun = tmp_path / "model.partial"
    (begun / "checkpoints" / "checkpoint-7").mkdir(parents=True)
    (begun / "checkpoints" / "checkpoint-7" / "whole").touch()
    entry = json.loads((tmp_path / "model" / "manifest.json").read_text())["stages"]["train"]
    key = {name: entry[name] for name in ("inputs", "settings", "seed", "stscurate")}
    (begun / "key.json").write_text(json.dumps({**key, "seed": 3}))
    (tmp_path / "model" / "manifest.json").unlink()
    for path in (tmp_path / "model").iterdir():
        path.rename(tmp_path / f"moved-{path.name}")
    said = command(*train).stdout
    assert "model.partial holds 7 steps of a training that was begun otherwise (seed was 3, now 0)" in said


def test_temperatures_and_margins_are_those_told_or_the_documented_ones(
    tmp_path: Path, command: Command, tiny_model: Path
) -> None:
    (tmp_path / "a.csv").write_text("text1,text2,score\nA cat.,A dog.,0.5\nIt rains.,A sun.,0\n")
    (tmp_path / "texts.txt").write_text("The sun shines on all of us.\nThe start crashes when it is late.\n")

    def settings(method: str, data: str, *options: str) -> dict[str, Any]:
        out = tmp_path / "-".join((method, *options))
        train = ("train", method, "--data", tmp_path / data, "--model", tiny_model, "--out", out, "--json", *options)
        (stage,) = json.loads(command(*train).stdout)["stages"]
        return dict(stage["settings"])

    assert settings("angle", "a.csv")["taus"] == [0.2, 0.05, 0.2]
    assert settings("angle", "a.csv", "--taus", "0.1,0.2,0.3")["taus"] == [0.1, 0.2, 0.3]
    assert settings("cosent", "a.csv")["tau"] == 0.2
    assert settings("simcse", "texts.txt")["tau"] == 0.05
    paper = {"margin_degrees": 10, "tau": 0.05, "triplet_weight": 0.1, "triplet_margin": 0}
    assert settings("arccse", "texts.txt").items() >= paper.items()
    told = ("--margin", "15", "--tau", "0.1", "--triplet-weight", "0.5", "--triplet-margin", "0.2")
    changed = {"margin_degrees": 15, "tau": 0.1, "triplet_weight": 0.5, "triplet_margin": 0.2}
    assert settings("arccse", "texts.txt", *told).items() >= changed.items()
    refused = command("train", "arccse", "--data", tmp_path / "texts.txt", "--out", tmp_path / "no", "--margin", "90")
    assert refused.exit_code == 2
    assert "it must be from 0 to below 90" in refused.stderr
    assert not (tmp_path / "no").exists()
