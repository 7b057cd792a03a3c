"""What the audit of relevance tells of judged pairs, and of pairs that it can't tell anything of."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.audit.relevance import Judged, fitted, load_curve
from stscurate.cli.relevance import _with_interval
from stscurate.errors import InputError
from stscurate.services.encoder import Encoder
from tests.methods.test_relevance import made
from tests.tiny_models import SENTENCES, tiny_sentence_transformer


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


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "stscurate", "audit", "relevance", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_command_fits_keeps_and_finds_again(tmp_path: Path) -> None:
    model = tiny_sentence_transformer(tmp_path / "model")
    texts = [f"{one} {two}" for one in SENTENCES for two in SENTENCES[:2]]
    vectors = Encoder(str(model)).encode(texts)
    pairs = [(i, j) for i in range(len(texts)) for j in range(i) if (i + j) % 2]
    cosines = np.array([float(vectors[i] @ vectors[j]) for i, j in pairs])
    middle = float(np.median(cosines))
    rows: list[dict[str, Any]] = [
        {"text1": texts[i], "text2": texts[j], "label": int(cosine > middle)}
        for (i, j), cosine in zip(pairs, cosines, strict=True)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(tmp_path, "pairs.jsonl", "--model", "model", "--out", "curve", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)["relevance"]
    assert found["pairs"] == len(rows)
    assert abs(found["one_threshold"] - middle) < cosines.std() / 2
    curve = load_curve(tmp_path / "curve")
    chance = curve.probability(cosines, np.full(len(rows), 20), np.full(len(rows), 20))
    assert np.corrcoef(chance, cosines > middle)[0, 1] > 0.5
    again = run(tmp_path, "pairs.jsonl", "--model", "model", "--out", "curve")
    assert "finished before" in again.stdout


def test_too_few_judgements_are_said_with_the_mend(tmp_path: Path) -> None:
    rows = [{"text1": f"a {n}", "text2": f"b {n}", "label": int(n < 5)} for n in range(150)]
    (tmp_path / "one-sided.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:20]))
    tiny_sentence_transformer(tmp_path / "model")
    told = {
        name: run(tmp_path, f"{name}.jsonl", "--model", "model", "--out", "curve").stderr
        for name in ("one-sided", "few")
    }
    assert told["one-sided"].startswith("stscurate: Only 5 of 150 judged pairs are relevant")
    assert told["few"].startswith("stscurate: 20 pairs of few.jsonl are judged, and 100 are needed")
    with pytest.raises(InputError, match="holds no curve"):
        load_curve(tmp_path / "nowhere")
