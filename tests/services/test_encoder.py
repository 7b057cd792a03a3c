import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

from stscurate.errors import InputError, ServiceError
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder, load_network
from stscurate.services.models import locate
from stscurate.training.network import load_backbone
from stscurate.training.schedule import Backbone
from tests.tiny_models import SENTENCES, tiny_cross_encoder, tiny_sentence_transformer

MANY = [f"{sentence} {number} {'again and again ' * (number % 7)}" for number, sentence in enumerate(SENTENCES * 4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_transformer(tmp_path_factory.mktemp("models") / "tiny")


def load(folder: Path) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu")


def test_vectors_are_the_models_own_at_unit_length_in_the_order_asked(folder: Path) -> None:
    found = Encoder(str(folder), batch_size=5).encode(MANY)
    expected = load(folder).encode(MANY, normalize_embeddings=True, show_progress_bar=False)
    assert found.dtype == np.float32
    assert found.shape == (len(MANY), 32)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_repeated_texts_share_one_vector_and_nothing_gives_nothing(folder: Path) -> None:
    encoder = Encoder(str(folder))
    found = encoder.encode([SENTENCES[0], SENTENCES[1], SENTENCES[0]])
    assert found[0].tobytes() == found[2].tobytes()
    assert encoder.encode([]).shape == (0, 32)


def test_a_broken_run_gives_the_same_bytes_and_asks_only_what_is_missing(folder: Path, tmp_path: Path) -> None:
    whole = Encoder(str(folder), batch_size=8).encode(MANY)

    class Killed(Exception):
        pass

    def kill(label: str, done: int, total: int | None) -> None:
        if done >= 24:
            raise Killed

    with Answers(tmp_path / "answers.sqlite") as answers:
        encoder = Encoder(str(folder), batch_size=8, answers=answers)
        with pytest.raises(Killed):
            encoder.encode(MANY, progress=kill)
        encoder.encode(MANY[::3])  # another call's batches don't touch this one's
        asked: list[int] = []
        ours = Encoder(str(folder), batch_size=8, answers=answers)
        ours._network.register_forward_pre_hook(lambda _, features: asked.append(len(features[0]["input_ids"])))
        assert ours.encode(MANY).tobytes() == whole.tobytes()
        assert asked == [8, 8, 8]  # 48 texts, three of six batches were kept
        assert ours.encode(MANY).tobytes() == whole.tobytes()
        assert len(asked) == 3


def test_bfloat16_vectors_are_near_those_of_float32_and_kept_apart_from_them(folder: Path, tmp_path: Path) -> None:
    with Answers(tmp_path / "answers.sqlite") as answers:
        exact = Encoder(str(folder), answers=answers).encode(MANY)
        rough = Encoder(str(folder), answers=answers, precision="bf16").encode(MANY)
        assert Encoder(str(folder), answers=answers).encode(MANY).tobytes() == exact.tobytes()
    assert rough.dtype == np.float32
    assert 0 < np.abs(rough - exact).max() < 0.05


def test_tokens_are_counted_before_the_cut_and_the_cut_is_told(folder: Path) -> None:
    words = ["cat", "cat " * 62, "cat " * 100]
    encoder = Encoder(str(folder))
    assert encoder.token_counts(words).tolist() == [3, 64, 102]  # [CLS] and [SEP] count
    assert encoder.cut(words).tolist() == [0, 0, 38]
    shorter = Encoder(str(folder), max_tokens=10)
    assert shorter.cut(words).tolist() == [0, 54, 92]
    found = shorter.encode(["cat " * 8, "cat " * 100])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)  # both are eight cats by then


@pytest.mark.parametrize("limit", [2, 65])
def test_a_length_that_the_model_cannot_take_is_refused(folder: Path, limit: int) -> None:
    with pytest.raises(InputError, match="give 3 to 64"):
        Encoder(str(folder), max_tokens=limit).encode(["cat"])


def test_a_plain_transformers_encoder_is_pooled_by_the_mean(folder: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    for path in folder.iterdir():
        if path.is_file() and path.name not in {"modules.json", "sentence_bert_config.json"}:
            shutil.copy(path, plain)
    expected = Encoder(str(folder)).encode(SENTENCES)  # the tiny model pools by the mean too
    np.testing.assert_allclose(Encoder(str(plain)).encode(SENTENCES), expected, atol=1e-6)


def test_static_embeddings_work_and_a_text_without_tokens_is_named(tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    pieces = Tokenizer(models.WordLevel({"cat": 0, "dog": 1}))
    pieces.pre_tokenizer = pre_tokenizers.Whitespace()
    SentenceTransformer(modules=[StaticEmbedding(pieces, embedding_dim=4)], device="cpu").save(
        str(tmp_path / "static"), create_model_card=False
    )
    encoder = Encoder(str(tmp_path / "static"))
    assert encoder.encode(["cat dog", "cat"]).shape == (2, 4)
    assert encoder.cut(["cat dog"]).tolist() == [0]
    with pytest.raises(ServiceError, match="a zero vector for text 1:"):
        encoder.encode(["cat", " ", "dog"])
    with pytest.raises(InputError, match="static is of static embeddings, which read all of a text: cut none"):
        Encoder(str(tmp_path / "static"), max_tokens=8).encode(["cat"])
    with pytest.raises(InputError, match="static is of static embeddings, which aren't trained here"):
        load_backbone(locate(str(tmp_path / "static")), Backbone())


def test_a_cross_encoder_is_no_embedding_model_and_may_be_a_backbone(tmp_path: Path) -> None:
    plain = tiny_cross_encoder(tmp_path / "plain")
    CrossEncoder(str(plain), device="cpu").save_pretrained(str(tmp_path / "saved"))  # with modules.json
    for name in ("plain", "saved"):
        told = f"{name} is a cross-encoder, .*reranker:{re.escape(str(tmp_path / name))}"
        with pytest.raises(InputError, match=told):
            Encoder(str(tmp_path / name))
    assert load_network(locate(str(plain))).encode("a cat").shape == (32,)
    whole = tiny_sentence_transformer(tmp_path / "whole")  # an embedding model, whatever head it once had
    config = json.loads((whole / "config.json").read_text()) | {"architectures": ["BertForSequenceClassification"]}
    (whole / "config.json").write_text(json.dumps(config))
    assert Encoder(str(whole)).encode(["a cat"]).shape == (1, 32)


def test_a_vector_that_is_not_finite_names_the_text(folder: Path, tmp_path: Path) -> None:
    broken = load(folder)
    with torch.no_grad():
        embeddings = broken[0].auto_model.embeddings.word_embeddings.weight
        embeddings[broken.tokenizer.convert_tokens_to_ids("guitar")] = float("nan")
    broken.save(str(tmp_path / "broken"), create_model_card=False)
    with pytest.raises(ServiceError, match="broken gives a vector that isn't finite for text 2:"):
        Encoder(str(tmp_path / "broken")).encode(["a cat", "the dogs run", "a guitar"])


def test_a_folder_that_is_no_model_is_refused_with_the_mend(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty holds no model .* name a sentence-transformers"):
        Encoder(str(tmp_path / "empty")).encode(["x"])
    (tmp_path / "file.txt").write_text("x")
    with pytest.raises(InputError, match="is a file, not a model's folder"):
        Encoder(str(tmp_path / "file.txt")).encode(["x"])
    shutil.copytree(folder, tmp_path / "torn")
    (tmp_path / "torn" / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(InputError, match="torn can't be loaded"):
        Encoder(str(tmp_path / "torn")).encode(["x"])
    shutil.copytree(folder, tmp_path / "wordless", ignore=shutil.ignore_patterns("tokenizer*", "vocab*"))
    with pytest.raises(InputError, match="wordless has no tokenizer's vocabulary"):
        Encoder(str(tmp_path / "wordless")).encode(["x"])


def test_loading_draws_and_logs_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Encoder(str(folder)).encode(["x"])
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
