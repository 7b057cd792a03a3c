"""What the audit of relevance tells of judged pairs, and of pairs that it can't tell anything of."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.audit.relevance import Judged, audit_relevance, fitted
from stscurate.cli.relevance import _with_interval
from stscurate.errors import InputError
from stscurate.methods.calibration import METHODS
from stscurate.methods.calibration.saved import Calibration, digests_of
from stscurate.methods.known_relevance import Relevance
from stscurate.methods.pair_similarity import pair_lengths, pair_similarity
from stscurate.services.encoder import Encoder
from stscurate.services.reranker import Reranker
from stscurate.tables import pairs_source
from tests.conftest import Command
from tests.methods.test_relevance import made
from tests.tiny_models import SENTENCES, tiny_cross_encoder, tiny_sentence_transformer


def judged(n: int) -> Judged:
    similarity, length1, length2, relevance = made(n)
    return Judged([(f"q{row // 4}", f"d{row}") for row in range(n)], similarity, length1, length2, relevance)


def test_each_band_tells_its_similarity_and_what_one_threshold_means_there() -> None:
    given = judged(3000)
    found = fitted(given, resamples=40)
    bands = {(band["first"], band["second"]): band for band in found["bands"]}
    assert len(bands) == 9
    assert sum(band["pairs"] for band in found["bands"]) == 3000
    # The truth is -2 + 8 s - .5 log2 of the second length: even odds at (2 + .5 log2(length)) / 8.
    for (_, second), band in bands.items():
        truth = (2 + 0.5 * np.log2(band["tokens"][1])) / 8
        low, high = band["similarity_at_0.5_interval"]
        assert low < band["similarity_at_0.5"] < high
        assert abs(band["similarity_at_0.5"] - truth) < 0.05, second
    assert bands["middle", "short"]["similarity_at_0.5"] < bands["middle", "long"]["similarity_at_0.5"]
    above = given.similarity >= found["one_threshold"]
    total = sum(band["above"] for band in found["bands"])
    assert total == above.sum()
    shares = [band["relevant_above_it"] * band["above"] for band in found["bands"]]
    assert sum(shares) == pytest.approx(given.relevance[above].sum())
    assert bands["short", "short"]["probability_at_one_threshold"] > 0.5
    assert bands["long", "long"]["probability_at_one_threshold"] < 0.5


def test_a_band_of_few_pairs_says_nothing() -> None:
    found = fitted(judged(120), resamples=5)
    few = [band for band in found["bands"] if band["pairs"] < 20]
    assert few
    assert all(band["similarity_at_0.5"] is None and band["relevant_above_it"] is None for band in few)


def test_a_similarity_that_falls_with_relevance_is_refused() -> None:
    given = judged(400)
    turned = Judged(given.pairs, -given.similarity, given.length1, given.length2, given.relevance)
    with pytest.raises(InputError, match="the less relevant the more similar"):
        fitted(turned, resamples=2)


def test_judgements_that_are_all_the_same_are_named() -> None:
    given = judged(200)
    same = Judged(given.pairs, given.similarity, given.length1, given.length2, np.full(200, 0.6))
    with pytest.raises(InputError, match=r"All pairs were judged 0\.6: there is nothing to tell apart"):
        fitted(same, resamples=2)


def test_a_similarity_that_no_cosine_has_is_not_shown_as_one() -> None:
    band = {"similarity_at_0.9": 1.02, "similarity_at_0.9_interval": [1.0, 1.04]}
    assert _with_interval(band, "similarity_at_0.9", most=1.0) == "none (above 1)"
    assert _with_interval(band, "similarity_at_0.9", most=None) == "1.020 (1.000 to 1.040)"


def test_the_command_fits_keeps_and_finds_again(command: Command, tmp_path: Path, tiny_model: Path) -> None:
    texts = [f"{one} {two}" for one in SENTENCES for two in SENTENCES[:2]]
    vectors = Encoder(str(tiny_model)).encode(texts)
    pairs = [(i, j) for i in range(len(texts)) for j in range(i) if (i + j) % 2]
    cosines = np.array([float(vectors[i] @ vectors[j]) for i, j in pairs])
    middle = float(np.median(cosines))
    rows: list[dict[str, Any]] = [
        {"text1": texts[i], "text2": texts[j], "label": int(cosine > middle)}
        for (i, j), cosine in zip(pairs, cosines, strict=True)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call = ("audit", "relevance", tmp_path / "pairs.jsonl", "--model", tiny_model, "--out", tmp_path / "curve")
    done = command(*call, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)["relevance"]
    assert found["pairs"] == len(rows)
    assert abs(found["one_threshold"] - middle) < cosines.std() / 2
    curve = Relevance.load(tmp_path / "curve").curve
    chance = curve.probability(cosines, np.full(len(rows), 20), np.full(len(rows), 20))
    assert np.corrcoef(chance, cosines > middle)[0, 1] > 0.5
    assert "finished before" in command(*call).stdout


def test_too_few_judgements_are_said_with_the_mend(command: Command, tmp_path: Path, tiny_model: Path) -> None:
    rows = [{"text1": f"a {n}", "text2": f"b {n}", "label": int(n < 5)} for n in range(150)]
    (tmp_path / "one-sided.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:20]))
    call = ("--model", tiny_model, "--out", tmp_path / "curve")
    told = {
        name: command("audit", "relevance", tmp_path / f"{name}.jsonl", *call).stderr for name in ("one-sided", "few")
    }
    assert told["one-sided"].startswith("stscurate: Only 5 of 150 judged pairs are relevant")
    assert told["few"].startswith("stscurate: 20 pairs of few.jsonl are judged, and 100 are needed")
    with pytest.raises(InputError, match="holds no curve"):
        Relevance.load(tmp_path / "nowhere")


def judged_file(folder: Path, numbers: "np.ndarray[Any, Any]", pairs: list[tuple[str, str]]) -> Path:
    """Pairs that are the likelier to be relevant the higher their numbers are."""
    chance = 1 / (1 + np.exp(-2 * (numbers - np.median(numbers)) / numbers.std()))
    relevant = np.random.default_rng(0).uniform(size=len(pairs)) < chance
    rows = [{"text1": a, "text2": b, "label": int(is_)} for (a, b), is_ in zip(pairs, relevant, strict=True)]
    (folder / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "judged.jsonl"


TEXTS = [f"{one} {two}" for one in SENTENCES for two in SENTENCES[:2]]
PAIRS = [(a, b) for i, a in enumerate(TEXTS) for b in TEXTS[:i]]


def test_a_curve_takes_its_calibration_along_and_says_the_same_of_pairs_and_of_vectors(
    tiny_model: Path, tmp_path: Path
) -> None:
    encoder = Encoder(str(tiny_model))
    vectors, lengths = encoder.encode(TEXTS), encoder.token_counts(TEXTS)
    fitted = METHODS["s-norm"].fit(vectors, lengths)
    about = (encoder.model.name, encoder.model.fingerprint, encoder.reads, "texts.txt")
    (tmp_path / "s-norm").mkdir()
    calibration = Calibration(fitted, *about, np.sort(digests_of(TEXTS)), tmp_path / "s-norm")
    calibration.save(tmp_path / "s-norm")
    similarity = pair_similarity(encoder, PAIRS, calibration)
    source = pairs_source(judged_file(tmp_path, similarity, PAIRS))
    audit_relevance(tmp_path / "curve", source, model=str(tiny_model), calibration=tmp_path / "s-norm")
    shutil.rmtree(tmp_path / "s-norm")  # the copy in the curve's folder is what is used
    found = Relevance.load(tmp_path / "curve")
    bias, slope, first, second = found.curve.weights
    sides = pair_lengths(encoder, PAIRS)
    expected = 1 / (1 + np.exp(-(bias + slope * similarity + np.log2(sides) @ [first, second])))
    chance = found.probability(PAIRS, found.opened([str(tiny_model)]))
    assert chance == pytest.approx(expected, abs=1e-6)
    place = {text: row for row, text in enumerate(TEXTS)}
    one, two = (np.array([place[pair[side]] for pair in PAIRS]) for side in (0, 1))
    assert found.by_vectors(vectors[one], lengths[one], vectors[two], lengths[two]) == pytest.approx(chance, abs=1e-6)
    with pytest.raises(InputError, match=r"fitted to texts.txt, which holds 0% of these texts"):
        found.probability([("another", "text")], (encoder, None))
    other = Encoder(str(tiny_sentence_transformer(tmp_path / "other", seed=1)))
    with pytest.raises(InputError, match="is of tiny-encoder, and these vectors are of another model, other"):
        found.hold_to(other.model, other.reads, TEXTS)
    with pytest.raises(InputError, match=r"isn't found here: name it as an annotator too \(--llm embedding:FOLDER\)"):
        found.opened([str(tmp_path / "other")])


def test_a_curve_of_a_rerankers_numbers_asks_for_that_reranker(tiny_model: Path, tmp_path: Path) -> None:
    judge = tiny_cross_encoder(tmp_path / "judge")
    numbers, _ = Reranker(str(judge)).score(PAIRS)
    source = pairs_source(judged_file(tmp_path, numbers, PAIRS))
    audit_relevance(tmp_path / "curve", source, model=str(tiny_model), reranker=str(judge))
    found = Relevance.load(tmp_path / "curve")
    encoder = Encoder(str(tiny_model))
    bias, slope, first, second = found.curve.weights
    expected = bias + slope * numbers + np.log2(pair_lengths(encoder, PAIRS)) @ [first, second]
    chance = found.probability(PAIRS, found.opened([str(judge), str(tiny_model)]))
    assert np.log(chance / (1 - chance)) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(InputError, match="is of the numbers of judge: name that --reranker"):
        found.hold_to(encoder.model, encoder.reads, TEXTS)
