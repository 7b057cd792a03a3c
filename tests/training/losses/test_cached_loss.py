"""The gradient cache: value, gradient and random numbers as of the plain loss, in the memory of a micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import CoSENTLoss, MultipleNegativesRankingLoss
from torch import Tensor, nn

from stscurate.errors import InputError
from stscurate.training import losses
from stscurate.training.losses import blocks, cache
from tests.tiny_models import SENTENCES, tiny_sentence_transformer

SCORES = torch.tensor([1.0, 0.1, 0.3, 0.2, 0.0, 1.0, 0.4, 0.9, 0.5, 0.7, 0.6])
LEFT, RIGHT = list(SENTENCES[:11]), list(SENTENCES[1:12])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_transformer(tmp_path_factory.mktemp("cached") / "model", dropout=0.2)


def network(folder: Path, dropout: float) -> SentenceTransformer:
    model = SentenceTransformer(str(folder), device="cpu").double().train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
    return model


def features(model: SentenceTransformer, columns: int = 2) -> list[dict[str, Any]]:
    third = [text[: len(text) // 2] for text in LEFT]
    return [dict(model.preprocess(texts)) for texts in (LEFT, RIGHT, third)[:columns]]


def trained(loss: nn.Module, model: SentenceTransformer, columns: int) -> tuple[Tensor, list[Tensor]]:
    """Value, and the gradient of every weight."""
    model.zero_grad()
    torch.manual_seed(3)
    value = loss(features(model, columns), SCORES)
    value.backward()
    return value.detach(), [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]


CASES: list[tuple[Callable[..., nn.Module], int]] = [
    (losses.CosineRankLoss, 2),
    (losses.AngleLoss, 2),
    (losses.JointAngleLoss, 2),
    (lambda model: losses.InBatchNegativesLoss(model, threshold=0.5), 2),
    (losses.NTXentLoss, 2),
    (losses.ArcConLoss, 1),
    (lambda model: losses.NestedMaskTripletLoss(model, margin=0.5), 3),
    (losses.ArcCSELoss, 3),
    (CoSENTLoss, 2),
    (MultipleNegativesRankingLoss, 2),
]
NAMES = [
    "cosine",
    "angle",
    "joint",
    "in_batch",
    "ntxent",
    "arccon",
    "triplet",
    "arccse",
    "their_cosent",
    "their_ranking",
]


@pytest.mark.parametrize(("build", "columns"), CASES, ids=NAMES)
@pytest.mark.parametrize("micro_batch", [1, 4, 100])
def test_gradients_equal_the_plain_loss(
    folder: Path, build: Callable[..., nn.Module], columns: int, micro_batch: int
) -> None:
    model = network(folder, dropout=0.0)
    plain, expected = trained(build(model), model, columns)
    value, gradients = trained(losses.CachedLoss(build(model), micro_batch), model, columns)
    torch.testing.assert_close(value, plain, rtol=1e-9, atol=1e-9)
    scale = max(float(gradient.abs().max()) for gradient in expected)
    assert len(gradients) == len(expected)
    for gradient, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-6, atol=1e-9 * scale)


def test_gradients_in_float32(folder: Path) -> None:
    model = network(folder, dropout=0.0).float()
    _, expected = trained(losses.CosineRankLoss(model), model, 2)
    _, gradients = trained(losses.CachedLoss(losses.CosineRankLoss(model), 3), model, 2)
    scale = max(float(gradient.abs().max()) for gradient in expected)
    for gradient, other in zip(gradients, expected, strict=True):
        # products of other shapes round otherwise, and the loss multiplies that by 1 / tau
        torch.testing.assert_close(gradient / scale, other / scale, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("build", "columns"), [CASES[2], CASES[5], CASES[7]], ids=["joint", "arccon", "arccse"])
def test_the_second_pass_draws_the_same_dropout(
    folder: Path, monkeypatch: pytest.MonkeyPatch, build: Callable[..., nn.Module], columns: int
) -> None:
    # the oracle keeps all activations: the same micro-batches, never encoded again
    model = network(folder, dropout=0.3)

    def whole(model: nn.Module, parts: list[dict[str, Any]], options: dict[str, Any], *_: Tensor) -> Tensor:
        return torch.cat([model(dict(part), **options)["sentence_embedding"] for part in parts])

    with monkeypatch.context() as patch:
        patch.setattr(cache._Encoding, "apply", whole)
        plain, expected = trained(losses.CachedLoss(build(model), 4), model, columns)
        after = torch.get_rng_state()
    value, gradients = trained(losses.CachedLoss(build(model), 4), model, columns)
    assert torch.equal(value, plain)
    assert torch.equal(torch.get_rng_state(), after)
    for gradient, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-9, atol=1e-12)
    assert all(module.training for module in model.modules())
    other_draws = network(folder, dropout=0.3)
    torch.manual_seed(4)
    assert not torch.equal(losses.CachedLoss(build(other_draws), 4)(features(other_draws, columns), SCORES), value)


class Counted(nn.Module):
    """A model that tells how many rows it was given at once, and fails if asked to."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 4)
        self.calls: list[tuple[int, ...]] = []
        self.fails = fails

    def forward(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        self.calls.append(tuple(given["input_ids"].shape))
        if self.fails:
            raise RuntimeError("out of memory")
        kept = given["attention_mask"][..., None]
        given["sentence_embedding"] = (self.table(given["input_ids"]) * kept).sum(dim=1)
        return given


def column(lengths: list[int]) -> dict[str, Tensor]:
    mask = torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]
    ids = torch.arange(mask.numel()).reshape(mask.shape) % 50
    return {"input_ids": ids * mask, "attention_mask": mask.long(), "prompt_length": torch.tensor(0)}


def test_micro_batches_go_by_length_without_padding() -> None:
    model = Counted()
    given = [column([2, 9, 1, 3, 8]), column([1, 1, 1, 1, 4])]
    loss = losses.CachedLoss(losses.CosineRankLoss(model), micro_batch=2)
    loss(given, SCORES[:5]).backward()
    forward = [(2, 9), (2, 3), (1, 1), (2, 4), (2, 1), (1, 1)]
    assert model.calls[:6] == forward
    assert sorted(model.calls[6:]) == sorted(forward)  # each once more, for its gradient
    model.calls.clear()
    with torch.no_grad():
        plain = losses.CosineRankLoss(model)(given, SCORES[:5])
        assert model.calls == [(5, 9), (5, 4)]
        torch.testing.assert_close(loss(given, SCORES[:5]), plain)
    assert model.calls[2:] == forward


def test_frozen_weights_and_precision_are_as_in_the_plain_loss(folder: Path) -> None:
    model = network(folder, dropout=0.0).float()
    for weight in list(model.parameters())[:-4]:
        weight.requires_grad_(False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = losses.CosineRankLoss(model)(features(model), SCORES)
        cached = losses.CachedLoss(losses.CosineRankLoss(model), 4)(features(model), SCORES)
    wanted = [weight for weight in model.parameters() if weight.requires_grad]
    expected = torch.autograd.grad(value, wanted, allow_unused=True)
    found = torch.autograd.grad(cached, wanted, allow_unused=True)  # outside: bf16 all the same
    torch.testing.assert_close(cached, value, rtol=0.02, atol=0.02)
    for gradient, other in zip(found, expected, strict=True):
        assert (gradient is None) == (other is None)
        if gradient is not None and other is not None:
            torch.testing.assert_close(gradient, other, rtol=0, atol=0.05 * float(other.abs().max()))
    for weight in model.parameters():
        weight.requires_grad_(False)
    assert not losses.CachedLoss(losses.CosineRankLoss(model), 4)(features(model), SCORES).requires_grad


def test_no_more_than_a_micro_batch_of_activations_is_kept(folder: Path) -> None:
    model = network(folder, dropout=0.0)
    weights = {weight.data_ptr() for weight in model.parameters()}  # which are there anyway
    kept: dict[str, int] = {}
    for name, loss in (
        ("plain", losses.CosineRankLoss(model)),
        ("cached", losses.CachedLoss(losses.CosineRankLoss(model), 2)),
    ):
        sizes: list[int] = []

        def pack(tensor: Tensor, sizes: list[int] = sizes) -> Tensor:
            sizes.append(0 if tensor.data_ptr() in weights else tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss(features(model), SCORES)
        kept[name] = sum(sizes)
    assert kept["cached"] < kept["plain"] / 10


def test_what_cannot_be_cut_is_encoded_whole() -> None:
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bag = nn.EmbeddingBag(10, 4)

        def forward(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
            return {"sentence_embedding": self.bag(given["input_ids"], given["offsets"])}

    model = Flat()
    flat = {"input_ids": torch.arange(9), "offsets": torch.tensor([0, 4, 6])}
    other = {"input_ids": torch.arange(9).flip(0), "offsets": torch.tensor([0, 1, 5])}
    expected = losses.CosineRankLoss(model)([flat, other], SCORES[:3])
    cached = losses.CachedLoss(losses.CosineRankLoss(model), 1)
    assert torch.equal(cached([flat, other], SCORES[:3]), expected)


def test_the_loss_keeps_its_model_also_after_an_error() -> None:
    model = Counted(fails=True)
    loss = losses.CosineRankLoss(model)
    with pytest.raises(RuntimeError, match="out of memory"):
        losses.CachedLoss(loss)([column([2, 3]), column([1, 1])], SCORES[:2])
    assert loss.model is model


def test_mistakes_are_named() -> None:
    with pytest.raises(InputError, match="micro_batch is 0"):
        losses.CachedLoss(losses.CosineRankLoss(Counted()), 0)
    with pytest.raises(InputError, match="Linear holds no model"):
        losses.CachedLoss(nn.Linear(1, 1))


@pytest.mark.parametrize(("build", "columns"), [CASES[3], CASES[4], CASES[5]], ids=["in_batch", "ntxent", "arccon"])
def test_blocks_of_rows_equal_the_whole_matrix(
    folder: Path, monkeypatch: pytest.MonkeyPatch, build: Callable[..., nn.Module], columns: int
) -> None:
    model = network(folder, dropout=0.0)
    monkeypatch.setattr(blocks, "ROWS", 4)
    value, gradients = trained(build(model), model, columns)
    monkeypatch.setattr(blocks, "ROWS", 10**6)
    plain, expected = trained(build(model), model, columns)
    torch.testing.assert_close(value, plain, rtol=1e-10, atol=1e-12)
    for gradient, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-8, atol=1e-12)
