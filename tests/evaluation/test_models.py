"""Models of each kind held to gold, and what is made of their vectors, side by side."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from stscurate.errors import InputError, ServiceError
from stscurate.evaluation import GoldSet, Opening, Variants, Wanted, evaluate_all, evaluate_into
from stscurate.evaluation.scoring import open_scorer
from stscurate.evaluation.variants import parse_dimensions
from stscurate.methods.sentences import split_sentences
from stscurate.services.encoder import Encoder
from tests.conftest import Command
from tests.services.embeddings_server import embeddings_server, unit
from tests.services.embeddings_server import vector as raw
from tests.tiny_models import SENTENCES, tiny_cross_encoder, tiny_sentence_transformer

PAIRS = [(left, right) for place, left in enumerate(SENTENCES) for right in SENTENCES[place + 1 :]]
RATINGS = np.random.default_rng(0).integers(0, 6, size=len(PAIRS)) / 5
GRADED = GoldSet("graded", PAIRS, RATINGS, {})
BINARY = GoldSet("binary", PAIRS, (RATINGS > 0.5).astype(np.float64), {})
DEV = replace(BINARY, pairs=[(one, f"{two} Yes.") for one, two in PAIRS])
WORDS = {
    "cat": [1.0, 0.2, 0.0],
    "dogs": [0.9, 0.4, 0.1],
    "the": [0.1, 0.1, 0.1],
    "file": [0.0, 0.3, 1.0],
    "a": [0, 0.5, 0],
}


def rho(similarities: np.ndarray, gold: GoldSet = GRADED) -> float:
    return float(spearmanr(similarities, gold.gold).statistic)


def cosines(rows: dict[str, np.ndarray]) -> np.ndarray:
    return np.array(
        [rows[one] @ rows[two] / np.linalg.norm(rows[one]) / np.linalg.norm(rows[two]) for one, two in PAIRS]
    )


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain transformers encoder: no word of sentence-transformers in its folder."""
    folder = tmp_path_factory.mktemp("models")
    whole = tiny_sentence_transformer(folder / "whole", dropout=0.0)
    (folder / "bare").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (folder / "bare" / name).write_bytes((whole / name).read_bytes())
    return folder / "bare"


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_cross_encoder(tmp_path_factory.mktemp("models") / "pairs", activation="torch.nn.Identity")


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in WORDS.items()))
    return path


@pytest.mark.parametrize("pooling", ["mean", "cls", "last", None])
def test_a_plain_encoder_is_pooled_as_told(bare: Path, pooling: str | None) -> None:
    model, tokenizer = AutoModel.from_pretrained(bare), AutoTokenizer.from_pretrained(bare)
    opening = Opening(pooling=pooling)  # type: ignore[arg-type]
    vectors = opening.encoder(str(bare)).encode(SENTENCES)
    for text, vector in zip(SENTENCES, vectors, strict=True):
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].detach().numpy()
        expected = {"cls": states[0], "last": states[-1]}.get(pooling or "", states.mean(axis=0))
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)
    (found,) = evaluate_all([str(bare)], [GRADED], Wanted(resamples=100, opening=opening)).results
    assert found.model == f"bare, {pooling or 'mean'} pooling"
    assert found.spearman == pytest.approx(rho(cosines(dict(zip(SENTENCES, vectors, strict=True)))), abs=5e-3)


def test_texts_are_cut_where_told(bare: Path) -> None:
    model = SentenceTransformer(str(bare), device="cpu")
    model.max_seq_length = 8
    vectors = dict(zip(SENTENCES, model.encode(SENTENCES), strict=True))
    opening = Opening(max_tokens=8)
    (found,) = evaluate_all([str(bare)], [GRADED], Wanted(resamples=100, opening=opening)).results
    assert found.model == "bare, mean pooling, 8 tokens"
    assert found.spearman == pytest.approx(rho(cosines(vectors)), abs=5e-3)
    counts = [len(model.tokenizer(text)["input_ids"]) for text in SENTENCES]
    cut = [max(count - 8, 0) for count in counts]
    assert found.tokens_cut_share == pytest.approx(sum(cut) / sum(counts))
    assert sum(cut) > 0
    with pytest.raises(InputError, match="can't cut texts at 100000 tokens"):
        evaluate_all([str(bare)], [GRADED], Wanted(opening=Opening(max_tokens=100_000)))


def test_a_reranker_gives_its_numbers_of_pairs(reranker: Path) -> None:
    found = evaluate_all([f"reranker:{reranker}"], [GRADED, BINARY], Wanted(resamples=100, bands=True, density=True))
    numbers = CrossEncoder(str(reranker), device="cpu").predict(PAIRS, show_progress_bar=False)
    graded, binary = found.results
    assert graded.model == "pairs"
    assert graded.spearman == pytest.approx(rho(numbers), abs=1e-3)
    assert binary.full.average_precision is not None
    assert (graded.alignment, graded.uniformity, graded.tokens_cut_share) == (None, None, 0)
    assert sum(part.full.rows for part in found.parts if part.kind == "tokens") == 2 * len(PAIRS)


def test_word_vectors_are_means_and_tell_what_they_lack(glove: Path) -> None:
    found = evaluate_all([f"static:{glove}"], [GRADED], Wanted(resamples=100, bands=True))
    (result,) = found.results
    lists = {text: text.lower().replace(".", "").replace("?", "").replace(",", "").split() for text in SENTENCES}
    rows = {text: np.sum([WORDS.get(word, [0, 0, 0]) for word in lists[text]], axis=0) for text in SENTENCES}
    expected = [
        rows[one] @ rows[two] / (np.linalg.norm(rows[one]) * np.linalg.norm(rows[two]) or 1) for one, two in PAIRS
    ]
    assert result.spearman == pytest.approx(rho(np.array(expected)), abs=1e-3)
    without = [text for text in SENTENCES if not rows[text].any()]
    assert (result.model, result.texts_unknown) == ("glove.txt", len(without))
    assert len(without) > 0
    assert f"and {len(without)} texts none with one" in " ".join(found.notes)
    units = {text: row / (np.linalg.norm(row) or 1) for text, row in rows.items()}
    alike = [
        np.sum((units[a] - units[b]) ** 2)
        for (a, b), gold in zip(PAIRS, RATINGS, strict=True)
        if gold > 0.8 and units[a].any() and units[b].any()
    ]
    apart = [np.exp(-2 * np.sum((units[a] - units[b]) ** 2)) for a, b in PAIRS if units[a].any() and units[b].any()]
    assert result.alignment == pytest.approx(np.mean(alike), abs=1e-5)
    assert result.uniformity == pytest.approx(np.log(np.mean(apart)), abs=1e-5)


def test_word_vectors_of_no_word_of_a_set_say_why_there_is_no_number(glove: Path) -> None:
    for text in ("zebra", "!!"):
        pairs = [(f"{text * row}", f"{text * (row + 4)}") for row in range(1, 5)]
        found = evaluate_all([f"static:{glove}"], [GoldSet("unheard", pairs, np.arange(4) / 3, {})], Wanted())
        (result,) = found.results
        assert math.isnan(result.spearman or 0)
        assert (result.alignment, result.uniformity, result.texts_unknown) == (None, None, 8)
        told = " ".join(found.notes)
        assert "glove.txt on unheard: all similarities are the same, so there is no correlation" in told
        assert "and 8 texts none with one: they are like nothing" in told
        assert "unheard: of 4 pairs an interval tells little" in told


def test_an_api_is_held_to_gold_and_what_it_cuts_is_unknown(tiny_model: Path, tmp_path: Path) -> None:
    with embeddings_server() as server:
        call = [f"{server.url}#served"]
        found = evaluate_all(call, [GRADED], Wanted(resamples=100, bands=True))
        assert found.results[0].spearman == pytest.approx(
            rho(cosines({text: unit(text) for text in SENTENCES})), abs=1e-3
        )
        assert {part.kind for part in found.parts} == {"word overlap"}
        assert any("cut off isn't known" in note for note in found.notes)
        opening = Opening(task="text-matching", tokenizer=str(tiny_model))
        out = tmp_path / "out"
        evaluate_into(out, call, [GRADED], Wanted(resamples=100, bands=True, opening=opening))
        assert server.bodies[-1]["task"] == "text-matching"
        kept = json.loads((out / "results.json").read_text())
        assert {part["kind"] for part in kept["parts"]} == {"tokens", "word overlap"}
        assert "| unknown |" in (out / "results.md").read_text()
    with pytest.raises(ServiceError, match="Nobody answers"):
        evaluate_all(["http://127.0.0.1:9/v1#served"], [GRADED], Wanted(resamples=100))


def test_late_chunking_sends_a_texts_sentences_together_and_takes_their_mean() -> None:
    texts = [f"{SENTENCES[row]} {SENTENCES[row + 1]}" for row in range(5)]
    pairs = [(one, two) for place, one in enumerate(texts) for two in texts[place + 1 :]]
    gold = GoldSet("chunked", pairs, np.arange(10) / 10, {})
    with embeddings_server() as server:
        wanted = Wanted(resamples=100, opening=Opening(late_chunking=True))
        (found,) = evaluate_all([f"{server.url}#served"], [gold], wanted).results
        assert [body["input"] for body in server.bodies] == [split_sentences(text) for text in texts]
        assert {body.get("late_chunking") for body in server.bodies} == {True}
    rows = {}
    for text in texts:
        chunks = [np.array(raw(chunk)) for chunk in split_sentences(text)]
        seen = [chunk + np.mean(chunks, axis=0) for chunk in chunks]
        rows[text] = np.mean([chunk / np.linalg.norm(chunk) for chunk in seen], axis=0)
    expected = [rows[a] @ rows[b] / np.linalg.norm(rows[a]) / np.linalg.norm(rows[b]) for a, b in pairs]
    assert found.model == "served, late chunking"
    assert found.spearman == pytest.approx(rho(np.array(expected), gold), abs=1e-3)


def test_variants_stand_beside_the_model_as_it_is(tiny_model: Path) -> None:
    name = tiny_model.name
    wanted = Wanted(resamples=100, paired=True, variants=Variants(whiten=True, dimensions=(4, 8)), dev=DEV)
    found = evaluate_all([str(tiny_model)], [GRADED, replace(BINARY, name="test")], wanted)
    rows = Encoder(str(tiny_model)).encode(SENTENCES).astype(np.float64)
    centred = rows - rows.mean(axis=0)
    values, directions = np.linalg.eigh(centred.T @ centred / len(rows))
    white = centred @ directions[:, ::-1][:, :6] / np.sqrt(values[::-1][:6])  # of twelve texts, six directions
    expected = {
        name: rows,
        f"{name}, whitened on its own texts": white,
        f"{name}, 4 dimensions": rows[:, :4],
        f"{name}, 8 dimensions": rows[:, :8],
    }
    graded = {one.model: one for one in found.results if one.set == "graded"}
    assert list(graded) == list(expected)
    for model, vectors in expected.items():
        similarities = cosines(dict(zip(SENTENCES, vectors, strict=True)))
        assert graded[model].spearman == pytest.approx(rho(similarities), abs=2e-3)
    compared = [one for one in found.comparisons if one.set == "graded"]
    assert [(one.first, one.second) for one in compared] == [(name, model) for model in list(expected)[1:]]
    assert all(one.full.f1_transferred is not None for one in found.results if one.set == "test")


def test_whitening_is_fitted_to_training_texts_where_they_are_given(tiny_model: Path) -> None:
    train = [f"{one} {two}" for one, two in PAIRS]
    wanted = Wanted(resamples=100, variants=Variants(whiten=True), train_texts=train)
    _, found = evaluate_all([str(tiny_model)], [GRADED], wanted).results
    encoder = Encoder(str(tiny_model))
    seen, rows = (encoder.encode(texts).astype(np.float64) for texts in (train, SENTENCES))
    values, directions = np.linalg.eigh(np.cov(seen.T, bias=True))
    kept = values[::-1] > 1e-9 * values.max()
    white = (rows - seen.mean(axis=0)) @ directions[:, ::-1][:, kept] / np.sqrt(values[::-1][kept])
    assert found.model == f"{tiny_model.name}, whitened on training texts"
    assert found.spearman == pytest.approx(rho(cosines(dict(zip(SENTENCES, white, strict=True)))), abs=0.02)


def test_groups_are_averaged_variant_by_variant(tmp_path: Path) -> None:
    models = [str(tiny_sentence_transformer(tmp_path / f"seed-{seed}", seed=seed)) for seed in range(2)]
    wanted = Wanted(resamples=100, groups={"mine": [0, 1]}, variants=Variants(dimensions=(4,)))
    found = evaluate_all(models, [GRADED], wanted)
    values = {one.model: one.spearman for one in found.results}
    means = {mean.model: mean.value for mean in found.means}
    assert means == {
        "mine": pytest.approx(np.mean([values["seed-0"], values["seed-1"]])),
        "mine, 4 dimensions": pytest.approx(np.mean([values["seed-0, 4 dimensions"], values["seed-1, 4 dimensions"]])),
    }


def test_too_many_dimensions_are_told_before_a_text_is_encoded(tiny_model: Path, glove: Path) -> None:
    for spec, numbers in ((str(tiny_model), 32), (f"static:{glove}", 3)):
        with pytest.raises(InputError, match=f"have {numbers} numbers: keep fewer"):
            open_scorer(spec, variants=Variants(dimensions=(2, numbers)))
        open_scorer(spec, variants=Variants(dimensions=(2, numbers - 1)))


def test_what_belongs_to_no_model_named_is_refused(tiny_model: Path, reranker: Path, glove: Path) -> None:
    own, pairs = str(tiny_model), f"reranker:{reranker}"
    for models, wanted, message in [
        ([own], Wanted(opening=Opening(pooling="cls")), "each of these models has its own"),
        ([own], Wanted(opening=Opening(task="x")), "--api-task is for embeddings APIs"),
        ([own], Wanted(opening=Opening(late_chunking=True)), "--late-chunking is for embeddings APIs"),
        ([pairs], Wanted(variants=Variants(whiten=True)), "a reranker has none"),
        ([own], Wanted(variants=Variants(dimensions=(32,))), "have 32 numbers"),
        ([pairs], Wanted(opening=Opening(max_tokens=64)), "--max-tokens is for embedding models on this machine"),
        ([str(reranker)], Wanted(), f"is a cross-encoder, .*name it reranker:{re.escape(str(reranker))}"),
        ([str(reranker)], Wanted(opening=Opening(pooling="cls")), "is a cross-encoder"),
        ([""], Wanted(), "No model is named"),
        (["reranker:"], Wanted(), "No model is named"),
        (["static:none.txt"], Wanted(), "no file none.txt of word vectors"),
    ]:
        with pytest.raises(InputError, match=message):
            evaluate_all(models, [GRADED], wanted)
    for text in ("64,x", "0", ""):
        with pytest.raises(InputError, match="give whole numbers"):
            parse_dimensions(text)
    unheard = [(f"zebra {row}", f"yak {row}") for row in range(4)]
    gold = GoldSet("unheard", unheard, np.arange(4) / 4, {})
    with pytest.raises(InputError, match="0 of 8 texts have a vector"):
        evaluate_all([f"static:{glove}"], [gold], Wanted(variants=Variants(whiten=True)))


def test_the_command_takes_models_of_all_kinds(
    bare: Path, reranker: Path, glove: Path, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "gold.jsonl"
    rows = [{"text1": one, "text2": two, "score": score} for (one, two), score in zip(PAIRS, RATINGS, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    call = (
        "evaluate",
        bare,
        f"static:{glove}",
        f"reranker:{reranker}",
        "--set",
        path,
        "--pooling",
        "cls",
        "--max-tokens",
        16,
        "--dimensions",
        2,
    )
    done = command(*call, "--json")
    assert done.exit_code == 0, done.stderr
    models = [row["model"] for row in json.loads(done.stdout)["results"]]
    assert models == [
        "bare, cls pooling, 16 tokens",
        "bare, cls pooling, 16 tokens, 2 dimensions",
        "glove.txt",
        "glove.txt, 2 dimensions",
        "pairs",
    ]
    glove.write_text("a 1 2\nb 1\n")
    done = command("evaluate", f"static:{glove}", "--set", path)
    assert (done.exit_code, "line 2 has 1 number where 2 are due" in done.stderr) == (2, True)
