"""Low-rank updates beside weights of 4 and 8 bits: trained, merged into the whole weights, resumed."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.services.models import locate
from stscurate.training import Backbone, Schedule, train_cosent
from stscurate.training.network import add_lora, load_backbone, merge_lora, trained_state
from stscurate.training.schedule import LoadIn
from stscurate.training.trainer import Common
from tests.conftest import Command
from tests.tiny_models import SENTENCES
from tests.training.test_trainer import pairs

HERE = importlib.util.find_spec("bitsandbytes") is not None
needs_bitsandbytes = pytest.mark.skipif(not HERE, reason="bitsandbytes isn't installed: pip install '.[quantized]'")
# its CPU code calls functions of torch that torch 2.13 warns of
pytestmark = [
    pytest.mark.filterwarnings("ignore:_check_is_size:FutureWarning"),
    pytest.mark.filterwarnings("ignore:MatMul8bitLt. inputs will be cast:UserWarning"),
]
BITS: tuple[LoadIn, ...] = ("4bit", "8bit")


@needs_bitsandbytes
@pytest.mark.parametrize("bits", BITS)
def test_updates_are_trained_beside_few_bits_and_merged_into_whole_weights(
    tiny_llm: Path, tmp_path: Path, bits: LoadIn
) -> None:
    backbone = Backbone(pooling="last", prompt="say=In one word: ", lora=4, load_in=bits)
    few = load_backbone(locate(str(tiny_llm)), backbone)
    assert few[0].model.layers[0].self_attn.q_proj.weight.dtype == {"4bit": torch.uint8, "8bit": torch.int8}[bits]
    schedule = Schedule(epochs=2, batch_size=16, learning_rate=1e-2, save_steps=3)
    given: Common = {"model": str(tiny_llm), "backbone": backbone, "schedule": schedule}
    entry = train_cosent(pairs(), tmp_path / "model", **given)
    assert (entry.key["settings"]["load_in"], entry.outputs["trained"]["prompt"]) == (bits, "In one word: ")
    points = json.loads((tmp_path / "model" / "training_curve.json").read_text())["points"]
    assert points[-1]["loss"] < points[0]["loss"]
    before = load_backbone(locate(str(tiny_llm)), Backbone(pooling="last"))
    after = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    old, new = before.state_dict(), after.state_dict()
    assert old.keys() == new.keys()
    change = new["0.model.layers.0.self_attn.q_proj.weight"] - old["0.model.layers.0.self_attn.q_proj.weight"]
    assert torch.linalg.matrix_rank(change, rtol=1e-4) == 4
    assert after.default_prompt_name == "say"

    def progress(label: str, done: int, total: int | None) -> None:
        if done == 5:
            raise KeyboardInterrupt

    broken: Common = {**given, "progress": progress}
    with pytest.raises(KeyboardInterrupt):
        train_cosent(pairs(), tmp_path / "broken", **broken)
    train_cosent(pairs(), tmp_path / "broken", **given)
    assert fingerprint(tmp_path / "broken") == fingerprint(tmp_path / "model")


def add_rounding(model: SentenceTransformer, few: SentenceTransformer, plain: SentenceTransformer) -> None:
    """Add to the weights what rounding to 4 bits changed of them; 8 bits change next to nothing."""
    from bitsandbytes.functional import dequantize_4bit

    with torch.no_grad():
        for name, layer in few[0].model.named_modules():
            if name.endswith(".base_layer") and hasattr(layer.weight, "quant_state"):
                place = name.removeprefix("base_model.model.").removesuffix(".base_layer")
                before = plain[0].model.get_submodule(place).weight
                rounded = dequantize_4bit(layer.weight.data, layer.weight.quant_state).float()
                model[0].model.get_submodule(place).weight += rounded - before


@needs_bitsandbytes
@pytest.mark.parametrize("bits", BITS)
def test_the_merged_model_says_what_the_one_of_few_bits_said_but_for_their_rounding(
    tiny_llm: Path, bits: LoadIn
) -> None:
    backbone, start = Backbone(pooling="last", lora=4, load_in=bits), locate(str(tiny_llm))
    few = load_backbone(start, backbone)
    add_lora(few, 4)
    torch.manual_seed(0)
    with torch.no_grad():
        for name, weight in few.named_parameters():
            if "lora_" in name:
                weight.normal_(0, 0.1)
    assert all("lora_" in name for name in trained_state(few) if not name.endswith("inv_freq"))
    whole = merge_lora(few, start, backbone)
    plain = load_backbone(start, Backbone(pooling="last"))
    rounded = merge_lora(few, start, backbone)
    add_rounding(rounded, few, plain)
    models = (few, whole, rounded, plain)
    found = [model.encode(list(SENTENCES), normalize_embeddings=True) for model in models]
    near, exact, far = ((found[0] * other).sum(axis=1) for other in found[1:])
    assert exact.min() > 0.9999
    assert np.mean(near) > 0.98  # rounding to 4 bits moves a random model by so much
    assert np.mean(near) > np.mean(far) + 0.01  # without the updates it says something else


@needs_bitsandbytes
@pytest.mark.parametrize("bits", BITS)
def test_a_look_at_the_validation_set_leaves_the_gradients_as_they_were(tiny_llm: Path, bits: LoadIn) -> None:
    encoder = load_backbone(locate(str(tiny_llm)), Backbone(pooling="last", lora=4, load_in=bits))
    add_lora(encoder, 4)

    def gradients() -> torch.Tensor:
        encoder.train()
        encoder.zero_grad()
        torch.manual_seed(1)
        encoder(encoder.preprocess(list(SENTENCES)))["sentence_embedding"].sum().backward()
        return torch.cat([one.grad.flatten() for one in encoder.parameters() if one.grad is not None])

    before = gradients()
    encoder.eval().encode(list(SENTENCES))
    torch.testing.assert_close(gradients(), before)
    assert before.abs().max() > 0


def test_few_bits_need_low_rank_updates_and_bitsandbytes(
    tiny_llm: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"--load-in 4bit: weights of so few bits can't be trained\. Add --lora"):
        Backbone(load_in="4bit")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "a.csv").write_text("text1,text2,score\nA cat.,A dog.,0.5\nIt rains.,A sun.,0\n")
    train = ("train", "cosent", "--data", tmp_path / "a.csv", "--model", tiny_llm, "--out", tmp_path / "model")
    refused = command(*train, "--lora", 2, "--load-in", "8bit")
    assert (refused.exit_code, "needs bitsandbytes: pip install" in refused.stderr) == (2, True)


def test_a_prompt_of_ones_own_is_put_before_every_text_and_saved(tiny_model: Path, tmp_path: Path) -> None:
    train_cosent(pairs(), tmp_path / "model", model=str(tiny_model), backbone=Backbone(prompt="ask=question: "))
    trained = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert (trained.prompts["ask"], trained.default_prompt_name) == ("question: ", "ask")
    assert np.allclose(trained.encode("A cat."), trained.encode("question: A cat.", prompt=""), atol=1e-6)
