"""The validation set chooses the weights; a leak into a test set stops the training by name."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from stscurate.errors import InputError
from stscurate.evaluation import evaluate, gold_set
from stscurate.methods.leaks import TRAINING_TEXTS
from stscurate.records import from_rows
from stscurate.training import Schedule, held_out, pair_rows, text_rows, train_angle, train_cosent, train_simcse
from stscurate.training.data import TrainingRows
from stscurate.training.validation import Validation, own_validation, validation_set
from tests.conftest import Command
from tests.tiny_models import SENTENCES
from tests.training.test_trainer import pair, pairs

LINES = [(SENTENCES[i], SENTENCES[(i + 3) % 12], round((i * 5 % 12) / 11, 3)) for i in range(12)]


def written(path: Path, lines: list[tuple[str, str, float]], split: str | None = None) -> Path:
    head = "sentence1,sentence2,score" + (",split" if split else "")
    body = [f'"{a}","{b}",{score}' + (f",{split}" if split else "") for a, b, score in lines]
    path.write_text("\n".join([head, *body]) + "\n")
    return path


def test_the_weights_that_validate_best_are_kept(tiny_model: Path, tmp_path: Path) -> None:
    # A set whose gold is the start's own cosines, turned about: training can only spoil it.
    model = SentenceTransformer(str(tiny_model), device="cpu")
    left, right = (model.encode([line[side] for line in LINES], normalize_embeddings=True) for side in (0, 1))
    cosines = (left * right).sum(axis=1)
    gold = np.argsort(np.argsort(cosines)) / 11
    lines = [(a, b, float(value)) for (a, b, _), value in zip(LINES, gold, strict=True)]
    path = written(tmp_path / "validation.csv", lines)
    schedule = Schedule(epochs=3, batch_size=8, learning_rate=3e-3, eval_steps=2, patience=3)
    entry = train_cosent(
        pairs(), tmp_path / "model", model=str(tiny_model), schedule=schedule, validation=validation_set(path)
    )
    curve = json.loads((tmp_path / "model" / "training_curve.json").read_text())
    looks = {point["step"]: point["spearman"] for point in curve["points"] if "spearman" in point}
    best = max(looks, key=lambda step: (looks[step], -step))
    assert curve["best"] == {"step": best, "spearman": looks[best]} == entry.outputs["trained"]["best"]
    assert max(looks) == best + 6  # three looks without a better one
    assert max(looks) < 27
    assert evaluate(str(tmp_path / "model"), [gold_set(str(path))])[0].spearman == pytest.approx(looks[best], abs=1e-9)


def test_a_look_is_spearman_of_cosines_and_the_geometry_of_the_vectors(tiny_model: Path) -> None:
    model = SentenceTransformer(str(tiny_model), device="cpu")
    gold = np.array([score for *_, score in LINES])
    gold[gold.argmax()] = 0.8  # 4 of 5 itself, which isn't positive
    found = Validation("v", [(a, b) for a, b, _ in LINES], gold).look(model, geometry=True)
    vectors = {text: model.encode(text, normalize_embeddings=True).astype(float) for text in SENTENCES}
    cosines = [vectors[a] @ vectors[b] for a, b, _ in LINES]
    assert found["spearman"] == pytest.approx(spearmanr(cosines, gold).statistic)
    lines = zip(LINES, gold, strict=True)
    near = [np.sum((vectors[a] - vectors[b]) ** 2) for (a, b, _), score in lines if score > 0.8]
    assert len(near) == 2
    assert found["alignment"] == pytest.approx(np.mean(near), rel=1e-4)
    apart = [np.exp(-2 * np.sum((vectors[a] - vectors[b]) ** 2)) for a in SENTENCES for b in SENTENCES if a != b]
    assert found["uniformity"] == pytest.approx(np.log(np.mean(apart)), rel=1e-4)


def test_only_a_validation_split_validates(tmp_path: Path) -> None:
    rows = [
        pair(str(i), a, b, score=s, split=("validation", "test", "train")[i % 3]) for i, (a, b, s) in enumerate(LINES)
    ]
    own = own_validation("run", from_rows(rows, "pairs"))
    assert own is not None
    assert own.pairs == [(a, b) for a, b, _ in LINES[::3]]
    assert own_validation("run", from_rows(rows[1:2], "pairs")) is None
    with pytest.raises(InputError, match=r"has 0 pairs with gold to validate on \(it holds the split test\)"):
        validation_set(written(tmp_path / "test.csv", LINES, split="test"))
    with pytest.raises(InputError, match="all validation gold is 1"):
        validation_set(written(tmp_path / "one.csv", [(a, b, 1.0) for a, b, _ in LINES]))
    assert len(validation_set(written(tmp_path / "plain.csv", LINES)).pairs) == 12


def some_rows() -> TrainingRows:
    return pair_rows(from_rows([pair(f"r{i}", *LINES[i][:2], score=LINES[i][2]) for i in range(6)], "pairs"), inputs={})


def test_training_on_texts_of_a_test_set_is_refused_by_name(tiny_model: Path, tmp_path: Path) -> None:
    test = written(tmp_path / "gold.csv", [("Nobody wrote this.", "Nor that.", 0.5), (SENTENCES[2].upper(), "x", 0.1)])
    with pytest.raises(InputError, match=r"1 of 6 training rows hold a text of gold.csv: row r2 \(gold.csv, line 3\)"):
        train_angle(some_rows(), tmp_path / "model", model=str(tiny_model), held_out=[held_out(test)])
    assert not (tmp_path / "model").exists()
    entry = train_angle(
        some_rows(), tmp_path / "model", model=str(tiny_model), held_out=[held_out(test)], accept_leaks=True
    )
    found = entry.key["settings"]["held_out"]["gold.csv"]
    assert (found["training_rows"], found["rows_spoiled"], found["rows"]) == (1, 1, 2)
    assert "**Trained on texts of a test set.**" in (tmp_path / "model" / "README.md").read_text()
    # What the start has seen spoils a test as well, though the rows of now don't.
    rows = text_rows(
        from_rows([{"text_id": "1", "text": "Rain."}, {"text_id": "2", "text": "Snow."}], "texts"), inputs={}
    )
    assert len((tmp_path / "model" / TRAINING_TEXTS).read_text().split()) == 9
    with pytest.raises(InputError, match=r"the model to start from was trained on texts of gold.csv, line 3"):
        train_simcse(rows, tmp_path / "next", model=str(tmp_path / "model"), held_out=[held_out(test)])


def test_of_several_splits_only_the_test_is_held_out(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_text("sentence1,sentence2,score,split\na,b,1,train\nc,d,0,test\n")
    assert [row.texts for row in held_out(path).rows] == [{"sentence1": "c", "sentence2": "d"}]
    path.write_text("sentence1,sentence2,score\n,,1\n")
    with pytest.raises(InputError, match="has no text to hold out"):
        held_out(path)


@pytest.mark.parametrize("method", ["cosent", "simcse"])
def test_the_commands_take_validation_and_gate(command: Command, tiny_model: Path, tmp_path: Path, method: str) -> None:
    data = written(tmp_path / "data.csv", LINES)
    other = written(tmp_path / "other.csv", [(f"Some {a}", f"Some {b}", score) for a, b, score in LINES])
    given = ("train", method, "--data", data, "--model", tiny_model, "--batch-size", 4, "--out", tmp_path / "model")
    refused = command(*given, "--test", data)
    assert (refused.exit_code, "--accept leaks" in refused.stderr) == (2, True)
    options = ("--batches", "length", "--validate", other, "--eval-steps", 1, "--patience", 1)
    done = command(*given, "--test", data, "--accept", "leaks", *options, "--json")
    found = json.loads(done.stdout)
    assert found["best"]["step"] >= 1
    settings = found["stages"][0]["settings"]
    assert (settings["eval_steps"], settings["patience"], settings["batches"]) == (1, 1, "length")
    assert settings["held_out"]["data.csv"]["rows_spoiled"] == 12
    assert ("alignment" in found["curve"][-1]) == (method == "simcse")
