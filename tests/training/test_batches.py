"""Batches hold every row once a pass, and a batch's distinct texts, encoded once, give the plain loss and gradient."""

from pathlib import Path

import pytest
import torch
from accelerate.data_loader import BatchSamplerShard
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from torch import Tensor, nn

from stscurate.training.batches import Batches, Collator, Order, columns_of_batch
from stscurate.training.encoding import DistinctEncoder
from stscurate.training.losses import JointAngleLoss, NTXentLoss
from tests.tiny_models import SENTENCES, tiny_causal_lm, tiny_sentence_transformer

LENGTHS = [(7 * row) % 23 for row in range(101)]


@pytest.mark.parametrize("order", ["random", "length"])
def test_a_pass_holds_every_row_once_and_is_a_function_of_seed_and_pass(order: str) -> None:
    batches = Batches(LENGTHS, 8, seed=3, order=order)  # type: ignore[arg-type]
    first = list(batches)
    assert len(first) == len(batches) == 13
    assert sorted(row for batch in first for row in batch) == list(range(101))
    assert list(Batches(LENGTHS, 8, seed=3, order=order)) == first  # type: ignore[arg-type]
    batches.set_epoch(1)
    assert list(batches) != first
    assert list(Batches(LENGTHS, 8, seed=4, order=order)) != first  # type: ignore[arg-type]


def test_batches_by_length_hold_rows_of_about_the_same_length_in_no_order() -> None:
    found = [[LENGTHS[row] for row in batch] for batch in Batches(LENGTHS, 8, seed=0, order="length")]
    assert sorted(length for batch in found for length in batch) == sorted(LENGTHS)
    # One window: sorted, its 13 batches would follow one another without overlap.
    assert [batch[0] for batch in sorted(found)] == sorted(LENGTHS)[::8]
    assert sorted(found) != found


def test_rows_of_one_key_never_meet() -> None:
    keys = ["a", "b", "a", "c", "a", "b", "d"]
    batches = Batches([1] * 7, 3, seed=0, apart=keys)
    found = list(batches)
    assert sorted(row for batch in found for row in batch) == list(range(7))
    assert all(len({keys[row] for row in batch}) == len(batch) for batch in found)
    assert len(found) == len(batches) == 4  # of 4, 2 and 1 rows


def encoder(folder: Path, *, padding: str = "right", dropout: float = 0.0) -> SentenceTransformer:
    """A tiny model with mean pooling, in training; one that pads to the left has no absolute positions to shift."""
    if padding == "right":
        path = tiny_sentence_transformer(folder / "tiny", dropout=dropout)
    else:
        path = tiny_causal_lm(folder / "tiny")
    loaded = Transformer(str(path), processor_kwargs={"padding_side": padding})
    return SentenceTransformer(modules=[loaded, Pooling(32, pooling_mode="mean")], device="cpu").train()


ROWS = [
    {"row": place, "sentence1": SENTENCES[a], "sentence2": SENTENCES[b], "label": [score, 1.0]}
    for place, (a, b, score) in enumerate([(0, 8, 1.0), (3, 0, 0.9), (8, 10, 0.2), (5, 6, 0.8), (7, 7, 0.1)])
]


class Counting(nn.Module):
    """Notes how many texts pass."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner
        self.sizes: list[tuple[int, ...]] = []

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        self.sizes.append(tuple(features["input_ids"].shape))
        return dict(self.inner(features))


@pytest.mark.parametrize("padding", ["right", "left"])
def test_distinct_texts_give_the_plain_loss_and_gradient(tmp_path: Path, padding: str) -> None:
    model = encoder(tmp_path, padding=padding)
    batch = Collator(model.preprocess)(ROWS)
    columns = columns_of_batch(batch, ["sentence1", "sentence2"])
    plain = JointAngleLoss(model)(columns, batch["label"])
    plain.backward()
    wanted = {
        name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None
    }
    model.zero_grad()
    counting = Counting(model)
    distinct = DistinctEncoder(counting, group=3, together=True)
    distinct.begin(columns_of_batch(batch, ["distinct"])[0])
    loss = JointAngleLoss(distinct)(columns, batch["label"])
    loss.backward()
    assert loss.item() == pytest.approx(plain.item(), rel=1e-5)
    for name, parameter in model.named_parameters():
        if name in wanted:
            assert parameter.grad is not None
            assert torch.allclose(parameter.grad, wanted[name], rtol=1e-3, atol=1e-5), name
    lengths = sorted(batch["distinct_attention_mask"].sum(dim=1).tolist(), reverse=True)
    # seven texts stand in ten places; each group is as long as its own longest
    assert counting.sizes == [(3, lengths[0]), (3, lengths[3]), (1, lengths[6])]
    assert distinct.tokens == sum(lengths)
    assert distinct.cells == 3 * lengths[0] + 3 * lengths[3] + lengths[6]


def test_twins_stay_two(tmp_path: Path) -> None:
    model = encoder(tmp_path, dropout=0.5)
    batch = Collator(model.preprocess)([{"row": place, "text": text} for place, text in enumerate(SENTENCES)])
    distinct = DistinctEncoder(model, group=4, together=False)
    distinct.begin(columns_of_batch(batch, ["distinct"])[0])
    columns = columns_of_batch(batch, ["text"])
    first, second = (distinct(columns[0])["sentence_embedding"] for _ in range(2))
    assert not torch.allclose(first, second)
    assert NTXentLoss(distinct)(columns).item() > 0.1


def test_a_prompt_stands_before_every_text(tmp_path: Path) -> None:
    model = encoder(tmp_path)
    given = Collator(model.preprocess, prompt="about: ")([{"row": 0, "text": "a cat"}])
    plain = Collator(model.preprocess)([{"row": 0, "text": "about: a cat"}])
    assert torch.equal(given["text_input_ids"], plain["text_input_ids"])


@pytest.mark.parametrize("apart", [None, [row % 40 for row in range(101)]])
@pytest.mark.parametrize("order", ["random", "length"])
def test_processes_share_all_batches_also_those_that_are_smaller(order: Order, apart: list[int] | None) -> None:
    """As accelerate parts them, which goes by the size of batches where it is told one."""
    batches = Batches(LENGTHS, 8, seed=1, order=order, apart=apart, processes=2)
    shards = [list(BatchSamplerShard(batches, num_processes=2, process_index=place)) for place in (0, 1)]
    wanted = list(batches)
    assert shards == [wanted[::2], wanted[1::2]]
    assert {row for shard in shards for batch in shard for row in batch} == set(range(101))
