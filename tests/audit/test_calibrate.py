import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from stscurate.audit.calibrate import calibrate
from stscurate.disk import fingerprint
from stscurate.errors import InputError, SettingsChangedError
from stscurate.methods.calibration import METHODS
from stscurate.methods.calibration.residual import BANDS, Bands, residual, thirds
from stscurate.methods.calibration.saved import Calibration, lengths_of, seen_lengths
from stscurate.services.encoder import Encoder
from stscurate.tables import pairs_source, texts_source
from tests.conftest import Command
from tests.tiny_models import SENTENCES, tiny_sentence_transformer

WORDS = [word.strip(".,?") for sentence in SENTENCES for word in sentence.split()]


def written(path: Path, n: int, seed: int = 0, most: int = 40) -> Path:
    """n different texts of 3 to `most` words."""
    rng = random.Random(seed)
    path.write_text("\n".join(f"{' '.join(rng.choices(WORDS, k=rng.randint(3, most)))} {i}" for i in range(n)) + "\n")
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("texts") / "texts.txt", 420)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, texts: Path, tiny_model: Path) -> Path:
    out = tmp_path_factory.mktemp("fitted") / "calibration"
    calibrate(out, texts_source(texts), model=str(tiny_model), all_methods=True)
    return out


def test_residual_is_that_of_a_loop_over_all_pairs() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 5)).astype(np.float32)
    lengths = rng.integers(2, 40, 60)
    vectors[:, 0] += lengths / 20
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    bands = thirds(lengths)
    method = METHODS["cosine"].fit(vectors, lengths)
    names = [BANDS[at] for at in bands.of(lengths)]
    by: dict[str, list[float]] = {}
    for i in range(60):
        for j in range(i):
            value = float(vectors[i].astype(np.float64) @ vectors[j])
            by.setdefault(" with ".join(sorted({names[i], names[j]}, reverse=True)), []).append(value)
    values = sorted(value for part in by.values() for value in part)
    found = residual(method, vectors, lengths, bands)
    assert found.pairs == len(values) == 60 * 59 // 2
    assert found.shift == pytest.approx((np.mean(by["long"]) - np.mean(by["short"])) / np.std(by["short"]), abs=1e-4)
    level = np.quantile(values, 0.95)
    assert found.thresholds[0.05] == pytest.approx(level, abs=1e-6)
    for name in (*BANDS, "short with long"):
        assert found.rates[0.05][name] == pytest.approx(np.mean([value > level for value in by[name]]), abs=1e-9)


def test_a_band_without_texts_has_no_rate() -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths = np.repeat([5, 7], 20)
    found = residual(METHODS["cosine"].fit(vectors, lengths), vectors, lengths, thirds(lengths))
    assert found.rates[0.05]["middle"] is None
    assert set(found.rates[0.05].values()) - {None}


def test_thirds_of_a_corpus_of_which_most_is_cut_at_one_length() -> None:
    assert thirds(np.array([1, 2, 3, 4, 5, 6])) == Bands(2, 4)
    assert thirds(np.array([3, 9, 256, 256, 256, 256, 256])) == Bands(9, 256)
    assert thirds(np.array([5, 5, 5, 5, 7])) == Bands(5, 7)
    assert Bands(2, 4).of(np.array([1, 2, 3, 4, 9])).tolist() == [0, 0, 1, 2, 2]
    with pytest.raises(InputError, match="All 3 texts have 7 tokens"):
        thirds(np.array([7, 7, 7]))


def test_what_is_told_is_of_a_half_that_nothing_was_fitted_to(fitted: Path, texts: Path, tiny_model: Path) -> None:
    report = json.loads((fitted / "report.json").read_text())
    rows = {row["method"]: row for row in report["methods"]}
    assert list(rows) == list(METHODS)
    assert rows["cosine"]["shift"] > 0.5
    assert abs(rows["length-centering"]["shift"]) < 0.2
    assert rows["cosine"]["pairs"] == 210 * 209 // 2
    lines = texts.read_text().splitlines()
    encoder = Encoder(str(tiny_model))
    vectors, lengths = encoder.encode(lines), encoder.token_counts(lines)
    order = np.random.default_rng(0).permutation(420)
    one, two = order[:210], order[210:]
    method = METHODS["s-norm"].fit(vectors[one], lengths[one])
    expected = residual(method, vectors[two], lengths[two], thirds(lengths))
    assert rows["s-norm"]["shift"] == pytest.approx(expected.shift, abs=1e-4)
    assert rows["s-norm"]["rates"]["0.05"] == pytest.approx(expected.rates[0.05], abs=1e-3)


def test_what_is_kept_is_fitted_to_all_texts_and_read_again(fitted: Path, texts: Path, tiny_model: Path) -> None:
    found = Calibration.load(fitted)
    lines = texts.read_text().splitlines()
    encoder = Encoder(str(tiny_model))
    vectors, lengths = encoder.encode(lines), lengths_of(encoder, lines)
    expected = METHODS["length-centering"].fit(vectors, lengths)
    assert found.method.transform(vectors[:5], lengths[:5]) == pytest.approx(
        expected.transform(vectors[:5], lengths[:5]), abs=1e-6
    )
    assert seen_lengths(np.array([0, 3, 900]), found.reads).tolist() == [1, 3, 64]
    assert (found.model, found.reads, found.corpus) == (tiny_model.name, 64, "texts.txt")


def test_a_calibration_is_refused_for_another_model_or_corpus(fitted: Path, texts: Path, tmp_path: Path) -> None:
    found, lines = Calibration.load(fitted), texts.read_text().splitlines()
    own = Encoder(str(tiny_sentence_transformer(tmp_path / "tiny-encoder", seed=1))).model
    same = type(own)(found.model, own.path, found.model_fingerprint)
    assert found.hold_to(same, 64, lines[:10]) == 1
    assert found.hold_to(same, 64, [*lines[:5], *"abcde"]) == 0.5
    assert found.hold_to(same, 64, ["other"], accept_corpus=True) == 0
    others = [f"another {number}" for number in range(900)]
    assert found.hold_to(same, 64, [*lines[:210], *others]) == 0.5  # half of what it was fitted to is among them
    with pytest.raises(InputError, match="which holds 19% of these texts"):
        found.hold_to(same, 64, [*lines[:209], *others])
    with pytest.raises(InputError, match=r"fitted to texts.txt, which holds 40% of these texts.*--accept corpus"):
        found.hold_to(same, 64, [*lines[:4], *"abcdef"])
    with pytest.raises(
        InputError, match="tiny-encoder, reading 64 tokens of a text, and these are of another tiny-enc"
    ):
        found.hold_to(own, 64, lines)
    with pytest.raises(InputError, match="reading 32: fit one"):
        found.hold_to(same, 32, lines)


def test_pairs_with_gold_add_the_rank_correlation(texts: Path, tiny_model: Path, tmp_path: Path) -> None:
    pairs = [(left, right) for i, left in enumerate(SENTENCES) for right in SENTENCES[:i]]
    gold = tmp_path / "gold.csv"
    gold.write_text("text1,text2,score\n" + "".join(f'"{a}","{b}",{i % 7 / 6}\n' for i, (a, b) in enumerate(pairs)))
    calibrate(tmp_path / "out", texts_source(texts), model=str(tiny_model), gold=pairs_source(gold))
    rows = json.loads((tmp_path / "out" / "report.json").read_text())["methods"]
    assert [row["method"] for row in rows] == ["cosine", "length-centering"]
    encoder = Encoder(str(tiny_model))
    left, right = (encoder.encode([pair[side] for pair in pairs]) for side in (0, 1))
    expected = spearmanr(np.einsum("ij,ij->i", left, right), [i % 7 / 6 for i in range(len(pairs))]).statistic
    assert rows[0]["spearman"] == pytest.approx(expected, abs=1e-3)
    assert rows[0]["low"] < rows[0]["spearman"] < rows[0]["high"]


def test_the_same_call_finds_it_finished_and_makes_the_same_bytes(
    command: Command, fitted: Path, texts: Path, tiny_model: Path, tmp_path: Path
) -> None:
    call = ("audit", "calibrate", texts, "--model", tiny_model, "--all-methods", "--out")
    result = command(*call, fitted)
    assert "calibrate (finished before)" in result.stdout
    assert "length-centering" in result.stdout
    assert command(*call, tmp_path / "again", "--quiet").exit_code == 0
    assert fingerprint(tmp_path / "again") == fingerprint(fitted)
    shown = json.loads(command(*call, fitted, "--json").stdout)
    assert math.isfinite(shown["calibration"][0]["shift"])
    with pytest.raises(SettingsChangedError):
        calibrate(fitted, texts_source(texts), model=str(tiny_model))


def test_what_nothing_can_be_fitted_to_is_refused(tmp_path: Path, tiny_model: Path, command: Command) -> None:
    few = written(tmp_path / "few.txt", 399)
    result = command("audit", "calibrate", few, "--model", tiny_model, "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr) == (
        2,
        "stscurate: few.txt has 399 different texts, and a calibration needs 400: give more.\n",
    )
    (tmp_path / "same.txt").write_text(
        "\n".join(f"{a} {b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrstu")
    )
    result = command("audit", "calibrate", tmp_path / "same.txt", "--model", tiny_model, "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr.startswith("stscurate: All 420 texts have 4 tokens: ")) == (2, True)
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_whole_calibration_is_named(tmp_path: Path, fitted: Path) -> None:
    with pytest.raises(InputError, match="holds no calibration"):
        Calibration.load(tmp_path)
    for name in ("calibration.json", "calibration.npz"):
        (tmp_path / name).write_bytes((fitted / name).read_bytes())
    (tmp_path / "calibration.npz").write_bytes((fitted / "calibration.npz").read_bytes()[:900])
    with pytest.raises(InputError, match="isn't whole"):
        Calibration.load(tmp_path)
