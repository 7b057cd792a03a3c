"""What `stscurate train` reads, beyond pairs with scores."""

import json
from pathlib import Path

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


def test_positives_alone_are_refused_where_a_ranking_is_learnt(
    tmp_path: Path, command: Command, tiny_model: Path
) -> None:
    data = tmp_path / "c.jsonl"
    data.write_text("".join(json.dumps({"query": q, "positive": p}) + "\n" for q, p, _ in ROWS))
    done = command("train", "angle", "--data", data, "--model", tiny_model, "--out", tmp_path / "model")
    assert done.exit_code == 2
    assert "All 2 training pairs have the score 1" in done.stderr
