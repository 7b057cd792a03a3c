"""Linear probes: folds, splits, and what is left out."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

from stscurate.errors import InputError
from stscurate.evaluation import Wanted, evaluate_all
from stscurate.evaluation.metrics.probe import by_splits, fold_of, out_of_fold
from stscurate.evaluation.tasks import Probe, read_labels
from stscurate.services.encoder import Encoder
from tests.conftest import Command
from tests.tiny_models import SENTENCES

NOISE = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 2], [40, 30, 20])
CENTRES = np.eye(8)[:3]
VECTORS = (CENTRES[LABELS] + 0.4 * NOISE.normal(size=(90, 8))).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)


def test_folds_share_each_class_evenly_and_depend_on_the_seed_alone() -> None:
    fold = fold_of(LABELS, 10, seed=1)
    assert sorted(Counter(zip(LABELS.tolist(), fold.tolist(), strict=True)).values()) == [2] * 10 + [3] * 10 + [4] * 10
    assert (fold == fold_of(LABELS, 10, seed=1)).all()
    assert (fold != fold_of(LABELS, 10, seed=2)).any()


def told(learnt: np.ndarray, chosen: np.ndarray, asked: np.ndarray, *, refit: bool) -> np.ndarray:
    """scikit-learn itself, with the strength that does best on `chosen`."""
    rows = VECTORS.astype(np.float64) * np.sqrt(8)
    scores = {}
    for strength in (0.001, 0.01, 0.1, 1.0):
        model = LogisticRegression(C=strength, max_iter=1000).fit(rows[learnt], LABELS[learnt])
        scores[strength] = accuracy_score(LABELS[chosen], model.predict(rows[chosen]))
    best = max(scores, key=lambda strength: (scores[strength], -strength))
    both = np.sort(np.concatenate([learnt, chosen])) if refit else learnt
    return np.asarray(LogisticRegression(C=best, max_iter=1000).fit(rows[both], LABELS[both]).predict(rows[asked]))


def test_each_fold_is_told_by_a_model_of_the_others() -> None:
    found = out_of_fold(VECTORS, LABELS, folds=10, seed=1)
    fold = fold_of(LABELS, 10, seed=1)
    for number in range(10):
        others = np.flatnonzero(fold != number)
        inner = fold_of(LABELS[others], 5, 1)
        expected = told(others[inner != 0], others[inner == 0], np.flatnonzero(fold == number), refit=True)
        assert found[fold == number].tolist() == expected.tolist()
    assert np.mean(found == LABELS) > 0.8
    shuffled = np.random.default_rng(5).permutation(LABELS)
    assert np.mean(out_of_fold(VECTORS, shuffled, folds=10) == shuffled) < 0.6  # nothing to learn, and nothing leaks


def test_a_files_splits_are_kept_to() -> None:
    order = np.random.default_rng(2).permutation(90)
    train, validation, test = order[:50], order[50:65], order[65:]
    assert (
        by_splits(VECTORS, LABELS, train, validation, test).tolist()
        == told(train, validation, test, refit=False).tolist()
    )
    inner = fold_of(LABELS[train], 5, 7) == 0
    expected = told(train[~inner], train[inner], test, refit=True)
    assert by_splits(VECTORS, LABELS, train, test[:0], test, seed=7).tolist() == expected.tolist()


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_texts_count_once_and_rare_classes_are_left_out(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"text": f"good {n}", "label": "pos"} for n in range(10)]
    rows += [{"text": f"bad {n}", "label": 0} for n in range(12)] + [
        {"text": f"odd {n}", "label": "?"} for n in range(3)
    ]
    rows += [{"text": "GOOD 1", "label": 0}, {"text": "", "label": 0}, {"text": "none", "label": None}]
    found = read_labels(write(tmp_path / "texts.jsonl", rows))
    assert (found.classes, np.bincount(found.labels).tolist()) == (["0", "pos"], [12, 10])
    assert found.dropped == {"empty_text": 1, "no_label": 1, "rare_class": 3, "repeated_text": 1}
    assert found.splits == ()
    assert "to say '0' always is right for 54.5%" in Probe(found).note
    for cut, message in ((10, "has 1 class to learn"), (9, "has 0 classes to learn (those with fewer than 10 texts")):
        with pytest.raises(InputError, match=message.replace("(", r"\(")):
            read_labels(write(tmp_path / "one.jsonl", rows[:cut]))
    (tmp_path / "unnamed.csv").write_text("question,kind\na,b\n")
    with pytest.raises(InputError, match="needs columns text and label"):
        read_labels(tmp_path / "unnamed.csv")


def test_training_texts_that_are_in_the_test_split_are_left_out(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": "a", "label": "x", "split": "train"},
        {"text": "b", "label": "y", "split": "train"},
        {"text": "c", "label": "y", "split": "dev"},
        {"text": "d", "label": "z", "split": "test"},
        {"text": "A", "label": "y", "split": "test"},
        {"text": "f", "label": "y", "split": "other"},
        {"text": "g", "label": "x", "split": "train"},
    ]
    found = read_labels(write(tmp_path / "texts.jsonl", rows))
    assert found.texts == ["b", "c", "d", "A", "g"]
    assert found.splits == ("train", "validation", "test", "test", "train")
    assert found.dropped == {"other_split": 1, "text_in_test": 1}
    assert found.classes == ["x", "y", "z"]  # what is never learnt, last
    assert "1 text of its split test, of a class without any in train, can't be told right" in Probe(found).note
    more: dict[str, object] = {"text": "h", "label": "x", "split": "validation"}
    for some in (rows[1:5], [*rows[1:5], more]):
        with pytest.raises(InputError, match="has 1 class to learn in its split train"):
            read_labels(write(tmp_path / "one.jsonl", some))


def test_the_command_probes_with_an_interval_and_leak_clean(tmp_path: Path, tiny_model: Path, command: Command) -> None:
    texts = [f"{one} {two}" for one in SENTENCES[:6] for two in SENTENCES]
    rows: list[dict[str, object]] = [{"text": text, "label": row // 12 % 2} for row, text in enumerate(texts)]
    path = write(tmp_path / "texts.jsonl", rows)
    (tmp_path / "train.txt").write_text("\n".join(texts[:12]) + "\n")
    done = command(
        "evaluate", tiny_model, "--probe", path, "--train", tmp_path / "train.txt", "--json", "--resamples", 200
    )
    assert done.exit_code == 0, done.stderr
    (found,) = json.loads(done.stdout)["tasks"]
    labels = np.array([row["label"] for row in rows])
    right = out_of_fold(Encoder(str(tiny_model)).encode(texts), labels, folds=10, seed=0) == labels
    assert (found["kind"], found["metric"], found["rows"]) == ("probe", "accuracy", 72)
    assert found["value"] == pytest.approx(right.mean())
    assert (found["rows_clean"], found["value_clean"]) == (60, pytest.approx(right[12:].mean()))
    draws = np.random.default_rng(0).integers(72, size=(200, 72))
    expected = np.percentile(right[draws].mean(axis=1), [2.5, 97.5])
    assert [found["low"], found["high"]] == pytest.approx(expected.tolist())
    again = evaluate_all([str(tiny_model)], [], Wanted(tasks=[Probe(read_labels(path))] * 1))
    assert again.tasks[0].value == found["value"]
