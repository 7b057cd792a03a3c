import csv
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import mine_hard_negatives

from stscurate.audit.calibrate import calibrate
from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.methods.calibration import METHODS
from stscurate.methods.calibration.saved import Calibration
from stscurate.mining import Rules, mine
from stscurate.services.encoder import Encoder
from stscurate.services.reranker import Reranker
from stscurate.store import Run
from stscurate.tables import Source, texts_source, training_source
from tests.conftest import Command
from tests.tiny_models import SENTENCES, tiny_cross_encoder

WORDS = [word.strip(".,?") for sentence in SENTENCES for word in sentence.split()]


def texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [f"{' '.join(rng.choices(WORDS, k=rng.randint(3, 20)))} {seed}{at}" for at in range(n)]


def written(path: Path, rows: list[dict[str, Any]]) -> Source:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return training_source(path)


def mined(folder: Path, source: Source, model: Path, **options: Any) -> tuple[list[dict[str, Any]], Any]:
    with Run.open(folder) as run:
        entry = mine(run, source, model=str(model), **options)
        return run.table("triplets").to_pylist(), entry.tally


def triples(rows: list[dict[str, Any]]) -> Counter[tuple[str, str, str]]:
    return Counter((row["anchor"], row["positive"], row["negative"]) for row in rows)


def pairs_of(n: int) -> list[dict[str, Any]]:
    return [{"anchor": one, "positive": two} for one, two in zip(texts(n, 1), texts(n, 2), strict=True)]


@pytest.mark.parametrize(("margin", "first"), [(None, 1), (0.01, 1), (0.05, 1), (None, 3)])
def test_without_calibration_they_are_those_of_sentence_transformers(
    tmp_path: Path, tiny_model: Path, margin: float | None, first: int
) -> None:
    """Its range_max is set to all candidates: it looks no deeper, we always look at all."""
    pairs = pairs_of(40)
    pairs += [{"anchor": row["anchor"], "positive": f"{row['positive']} again"} for row in pairs[:5]]
    theirs = mine_hard_negatives(
        Dataset.from_list(pairs),
        SentenceTransformer(str(tiny_model), device="cpu"),
        range_min=first - 1,
        range_max=43,
        relative_margin=margin,
        num_negatives=3,
        verbose=False,
    )
    rules = Rules(number=3, margin=margin, ranks=(first, first + 2), near=1.0)
    ours, _ = mined(
        tmp_path / "run", written(tmp_path / "pairs.csv", pairs), tiny_model, rules=rules, similarity="cosine"
    )
    expected = triples(theirs.to_list())
    assert sum(expected.values()) > 9
    assert triples(ours) == expected


def test_what_is_one_thing_is_never_a_negative(tmp_path: Path, tiny_model: Path) -> None:
    long = "the committee will meet again next week and the shares fell sharply on tuesday when bonds rose in value"
    pairs: list[dict[str, Any]] = [
        {"text1": "a cat", "text2": "a dog", "label": 1, "component": "", "split": ""},
        {"text1": "a dog", "text2": "a bird", "label": 1, "component": "", "split": "train"},  # cat, dog, bird: one
        {"text1": "A  CAT", "text2": "a fish", "label": 1, "component": "", "split": ""},  # and fish
        {"text1": "one", "text2": "two", "label": 1, "component": "k", "split": ""},
        {"text1": "three", "text2": "four", "label": 1, "component": "k", "split": ""},  # with one and two
        {"text1": long, "text2": "five", "label": 1, "component": "", "split": ""},
        {"text1": "six", "text2": f"{long} indeed", "label": 0, "component": "", "split": ""},  # near to the long one
        {"text1": "elsewhere", "text2": "held out", "label": 1, "component": "", "split": "test"},
        {"text1": "it rains", "text2": "It  Rains", "label": 1, "component": "", "split": ""},
        {"text1": "one", "text2": "two", "label": 1, "component": "k", "split": ""},
    ]
    rules = Rules(number=20, margin=None, both_sides=True)
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("HELD OUT\nof the corpus\na dog\n")
    rows, tally = mined(
        tmp_path / "run",
        written(tmp_path / "pairs.csv", pairs),
        tiny_model,
        rules=rules,
        corpus=texts_source(corpus),
    )
    negatives: dict[str, set[str]] = {}
    for row in rows:
        negatives.setdefault(row["anchor"], set()).add(row["negative"])
    animals, numbers = {"a cat", "a dog", "a bird", "a fish", "A  CAT"}, {"one", "two", "three", "four"}
    rest = {"six", "it rains", "It  Rains", "of the corpus"}
    assert negatives["a cat"] == numbers | rest | {long, "five", f"{long} indeed"}
    assert negatives["three"] <= animals | rest | {long, "five", f"{long} indeed"}
    assert negatives[long] <= animals | numbers | rest
    assert tally.dropped == {"not_positive": 1, "split_test": 1, "same_text": 1, "repeated_pair": 1}
    assert tally.counts["candidates"]["held_out"] == 1
    assert tally.counts["negatives"]["mined"] == len(rows)
    assert tally.rows_in == 10


def test_s_norm_is_fitted_to_400_texts_and_the_cosine_taken_of_fewer(tmp_path: Path, tiny_model: Path) -> None:
    pairs = pairs_of(200)
    rows, tally = mined(tmp_path / "run", written(tmp_path / "pairs.csv", pairs), tiny_model, rules=Rules(number=1))
    assert tally.counts["texts by similarity"] == {"s-norm": 400}
    assert set(tally.counts["mean tokens"]) == {"candidates", "negatives by cosine", "negatives by s-norm"}
    anchors, positives = texts(200, 1), texts(200, 2)
    encoder = Encoder(str(tiny_model))
    u, v = encoder.encode(anchors), encoder.encode(positives)
    method = METHODS["s-norm"].fit(np.concatenate([u, v]), np.ones(400, np.int64))
    lengths = np.ones(200, np.int64)
    matrix = method.block(method.texts(u, lengths), method.texts(v, lengths))
    negatives = {row["anchor"]: row["negative"] for row in rows}
    for at in range(0, 200, 23):
        level = matrix[at, at] - abs(matrix[at, at]) * 0.05
        allowed = [column for column in range(200) if column != at and matrix[at, column] <= level]
        best = max(allowed, key=lambda column: matrix[at, column], default=None)
        assert negatives.get(anchors[at]) == (None if best is None else positives[best])
    few = written(tmp_path / "few.csv", pairs[:199])
    _, tally = mined(tmp_path / "few", few, tiny_model, rules=Rules(number=1))
    assert tally.counts["texts by similarity"] == {"cosine": 398}
    assert set(tally.counts["mean tokens"]) == {"candidates", "negatives by cosine"}


def test_a_calibration_is_taken_where_it_belongs(tmp_path: Path, tiny_model: Path) -> None:
    pairs = pairs_of(210)
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(text for row in pairs for text in row.values()) + "\n")
    calibrate(tmp_path / "fitted", texts_source(lines), model=str(tiny_model), method="length-centering")
    fitted = Calibration.load(tmp_path / "fitted")
    source = written(tmp_path / "pairs.csv", pairs[:50])
    _, tally = mined(tmp_path / "run", source, tiny_model, calibration=fitted)
    assert tally.counts["texts by similarity"] == {"length-centering": 100}
    others = written(tmp_path / "others.csv", [{"anchor": "one", "positive": "two"}])
    with pytest.raises(InputError, match="--accept corpus"):
        mined(tmp_path / "refused", others, tiny_model, calibration=fitted)


def test_a_reranker_drops_what_it_takes_for_positives(tmp_path: Path, tiny_model: Path) -> None:
    judge = tiny_cross_encoder(tmp_path / "judge", seed=3)
    pairs = pairs_of(30)
    source = written(tmp_path / "pairs.csv", pairs)
    rules = Rules(number=2, margin=0.0)
    rows, tally = mined(tmp_path / "run", source, tiny_model, rules=rules, reranker=str(judge))
    asked = [(row["anchor"], row[side]) for row in rows for side in ("positive", "negative")]
    numbers = Reranker(str(judge)).score(asked)[0].reshape(-1, 2)
    assert (numbers[:, 1] <= numbers[:, 0]).all()
    free, _ = mined(tmp_path / "free", source, tiny_model, rules=rules)
    assert tally.counts["reranker"]["taken for positives"] > 0
    assert triples(rows) != triples(free)


def test_chance_is_each_anchors_own_and_killed_work_is_gone_on_with(tmp_path: Path, tiny_model: Path) -> None:
    pairs = pairs_of(40)
    rules = Rules(number=2, ranks=(2, 8), draw="random", margin=None)
    source, part = written(tmp_path / "pairs.csv", pairs), written(tmp_path / "part.csv", pairs[:39])
    rows, _ = mined(tmp_path / "run", source, tiny_model, rules=rules, seed=1)
    again, _ = mined(tmp_path / "again", source, tiny_model, rules=rules, seed=1)
    other, _ = mined(tmp_path / "other", source, tiny_model, rules=rules, seed=2)
    assert fingerprint(tmp_path / "run" / "triplets") == fingerprint(tmp_path / "again" / "triplets")
    assert triples(rows) == triples(again) != triples(other)
    wide, _ = mined(tmp_path / "wide", source, tiny_model, rules=Rules(number=7, ranks=(2, 8), margin=None))
    assert triples(rows) <= triples(wide)
    assert len(mined(tmp_path / "part", part, tiny_model, rules=rules, seed=1)[0]) == 2 * 39


def test_training_reads_what_was_mined(tmp_path: Path, tiny_model: Path, command: Command) -> None:
    written(tmp_path / "pairs.csv", pairs_of(20))
    call = ("mine", tmp_path / "pairs.csv", "--model", tiny_model, "--margin", 0, "--out", tmp_path / "run")
    assert "negatives: " in command(*call).stdout
    assert json.loads(command(*call, "--json").stdout)["stages"][0]["fresh"] is False
    source = training_source(tmp_path / "run")
    labels = Counter(source.table["label"].to_pylist())
    assert labels[1] <= 20
    assert labels[0] == len(Run(tmp_path / "run").table("triplets"))
    train = ("train", "angle", "--data", tmp_path / "run", "--model", tiny_model, "--out", tmp_path / "model")
    assert command(*train).exit_code == 0


def test_where_nothing_is_found_the_mend_is_said(tmp_path: Path, tiny_model: Path, command: Command) -> None:
    written(tmp_path / "pairs.csv", pairs_of(1))
    told = command("mine", tmp_path / "pairs.csv", "--model", tiny_model, "--out", tmp_path / "run").stdout
    assert "0 triplets" in told
    assert "No negative was found: give more texts (--corpus)" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ranks", "x"), "--ranks x: give the nearest and the farthest, as in --ranks 1-50."),
        (("--ranks", "4-5"), "Ranks 4 to 5 hold no 3 negatives: give a wider range, from 1."),
        (("--ranks", "0-9"), "Ranks 0 to 9 hold no 3 negatives: give a wider range, from 1."),
        (("--calibration", "nowhere"), "nowhere holds no calibration"),
        ((), "pairs.csv has no positive pair to mine for: 1 not_positive."),
    ],
)
def test_mistakes_are_named(
    command: Command, tmp_path: Path, tiny_model: Path, options: tuple[str, ...], message: str
) -> None:
    written(tmp_path / "pairs.csv", [{"text1": "a", "text2": "b", "label": 0}])
    result = command("mine", tmp_path / "pairs.csv", "--model", tiny_model, "--out", tmp_path / "run", *options)
    assert result.exit_code == 2
    assert message in result.stderr
