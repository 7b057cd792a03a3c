"""The model that is trained: loaded, with the pooling, prompt and low-rank updates that were asked for."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from stscurate.errors import InputError
from stscurate.services.encoder import load_network
from stscurate.services.models import Model
from stscurate.training.schedule import Backbone

_POOLING = {"cls": "cls", "mean": "mean", "last": "lasttoken"}


def load_backbone(start: Model, backbone: Backbone) -> SentenceTransformer:
    """The model, in float32. A model without a pooling layer gets the mean unless told otherwise.

    InputError where the model has no token vectors to pool, or no prompt of that name.
    """
    encoder = load_network(start)
    _set_pooling(encoder, start.name, backbone.pooling)
    if backbone.prompt is not None:
        if backbone.prompt not in encoder.prompts:
            known = ", ".join(encoder.prompts) or "none"
            raise InputError(f"{start.name} has no prompt {backbone.prompt}; it has: {known}.")
        encoder.default_prompt_name = backbone.prompt
    return encoder


def pooling_of(encoder: SentenceTransformer, start: Model) -> str:
    """How the model pools, and where that comes from if it isn't its own."""
    modes = [module.pooling_mode for module in encoder if isinstance(module, Pooling)]
    if not modes:
        return "none"
    mode = modes[0] if isinstance(modes[0], str) else "+".join(modes[0])
    # sentence-transformers gives a bare transformers model a mean by itself
    return mode if (start.path / "modules.json").exists() else f"{mode} (the model has no pooling layer)"


def prompt_of(encoder: SentenceTransformer) -> str | None:
    """What stands before every text."""
    return encoder.prompts.get(encoder.default_prompt_name or "") or None


def _set_pooling(encoder: SentenceTransformer, name: str, pooling: str | None) -> None:
    modules = list(encoder)
    places = [place for place, module in enumerate(modules) if isinstance(module, Pooling)]
    if not isinstance(modules[0], Transformer):
        if pooling is not None:
            raise InputError(f"--pooling {pooling}: {name} gives no vectors of tokens that could be pooled.")
        return
    if places and pooling is None:
        return
    place = places[0] if places else 1
    include = modules[place].include_prompt if places else True
    mode = _POOLING[pooling or "mean"]
    layer = Pooling(modules[0].get_embedding_dimension(), pooling_mode=mode, include_prompt=include)
    layer.to(encoder.device)
    kept = [*modules[:place], layer, *modules[place + bool(places) :]]
    names = [str(index) for index in range(len(kept))]
    for old in list(encoder._modules):
        del encoder._modules[old]
    for key, module in zip(names, kept, strict=True):
        encoder.add_module(key, module)


def add_lora(encoder: SentenceTransformer, rank: int) -> None:
    """Freeze the weights, and put low-rank updates beside every linear layer (LoRA, arXiv 2106.09685).

    alpha is twice the rank, dropout 0.05. InputError where peft isn't installed.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        raise InputError("--lora needs peft: pip install 'stscurate[lora]'") from None
    settings = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.05, target_modules="all-linear")
    with _old_name():
        encoder[0].model = get_peft_model(encoder[0].model, settings)


def merge_lora(encoder: SentenceTransformer) -> None:
    """Add the updates to the weights, so that the folder loads without peft."""
    with _old_name():
        encoder[0].model = encoder[0].model.merge_and_unload()


@contextmanager
def _old_name() -> Iterator[None]:
    """peft 0.21 asks transformers for a property by its old name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing`", category=FutureWarning)
        yield


def trained_state(encoder: SentenceTransformer) -> dict[str, Any]:
    """The tensors that training changes: all of them, or the low-rank updates alone."""
    frozen = {name for name, parameter in encoder.named_parameters() if not parameter.requires_grad}
    return {name: tensor for name, tensor in encoder.state_dict().items() if name not in frozen}
