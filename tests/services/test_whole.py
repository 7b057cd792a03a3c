"""Models of which a file of weights holds a part only."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, PreTrainedModel

from stscurate.errors import InputError
from stscurate.services.encoder import Encoder
from stscurate.services.languagemodel import LanguageModel
from stscurate.services.reranker import Reranker
from tests.tiny_models import tiny_causal_lm, tiny_cross_encoder, tiny_sentence_transformer


def without(folder: Path, wanted: str) -> list[str]:
    """Take the tensors whose names hold `wanted` out of the folder's weights; their names."""
    (path,) = folder.rglob("model.safetensors")
    weights = load_file(path)
    gone = sorted(name for name in weights if wanted in name)
    save_file({name: tensor for name, tensor in weights.items() if name not in gone}, path, metadata={"format": "pt"})
    return gone


def encode(folder: Path) -> Any:
    return Encoder(str(folder)).encode(["a cat"])


def rerank(folder: Path) -> Any:
    return Reranker(str(folder)).score([("a cat", "a dog")])


def read(folder: Path) -> Any:
    model = LanguageModel(str(folder))
    return model.log_likelihoods(model.ids(["a"])[0], [(model.ids([" cat"])[0], model.ids([" sat"])[0])])


@pytest.mark.parametrize(
    ("make", "use", "wanted"),
    [
        (tiny_sentence_transformer, encode, "layer.1."),
        (tiny_cross_encoder, rerank, "layer.1."),
        (tiny_cross_encoder, rerank, "classifier"),
        (tiny_cross_encoder, rerank, "pooler"),
        (tiny_causal_lm, read, "layers.1.mlp.down_proj"),
    ],
)
def test_weights_that_are_missing_are_named_and_never_drawn_at_random(
    tmp_path: Path, make: Callable[[Path], Path], use: Callable[[Path], Any], wanted: str
) -> None:
    folder = make(tmp_path / "model")
    use(folder)
    gone = without(folder, wanted)
    own = PreTrainedModel.__dict__["from_pretrained"]
    with pytest.raises(InputError) as told:
        use(folder)
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    assert str(told.value).startswith("model lacks a part of its weights (")
    assert str(told.value).endswith(f"{more}): copy or save the model again, whole.")
    named = str(told.value).split("(")[1].split()[0].rstrip("):")
    assert any(name.endswith(named) or named.endswith(name) for name in gone)  # with or without "bert." before it
    assert PreTrainedModel.__dict__["from_pretrained"] is own


def test_a_pooler_that_nothing_reads_may_be_missing(tmp_path: Path) -> None:
    folder = tiny_sentence_transformer(tmp_path / "model")
    whole = encode(folder)
    assert without(folder, "pooler") == ["pooler.dense.bias", "pooler.dense.weight"]
    assert encode(folder).tobytes() == whole.tobytes()


def test_tied_weights_that_are_stored_once_are_whole(tmp_path: Path) -> None:
    folder = tiny_causal_lm(tmp_path / "model")
    config = AutoConfig.from_pretrained(folder)
    config.tie_word_embeddings = True
    config.save_pretrained(folder)
    assert without(folder, "lm_head") == ["lm_head.weight"]
    assert read(folder).shape == (1,)
    config.tie_word_embeddings = False
    config.save_pretrained(folder)
    with pytest.raises(InputError, match=r"lacks a part of its weights \(lm_head.weight\)"):
        read(folder)


def test_a_shard_that_is_missing_is_told(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    folder = tiny_causal_lm(tmp_path / "whole")
    shards = tmp_path / "shards"
    shutil.copytree(folder, shards, ignore=shutil.ignore_patterns("*.safetensors"))
    AutoModelForCausalLM.from_pretrained(folder).save_pretrained(shards, max_shard_size="50KB")
    max(shards.glob("model-*.safetensors")).unlink()
    with pytest.raises(InputError, match="shards can't be loaded as a causal language model"):
        read(shards)
