"""The trainer: it learns, remembers what it saw, refuses what can't be learnt, and survives kills to the byte."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.evaluation import evaluate, gold_set
from stscurate.methods.leaks import TRAINING_TEXTS, text_digest
from stscurate.records import PAIRS, SCORES, Tally, from_rows
from stscurate.store import Run
from stscurate.training import Schedule, pair_rows, train_angle, train_arccse, trainer, triplet_rows
from stscurate.training.data import TrainingRows
from stscurate.training.trainer import Common
from stscurate.training.validation import Validation
from tests.conftest import Command
from tests.tiny_models import SENTENCES, tiny_sentence_transformer

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_transformer(tmp_path_factory.mktemp("start") / "tiny")


def pairs() -> TrainingRows:
    """All pairs of the tiny model's sentences; the score is 1 for neighbours in the list, else 0."""
    rows = []
    for i, first in enumerate(SENTENCES):
        for j, second in enumerate(SENTENCES[:i]):
            rows.append(pair(f"{i}-{j}", first, second, score=float(i - j == 1)))
    return pair_rows(from_rows(rows, "pairs"), inputs={"pairs": "0"})


def pair(key: str, text1: str, text2: str, **values: object) -> dict[str, object]:
    filled = {"pair_id": key, "text1": text1, "text2": text2, "weight": 1.0, "origin": "file:x", "flags": []}
    return dict.fromkeys(PAIRS.names) | filled | values


def triplets() -> TrainingRows:
    words = [text.split() for text in SENTENCES]
    table = {
        "anchor": SENTENCES,
        "positive": [" ".join(text[1:]) for text in words],
        "negative": [" ".join(text[2:]) for text in words],
    }
    return triplet_rows(pa.table({name: list(column) for name, column in table.items()}), inputs={"triplets": "0"})


SHORT = Schedule(epochs=2, batch_size=8, learning_rate=1e-3, save_steps=3)
LOOKING = Schedule(epochs=2, batch_size=8, learning_rate=1e-3, save_steps=3, eval_steps=4, batches="length")


def validation() -> Validation:
    """The pairs with their gold turned about, so that the first looks are the best."""
    rows = pairs().columns
    gold = np.array([1 - score for score, _ in rows["label"]])
    return Validation("v", list(zip(rows["sentence1"], rows["sentence2"], strict=True)), gold)


def test_angle_training_brings_cosines_nearer_to_the_scores(start: Path, tmp_path: Path) -> None:
    path = tmp_path / "gold.csv"
    rows = pairs()
    lines = zip(rows.columns["sentence1"], rows.columns["sentence2"], rows.columns["label"], strict=True)
    path.write_text("sentence1,sentence2,score\n" + "".join(f'"{a}","{b}",{label[0]}\n' for a, b, label in lines))
    train_angle(rows, tmp_path / "model", model=str(start), schedule=Schedule(8, 16, 3e-3))
    before, after = (evaluate(str(model), [gold_set(str(path))])[0] for model in (start, tmp_path / "model"))
    assert after.spearman is not None
    assert before.spearman is not None
    assert after.spearman > before.spearman + 0.1
    assert (after.rows_clean, before.rows_clean) == (0, None)


def test_a_model_folder_loads_and_remembers_its_texts(start: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    rows = triplets()
    entry = train_arccse(rows, tmp_path / "model", model=str(start), schedule=SHORT)
    assert entry.outputs["trained"]["rows"] == len(SENTENCES)
    assert SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(["Hello."]).shape == (1, 32)
    known = (tmp_path / "model" / TRAINING_TEXTS).read_text().split()
    assert known == sorted({text_digest(text) for column in rows.columns.values() for text in column})
    # A model that is trained on, here on the anchors alone, still knows what its start had seen.
    train_angle(pairs(), tmp_path / "second", model=str(tmp_path / "model"), schedule=SHORT)
    assert (tmp_path / "second" / TRAINING_TEXTS).read_text().split() == known
    (tmp_path / "model" / TRAINING_TEXTS).write_bytes(b"\xff\x00")
    with pytest.raises(InputError, match=r"is damaged, .* copy the model again"):
        train_angle(pairs(), tmp_path / "third", model=str(tmp_path / "model"), schedule=SHORT)


def test_the_same_call_finds_the_model_and_another_seed_is_refused(start: Path, tmp_path: Path) -> None:
    first = train_angle(pairs(), tmp_path / "model", model=str(start), schedule=SHORT)
    assert not train_angle(pairs(), tmp_path / "model", model=str(start), schedule=SHORT).fresh
    with pytest.raises(InputError, match="seed was 0, now 1"):
        train_angle(pairs(), tmp_path / "model", model=str(start), schedule=Schedule(2, 8, 1e-3, seed=1))
    other = train_angle(pairs(), tmp_path / "b", model=str(start), schedule=Schedule(2, 8, 1e-3, seed=1))
    assert other.outputs["trained"]["sha256"] != first.outputs["trained"]["sha256"]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from stscurate.training import trainer
from tests.training.test_trainer import LOOKING, pairs, train_angle, validation

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def progress(label, done, total):
    if done == int(sys.argv[4]):
        die()

if sys.argv[4] == "0":
    trainer.model_card = die
given = {"model": sys.argv[2], "schedule": LOOKING, "validation": validation(), "progress": progress}
train_angle(pairs(), Path(sys.argv[3]), **given)
"""


def test_training_killed_at_any_step_ends_at_the_same_weights(start: Path, tmp_path: Path) -> None:
    given: Common = {"model": str(start), "schedule": LOOKING, "validation": validation()}
    entry = train_angle(pairs(), tmp_path / "unbroken" / "model", **given)
    assert entry.outputs["trained"]["best"]["step"] < 12
    out = tmp_path / "killed" / "model"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    # Before the first checkpoint, in the first and in the second pass, and when all is trained but the card.
    for step in (2, 7, 13, 0):
        command = [sys.executable, "-c", KILLED, str(ROOT), str(start), str(out), str(step)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not out.exists()
        (out.with_name("model.partial") / "checkpoints" / "checkpoint-99").mkdir(parents=True)  # one in pieces
    train_angle(pairs(), out, **given)
    assert fingerprint(out) == fingerprint(tmp_path / "unbroken" / "model")
    assert [path.name for path in out.parent.iterdir()] == ["model"]


def test_a_training_that_stopped_early_stays_stopped_when_it_is_gone_on_with(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = replace(LOOKING, eval_steps=2, patience=1)
    given: Common = {"model": str(start), "schedule": schedule, "validation": validation()}
    entry = train_angle(pairs(), tmp_path / "unbroken", **given)
    points = json.loads((tmp_path / "unbroken" / "training_curve.json").read_text())["points"]
    assert points[-1]["step"] == entry.outputs["trained"]["best"]["step"] + 2 < 18
    steps: list[int] = []

    def stop(*_: object) -> str:
        raise KeyboardInterrupt

    def progress(label: str, done: int, total: int | None) -> None:
        steps.append(done)

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "model_card", stop)
        with pytest.raises(KeyboardInterrupt):
            train_angle(pairs(), tmp_path / "broken", **given)
    again: Common = {**given, "progress": progress}
    train_angle(pairs(), tmp_path / "broken", **again)
    assert steps == []
    assert fingerprint(tmp_path / "broken") == fingerprint(tmp_path / "unbroken")


def scores(values: dict[str, float]) -> object:
    rows = [
        dict.fromkeys(SCORES.names) | {"pair_id": key, "score": score, "annotators": 1, "method": "mean"}
        for key, score in values.items()
    ]
    return from_rows(rows, "scores")


def test_labels_come_from_gold_or_from_scores_as_told() -> None:
    table = from_rows(
        [
            pair("scored", "a", "b", score=0.25, label=1),
            pair("labelled", "c", "d", label=1),
            pair("bare", "e", "f"),
            pair("test", "g", "h", label=0, split="test"),
            pair("weightless", "i", "j", label=0, weight=0.0),
            pair("heavy", "k", "l", label=0, weight=2.0, split="train"),
        ],
        "pairs",
    )
    pseudo = scores({"scored": 0.9, "bare": 0.5, "test": 0.1, "weightless": 0.1})
    expected = {
        "gold": [[0.25, 1.0], [1.0, 1.0], [0.0, 2.0]],
        "pseudo": [[0.9, 1.0], [0.5, 1.0]],
        "auto": [[0.25, 1.0], [1.0, 1.0], [0.5, 1.0], [0.0, 2.0]],
    }
    dropped = {
        "gold": {"no_score": 1, "split_test": 1, "weight_0": 1},
        "pseudo": {"no_score": 2, "split_test": 1, "weight_0": 1},
        "auto": {"split_test": 1, "weight_0": 1},
    }
    for labels in ("gold", "pseudo", "auto"):
        rows = pair_rows(table, inputs={}, labels=labels, scores=pseudo)
        assert rows.columns["label"] == expected[labels]
        assert rows.tally == Tally(6, rows.tally.dropped)
        assert rows.tally.dropped == dropped[labels]


def test_a_pseudo_label_weighs_by_the_agreement_of_its_annotators_where_that_is_wanted() -> None:
    table = from_rows(
        [pair(key, key, "b", weight=2.0) for key in ("agreed", "halfway", "alone", "torn")]
        + [pair("gold", "c", "d", score=0.5, weight=2.0)],
        "pairs",
    )
    agreement = {"agreed": 1.0, "halfway": 0.5, "alone": None, "torn": 0.0, "gold": 0.25}
    made = [
        dict.fromkeys(SCORES.names)
        | {"pair_id": key, "score": 0.1 * place, "agreement": value, "annotators": 2, "method": "mean"}
        for place, (key, value) in enumerate(agreement.items())
    ]
    rows = pair_rows(table, inputs={}, scores=from_rows(made, "scores"), agreement_weights=True)
    assert rows.columns["label"] == [[0.0, 2.0], [0.1, 1.0], [0.2, 2.0], [0.5, 2.0]]
    assert (rows.settings, rows.tally.dropped) == ({"labels": "auto", "agreement_weights": True}, {"weight_0": 1})
    plain = pair_rows(table, inputs={}, scores=from_rows(made, "scores"))
    assert {weight for _, weight in plain.columns["label"]} == {2.0}
    assert plain.settings == {"labels": "auto"}


def test_the_command_weighs_by_agreement(command: Command, start: Path, tmp_path: Path) -> None:
    rows = [pair(str(i), SENTENCES[i], SENTENCES[i + 1]) for i in range(6)]
    made = [
        {"pair_id": str(i), "score": i / 5, "spread": 0.1, "agreement": 0.8, "annotators": 2, "method": "mean"}
        for i in range(6)
    ]
    with Run.open(tmp_path / "run") as run:
        for name, found in (("pairs", from_rows(rows, "pairs")), ("scores", from_rows(made, "scores"))):
            stage = run.stage(name, tables=[name], inputs={}, settings={})
            stage.write(0, {name: found}, Tally(rows_in=6))
            stage.commit()
    digests = {}
    for option in ([], ["--agreement-weights"]):
        out = tmp_path / f"model{len(option)}"
        given = ["--data", tmp_path / "run", "--model", start, "--out", out, *option, "--json"]
        (entry,) = json.loads(command("train", "angle", *given).stdout)["stages"]
        digests[len(option)] = entry["outputs"]["trained"]["sha256"]
        assert entry["settings"].get("agreement_weights", False) is bool(option)
    # the weights enter the losses
    assert digests[0] != digests[1]


def test_what_cannot_be_learnt_is_refused() -> None:
    same = from_rows([pair("1", "a", "b", label=1), pair("2", "c", "d", label=1)], "pairs")
    with pytest.raises(InputError, match=r"All training pairs \(2\) have the score 1"):
        pair_rows(same, inputs={})
    bare = from_rows([pair("1", "a", "b")], "pairs")
    mend = "give pairs with a score or a label, of the split train or of no split."
    for table, begun in ((bare, "No pair to train on (of 1 pair, 1 no_score): "), (bare[:0], "No pair to train on: ")):
        with pytest.raises(InputError) as refused:
            pair_rows(table, inputs={})
        assert str(refused.value) == begun + mend
    with pytest.raises(InputError, match="There are no pseudo-labels: run `stscurate annotate`"):
        pair_rows(same, inputs={}, labels="pseudo")
    mend = "give longer texts to mask, or pairs that `stscurate mine` finds negatives for."
    short = Tally(rows_in=10)
    short.drop("too_short", 10)
    told = ((None, "No triplet to train on: "), (short, "No triplet to train on (of 10 triplets, 10 too_short): "))
    for tally, begun in told:
        with pytest.raises(InputError) as refused:
            triplet_rows(from_rows([], "triplets"), inputs={}, tally=tally)
        assert str(refused.value) == begun + mend
