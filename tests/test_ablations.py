"""The recipes that tell settings of a training apart run on their samples, and end in a table on dev."""

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT, Command

CALLS = {
    "pooling": ([], ["pooling-cls", "pooling-mean", "pooling-last"]),
    "angle": (
        ["cells=1,0,0", "cells=1,1,0|1/0.05,0.05,0.1"],
        ["1-0-0", "1-1-0-taus-0.05-0.05-0.1", "1-1-1-taus-0.05-0.05-0.1"],
    ),
    "masks": (
        ["ratios=0.2,0.4", "margins=0", "margins=10"],
        [f"{kind}-0.2-0.4-margin-{margin}" for kind in ("nested", "independent") for margin in (0, 10)],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_training_for_each_setting_and_a_table_of_all(
    command: Command, tiny_model: Path, tmp_path: Path, name: str
) -> None:
    given, wanted = CALLS[name]
    options = [part for option in (f"model={tiny_model}", *given) for part in ("--set", option)]
    result = command("run", ROOT / "pipelines" / f"ablate_{name}.py", "--out", tmp_path / "run", *options, "--json")
    assert result.exit_code == 0
    stages = json.loads(result.stdout)["stages"]
    assert [stage["stage"] for stage in stages] == ["train"] * len(wanted) + ["evaluate"]
    folders = [f"weights-{each}" if name == "angle" else each for each in wanted]
    assert [Path(stage["place"]).name for stage in stages[:-1]] == folders
    digests = {stage["outputs"]["trained"]["sha256"] for stage in stages[:-1]}
    assert len(digests) == len(wanted)  # each setting enters the training
    results = json.loads((tmp_path / "run" / "dev" / "results.json").read_text())["results"]
    assert [each["model"] for each in results] == [tiny_model.name, *folders]
    assert all(each["low"] <= each["spearman"] <= each["high"] for each in results)


def test_long_texts_are_read_by_band_before_and_after(command: Command, tiny_model: Path, tmp_path: Path) -> None:
    options = [part for value in (f"model={tiny_model}", "max_tokens=24", "limit=20") for part in ("--set", value)]
    result = command("run", ROOT / "pipelines" / "long_texts.py", "--out", tmp_path / "run", *options, "--json")
    assert result.exit_code == 0, result.stderr
    stages = {stage["stage"]: stage for stage in json.loads(result.stdout)["stages"]}
    assert stages["train"]["rows_in"] == 20
    found = json.loads((tmp_path / "run" / "evaluation" / "results.json").read_text())
    assert [each["model"] for each in found["results"]] == [f"{tiny_model.name}, 24 tokens", "model, 24 tokens"]
    bands = [each["rows"] for each in found["parts"] if each["kind"] == "tokens"]
    assert (len(bands), sum(bands)) == (4, sum(each["rows"] for each in found["results"]))
    assert all(each["tokens_cut_share"] > 0 for each in found["results"])
