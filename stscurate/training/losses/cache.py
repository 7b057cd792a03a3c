"""The gradient cache: batches of thousands of pairs in the memory of a few (Gao et al. 2021, arXiv 2101.06983).

A loss that compares all texts of a batch needs all their vectors, but not all activations that led to them. The texts
are encoded in micro-batches whose activations are let go, the loss gives the gradient of each vector, and each
micro-batch is encoded once more, with the same random numbers, to carry that gradient on.

Departure: the paper runs the second pass as separate backward calls. Here it stands inside the one backward pass, as
the gradient of the encoding by the weights: several processes then average gradients once a step, and gradient
scaling, accumulation and `torch.autograd.grad` work as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import get_device_states, set_device_states

from stscurate.errors import InputError
from stscurate.training.losses.features import Features


class CachedLoss(nn.Module):
    """Any loss here, or another that holds a `model` and calls it, with its texts encoded `micro_batch` at a time.

    Give the trainer a batch of thousands (`per_device_train_batch_size`) and ``CachedLoss(AngleLoss(model), 64)`` as
    its loss. Value and gradient are the plain loss's: in float64 to 1e-6 of each number, in float32 to the rounding of
    products of other shapes (1e-5 of the largest gradient). Dropout draws per micro-batch. Memory is that
    of one micro-batch of texts and of the vectors; time is that of one more forward pass. Rows are encoded
    in order of their length, and each micro-batch without the padding it doesn't need.

    Features that can't be cut by rows (StaticEmbedding's flat stream, flattened attention) are encoded whole.
    InputError: micro_batch below 1, a loss without a model.
    """

    def __init__(self, loss: nn.Module, micro_batch: int = 32) -> None:
        super().__init__()
        if micro_batch < 1:
            raise InputError(f"micro_batch is {micro_batch}; give the texts that are encoded at once, such as 32.")
        if not isinstance(getattr(loss, "model", None), nn.Module):
            raise InputError(f"{type(loss).__name__} holds no model: CachedLoss wraps a loss such as AngleLoss(model).")
        self.loss: Any = loss
        self.micro_batch = micro_batch

    @property
    def model(self) -> nn.Module:
        """The model of the loss; the trainer looks for it, and puts the wrapped one into `loss`."""
        model: nn.Module = self.loss.model
        return model

    @property
    def terms(self) -> dict[str, float]:
        """The terms of the loss in the last batch, where it has any."""
        return dict(getattr(self.loss, "terms", {}))

    def forward(self, features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Give the loss of a batch, a scalar."""
        model = self.loss.model
        self.loss.model = InMicroBatches(model, self.micro_batch)
        try:
            value: Tensor = self.loss(features, labels)
        finally:
            self.loss.model = model
        return value

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for sentence-transformers' model card."""
        own = self.loss.get_config_dict() if hasattr(self.loss, "get_config_dict") else {}
        return {"loss": {type(self.loss).__name__: own}, "micro_batch": self.micro_batch}


class InMicroBatches(nn.Module):
    """Stands in for the model during one call of the loss."""

    def __init__(self, model: nn.Module, micro_batch: int) -> None:
        super().__init__()
        self.inner = model
        self.micro_batch = micro_batch
        self.training = model.training

    def __getattr__(self, name: str) -> Any:
        """Give what the model has of that name."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, features: Features, **options: Any) -> Features:
        """Write sentence_embedding, as the model does."""
        count = _rows(features)
        if count is None or count == 0:
            whole: Features = self.inner(features, **options)
            return whole
        order = _by_length(features, count)
        parts = [_cut(features, chosen, count) for chosen in torch.split(order, self.micro_batch)]
        weights = [weight for weight in self.inner.parameters() if weight.requires_grad]
        if torch.is_grad_enabled() and weights:
            vectors: Tensor = _Encoding.apply(self.inner, parts, options, *weights)  # type: ignore[no-untyped-call]
        else:
            vectors = torch.cat([_vectors(self.inner, part, options) for part in parts])
        features["sentence_embedding"] = vectors[order.argsort()]
        return features


class _Encoding(torch.autograd.Function):
    """Micro-batches to vectors (n, d), their activations let go; for the gradient each is encoded again."""

    @staticmethod
    def forward(ctx: Any, model: nn.Module, parts: list[Features], options: dict[str, Any], *weights: Tensor) -> Tensor:
        ctx.model, ctx.parts, ctx.options = model, parts, options
        ctx.training = {module: module.training for module in model.modules()}
        vectors: list[Tensor] = []
        ctx.states = []
        for part in parts:
            ctx.states.append(_State(part))
            # Several processes get ready for the backward pass in a forward one that has gradients: the first does.
            with torch.set_grad_enabled(isinstance(model, DistributedDataParallel) and not vectors):
                vectors.append(_vectors(model, part, options).detach())
        ctx.save_for_backward(*weights)
        return torch.cat(vectors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_vectors: Tensor) -> tuple[Tensor | None, ...]:
        weights = ctx.saved_tensors
        sums: list[Tensor | None] = [None] * len(weights)
        model = _unwrapped(ctx.model)
        done = 0
        for part, state in zip(ctx.parts, ctx.states, strict=True):
            with torch.enable_grad(), state.again(), _flags(ctx.training):
                vectors = _vectors(model, part, ctx.options)
            if not vectors.requires_grad:
                break
            wanted = of_vectors[done : done + len(vectors)].to(vectors.dtype)
            done += len(vectors)
            found = torch.autograd.grad(vectors, weights, wanted, allow_unused=True)
            sums = [b if a is None else a if b is None else a.add_(b) for a, b in zip(sums, found, strict=True)]
            del vectors, found  # before the next is encoded
        return (None, None, None, *sums)


class _State:
    """Random numbers and precision as they are now, to have them again in the second pass."""

    def __init__(self, part: Features):
        tensors = [value for value in part.values() if isinstance(value, Tensor)]
        self._device = tensors[0].device.type
        self._random = torch.get_rng_state()
        self._devices, self._of_devices = get_device_states(*tensors)
        self._autocast = (
            torch.is_autocast_enabled(self._device),
            torch.get_autocast_dtype(self._device),
            torch.is_autocast_cache_enabled(),
        )

    @contextmanager
    def again(self) -> Iterator[None]:
        """Put it back for a while."""
        enabled, dtype, cached = self._autocast
        with (
            torch.random.fork_rng(self._devices),
            torch.autocast(self._device, enabled=enabled, dtype=dtype, cache_enabled=cached),
        ):
            torch.set_rng_state(self._random)
            set_device_states(self._devices, self._of_devices)
            yield


def _vectors(model: nn.Module, features: Features, options: dict[str, Any]) -> Tensor:
    vectors: Tensor = model(dict(features), **options)["sentence_embedding"]  # a copy: the model writes into it
    return vectors


@contextmanager
def _flags(training: dict[nn.Module, bool]) -> Iterator[None]:
    """Each module in the mode of the first pass (a loss may have turned dropout off), and back."""
    now = {module: module.training for module in training}
    for module, flag in training.items():
        module.training = flag
    try:
        yield
    finally:
        for module, flag in now.items():
            module.training = flag


def _unwrapped(model: nn.Module) -> nn.Module:
    """The module itself: the wrapper of several processes takes a forward call for the start of a step."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def _rows(features: Features) -> int | None:
    """The number of texts, or None where the tensors can't be cut by rows."""
    if "cu_seq_lens_q" in features or "offsets" in features:
        return None
    counts = {len(value) for key, value in features.items() if isinstance(value, Tensor) and value.ndim > 1}
    return counts.pop() if len(counts) == 1 else None


def _by_length(features: Features, count: int) -> Tensor:
    """The rows' order from the longest text to the shortest; the first micro-batch then shows the most memory."""
    mask = features.get("attention_mask")
    if isinstance(mask, Tensor) and mask.ndim == 2:
        return mask.sum(dim=1).argsort(descending=True, stable=True)
    first = next(value for value in features.values() if isinstance(value, Tensor) and value.ndim > 1)
    return torch.arange(count, device=first.device)


def _cut(features: Features, chosen: Tensor, count: int) -> Features:
    """The chosen rows of each tensor, without columns of padding behind; padding before stays, it sets positions."""
    part = {
        key: value[chosen] if isinstance(value, Tensor) and value.ndim and len(value) == count else value
        for key, value in features.items()
    }
    mask = part.get("attention_mask")
    if isinstance(mask, Tensor) and mask.ndim == 2:
        length = int((mask.any(dim=0) * torch.arange(1, mask.shape[1] + 1, device=mask.device)).max().clamp_min(1))
        for key, value in part.items():
            if isinstance(value, Tensor) and value.shape[:2] == mask.shape:
                part[key] = value[:, :length]
    return part
