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
from stscurate.methods.known_relevance import Relevance
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
    assert tally.counts["texts_by_similarity"] == {"s-norm": 400}
    assert set(tally.counts["mean_tokens"]) == {"candidates", "negatives_by_cosine", "negatives_by_s-norm"}
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
    assert tally.counts["texts_by_similarity"] == {"cosine": 398}
    assert set(tally.counts["mean_tokens"]) == {"candidates", "negatives_by_cosine"}


def test_a_calibration_is_taken_where_it_belongs(tmp_path: Path, tiny_model: Path) -> None:
    pairs = pairs_of(210)
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(text for row in pairs for text in row.values()) + "\n")
    calibrate(tmp_path / "fitted", texts_source(lines), model=str(tiny_model), method="length-centering")
    fitted = Calibration.load(tmp_path / "fitted")
    source = written(tmp_path / "pairs.csv", pairs[:50])
    _, tally = mined(tmp_path / "run", source, tiny_model, calibration=fitted)
    assert tally.counts["texts_by_similarity"] == {"length-centering": 100}
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
    assert tally.counts["reranker"]["taken_for_positives"] > 0
    assert triples(rows) != triples(free)


def curve_in(folder: Path, model: Path, weights: tuple[float, float, float, float], judge: Path | None = None) -> Path:
    """A folder as `audit relevance` leaves it, of the bare cosine, or of a reranker's number."""
    encoder, reranker = Encoder(str(model)), Reranker(str(judge)) if judge else None
    folder.mkdir()
    names = ("intercept", "similarity", "log2_length1", "log2_length2")
    of = {
        "model": encoder.model.name,
        "model_fingerprint": encoder.model.fingerprint,
        "calibration": None,
        "reranker": reranker.model.name if reranker else None,
        "reranker_fingerprint": reranker.model.fingerprint if reranker else None,
    }
    found = {"similarity_of": of, "curve": dict(zip(names, weights, strict=True))}
    (folder / "relevance.json").write_text(json.dumps(found))
    return folder


def test_a_curve_drops_likely_positives_and_others_take_their_place(
    tmp_path: Path, tiny_model: Path, command: Command
) -> None:
    """Against a loop: of each anchor's 12 nearest the first two below even odds, which here depend on the length."""
    pairs = pairs_of(40)
    anchors, positives = [row["anchor"] for row in pairs], [row["positive"] for row in pairs]
    encoder = Encoder(str(tiny_model))
    u, v = encoder.encode(anchors), encoder.encode(positives)
    counts, others = encoder.token_counts(anchors), encoder.token_counts(positives)
    cosine = u.astype(np.float64) @ v.T
    middle = float(np.median(np.sort(cosine, axis=1)[:, -6]))  # some six of each anchor's nearest are likely
    weights = (-40 * middle - 2.0, 40.0, -0.2, 0.6)
    curve = curve_in(tmp_path / "curve", tiny_model, weights)
    expected, dropped = {}, 0
    for i, anchor in enumerate(anchors):
        near = sorted((j for j in range(40) if j != i), key=lambda j: -cosine[i, j])[:12]
        logit = {j: weights[0] + 40 * cosine[i, j] - 0.2 * np.log2(counts[i]) + 0.6 * np.log2(others[j]) for j in near}
        left = [j for j in near if 1 / (1 + np.exp(-logit[j])) < 0.4]
        dropped += len(near) - len(left)
        expected[anchor] = {positives[j] for j in left[:2]}
    written(tmp_path / "pairs.csv", pairs)
    call = ("mine", tmp_path / "pairs.csv", "--model", tiny_model, "--relevance", curve, "--most-relevant")
    assert command(*call, 0.4, "--out", tmp_path / "by-command", "--quiet").exit_code == 0
    assert Run(tmp_path / "by-command").entries["triplets"].key["settings"]["most_relevant"] == 0.4
    none = command(*call, 0, "--out", tmp_path / "none")
    assert (none.exit_code, "--most-relevant 0: give a probability above 0, at most 1." in none.stderr) == (2, True)
    source = training_source(tmp_path / "pairs.csv")
    rules = Rules(number=2, ranks=(1, 12), margin=None, near=1.0)
    options: dict[str, Any] = {"similarity": "cosine", "relevance": Relevance.load(curve), "most_relevant": 0.4}
    rows, tally = mined(tmp_path / "run", source, tiny_model, rules=rules, **options)
    found: dict[str, set[str]] = {anchor: set() for anchor in anchors}
    for row in rows:
        found[row["anchor"]].add(row["negative"])
    assert found == expected
    assert tally.counts["neighbours"]["likely_relevant"] == dropped
    assert 40 < dropped < 12 * 40
    settings = Run(tmp_path / "run").entries["triplets"].key["settings"]
    assert settings["relevance"] == {"model": tiny_model.name, "calibration": None, "reranker": None}
    assert settings["most_relevant"] == 0.4


def test_a_curve_of_a_rerankers_numbers_takes_the_place_of_its_margin(tmp_path: Path, tiny_model: Path) -> None:
    judge = tiny_cross_encoder(tmp_path / "judge", seed=3)
    pairs = pairs_of(30)
    source = written(tmp_path / "pairs.csv", pairs)
    every = [(one["anchor"], two["positive"]) for one in pairs for two in pairs]
    numbers = dict(zip(every, Reranker(str(judge)).score(every)[0].tolist(), strict=True))
    level = float(np.median(list(numbers.values())))
    curve = Relevance.load(curve_in(tmp_path / "curve", tiny_model, (-1e4 * level, 1e4, 0.0, 0.0), judge))
    options: dict[str, Any] = {"rules": Rules(number=2, margin=None), "relevance": curve}
    rows, tally = mined(tmp_path / "run", source, tiny_model, reranker=str(judge), **options)
    assert tally.counts["reranker"]["taken_for_positives"] > 0
    assert rows
    assert all(numbers[row["anchor"], row["negative"]] < level for row in rows)
    with pytest.raises(InputError, match="of the numbers of judge: name that --reranker"):
        mined(tmp_path / "refused", source, tiny_model, **options)


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
        (("--relevance", "nowhere"), "nowhere holds no curve: name the folder that `stscurate audit relevance` wrote."),
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
