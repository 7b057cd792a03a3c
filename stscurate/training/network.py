"""The model that is trained: loaded, with the pooling, prompt and low-rank updates that were asked for."""

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, Transformer

from stscurate.errors import InputError
from stscurate.services.encoder import load_network, set_pooling
from stscurate.services.models import Model
from stscurate.training.schedule import Backbone, LoadIn


def load_backbone(start: Model, backbone: Backbone, arithmetic: str = "fp32") -> SentenceTransformer:
    """The model, in float32, or in the few bits asked for. One without a pooling layer gets the mean unless told so.

    arithmetic: fp32, bf16 or fp16, in which weights of few bits are multiplied. InputError where the model is of
    static embeddings, has no token vectors to pool, or no prompt of that name, or can't be loaded in few bits.
    """
    weights = None if backbone.load_in is None else _few_bits(backbone.load_in, arithmetic)
    encoder = load_network(start, weights)
    if isinstance(encoder[0], StaticEmbedding):
        raise InputError(
            f"{start.name} is of static embeddings, which aren't trained here: give a transformer to --model."
        )
    for module in encoder.modules() if weights else ():
        # bitsandbytes packs 4-bit weights for reading at the first look, and then no gradient comes through.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    if not isinstance(encoder[0], Transformer):
        if backbone.pooling is not None:
            raise InputError(f"--pooling {backbone.pooling}: {start.name} gives no vectors of tokens to be pooled.")
    elif backbone.pooling is not None or not any(isinstance(module, Pooling) for module in encoder):
        set_pooling(encoder, backbone.pooling or "mean")
    if backbone.prompt is not None:
        name, given, text = backbone.prompt.partition("=")
        if given:
            encoder.prompts[name] = text
        if name not in encoder.prompts:
            known = ", ".join(encoder.prompts) or "none"
            raise InputError(
                f"{start.name} has no prompt {name}; it has: {known}. Give --prompt {name}=TEXT for one of your own."
            )
        encoder.default_prompt_name = name
    return encoder


def _few_bits(load_in: LoadIn, arithmetic: str) -> dict[str, Any]:
    """What transformers is told: 4-bit normal floats, their scales quantized too, or 8-bit integers with outliers."""
    if importlib.util.find_spec("bitsandbytes") is None:
        raise InputError(f"--load-in {load_in} needs bitsandbytes: pip install 'stscurate[quantized]'")
    from transformers import BitsAndBytesConfig

    if load_in == "8bit":
        return {"quantization_config": BitsAndBytesConfig(load_in_8bit=True)}
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[arithmetic]
    settings = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=kind,
    )
    return {"quantization_config": settings}


def pooling_of(encoder: SentenceTransformer, start: Model) -> str:
    """How the model pools, and where that comes from if it isn't its own."""
    modes = [module.pooling_mode for module in encoder if isinstance(module, Pooling)]
    if not modes:
        return "none"
    mode = modes[0] if isinstance(modes[0], str) else "+".join(modes[0])
    # sentence-transformers gives a bare transformers model a mean by itself
    return mode if (start.path / "modules.json").exists() else f"{mode} (the model has no pooling layer)"


def add_lora(encoder: SentenceTransformer, rank: int) -> None:
    """Freeze the weights, and put low-rank updates beside every linear layer (LoRA, arXiv 2106.09685).

    alpha is twice the rank, dropout 0.05. The updates are float32, also beside weights of few bits. InputError where
    peft isn't installed.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        raise InputError("--lora needs peft: pip install 'stscurate[lora]'") from None
    settings = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.05, target_modules="all-linear")
    with _old_name():
        encoder[0].model = get_peft_model(encoder[0].model, settings)


def merge_lora(encoder: SentenceTransformer, start: Model, backbone: Backbone) -> SentenceTransformer:
    """The model with the updates added to its weights, so that the folder loads without peft and bitsandbytes.

    Of weights in few bits to the whole ones, which are loaded again for it: rounding them once more would lose what was
    learnt. What the model says then differs a little from what was validated.
    """
    if backbone.lora is None:
        return encoder
    with _old_name():
        if backbone.load_in is not None:
            from peft import get_peft_model_state_dict, set_peft_model_state_dict

            updates = {name: tensor.cpu() for name, tensor in get_peft_model_state_dict(encoder[0].model).items()}
            encoder = load_backbone(start, replace(backbone, load_in=None))
            add_lora(encoder, backbone.lora)
            set_peft_model_state_dict(encoder[0].model, updates)
        encoder[0].model = encoder[0].model.merge_and_unload()
    return encoder.eval()


@contextmanager
def _old_name() -> Iterator[None]:
    """peft 0.21 asks transformers for a property by its old name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing`", category=FutureWarning)
        yield


def trained_state(encoder: SentenceTransformer) -> dict[str, Any]:
    """The tensors that training changes: all of them, or the low-rank updates alone."""
    named = dict(encoder.named_parameters(remove_duplicate=False)) | dict(encoder.named_buffers(remove_duplicate=False))
    # not what weights of few bits keep beside them, which is neither a parameter nor a buffer
    state = {name: tensor for name, tensor in encoder.state_dict().items() if name in named}
    frozen = {name for name, parameter in encoder.named_parameters() if not parameter.requires_grad}
    return {name: tensor for name, tensor in state.items() if name not in frozen}
