"""Natural-language inference as training pairs, and the recipe that trains on them."""

import json
from pathlib import Path

import pytest

from stscurate.errors import InputError
from stscurate.nli import nli_source
from stscurate.store import Run
from tests.conftest import Command

ROOT = Path(__file__).parent.parent
LINES = [
    ("p", "follows", "entailment"),
    ("p", "may be", "neutral"),
    ("p", "can't be", "contradiction"),
    ("p", "who knows", "-"),
    ("p", "", "entailment"),
    ("p", "follows", "entailment"),
]


def jsonl(folder: Path, names: tuple[str, str, str], lines: list[tuple[str, str, object]]) -> Path:
    path = folder / "nli.jsonl"
    path.write_text("".join(json.dumps(dict(zip(names, line, strict=True))) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("names", [("sentence1", "sentence2", "gold_label"), ("premise", "hypothesis", "label")])
def test_entailment_and_contradiction_are_pairs_and_the_rest_is_counted(
    tmp_path: Path, names: tuple[str, str, str]
) -> None:
    source = nli_source(jsonl(tmp_path, names, list(LINES)))
    rows = source.table.to_pylist()
    assert [(row["text1"], row["text2"], row["label"]) for row in rows] == [("p", "follows", 1), ("p", "can't be", 0)]
    assert source.tally.as_dict() == {
        "rows_in": 6,
        "dropped": {"empty_text": 1, "neutral": 1, "no_label": 1, "repeated_pair": 1},
        "counts": {},
    }
    assert nli_source(tmp_path / "nli.jsonl", limit=1).table.num_rows == 1


def test_labels_by_number_are_those_of_snli(tmp_path: Path) -> None:
    lines: list[tuple[str, str, object]] = [("p", str(number), number) for number in (0, 1, 2, -1)]
    source = nli_source(jsonl(tmp_path, ("premise", "hypothesis", "label"), lines))
    assert [(row["text2"], row["label"]) for row in source.table.to_pylist()] == [("0", 1), ("2", 0)]
    assert source.tally.dropped == {"neutral": 1, "no_label": 1}


def test_what_is_no_inference_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2: maybe is no label of inference"):
        nli_source(jsonl(tmp_path, ("premise", "hypothesis", "label"), [("p", "q", "entailment"), ("p", "r", "maybe")]))
    with pytest.raises(InputError, match="needs a column sentence2 or hypothesis or text2"):
        nli_source(jsonl(tmp_path, ("premise", "other", "label"), [("p", "q", "entailment")]))
    with pytest.raises(InputError, match="no entailment and no contradiction"):
        nli_source(jsonl(tmp_path, ("premise", "hypothesis", "label"), [("p", "q", "neutral")]))


def test_the_recipe_trains_and_evaluates(command: Command, tiny_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = command(
        "run",
        ROOT / "pipelines" / "nli.py",
        "--out",
        out,
        "--set",
        f"model={tiny_model}",
        "--set",
        "batch_size=10",
        "--json",
    )
    assert result.exit_code == 0
    stages = json.loads(result.stdout)["stages"]
    assert [stage["stage"] for stage in stages] == ["pairs", "train", "evaluate"]
    assert (stages[0]["rows_in"], stages[0]["dropped"]) == (30, {"neutral": 10})
    assert Run(out).table("pairs").num_rows == 20
    assert (out / "model" / "modules.json").exists()
