"""The trainer beside sentence-transformers' own: the same batches give the same weights."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import AnglELoss, CoSENTLoss

from stscurate.records import Tally
from stscurate.training import Schedule, train_angle, train_cosent
from stscurate.training.batches import Batches, Order
from stscurate.training.data import TrainingRows
from stscurate.training.trainer import Common
from tests.tiny_models import SENTENCES, tiny_sentence_transformer

SCORED = [
    (one, two, (7 * i + 3 * j) % 11 / 10) for i, one in enumerate(SENTENCES) for j, two in enumerate(SENTENCES[:i])
]
SCHEDULE = Schedule(epochs=2, batch_size=16, learning_rate=1e-3, seed=3, precision="fp32")


def theirs(start: Path, folder: Path, loss: Any, order: list[list[list[int]]]) -> SentenceTransformer:
    """Trained by their trainer and loss on the batches of each pass."""

    class Ordered(SentenceTransformerTrainer):  # type: ignore[misc]
        def get_batch_sampler(self, *_: Any, **__: Any) -> Any:
            return Passes(order)

    model = SentenceTransformer(str(start), device="cpu")
    columns = dict(zip(("sentence1", "sentence2", "score"), map(list, zip(*SCORED, strict=True)), strict=True))
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=SCHEDULE.epochs,
        per_device_train_batch_size=SCHEDULE.batch_size,
        learning_rate=SCHEDULE.learning_rate,
        warmup_steps=0.1,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    Ordered(model=model, args=arguments, train_dataset=Dataset.from_dict(columns), loss=loss(model)).train()
    return model


class Passes:
    """A batch sampler that gives the batches of one pass after the other."""

    batch_size = SCHEDULE.batch_size

    def __init__(self, order: list[list[list[int]]]):
        self._order = order
        self._past = 0

    def __len__(self) -> int:
        return len(self._order[0])

    def __iter__(self) -> Iterator[list[int]]:
        self._past += 1
        return iter(self._order[self._past - 1])


@pytest.mark.parametrize("loss", [CoSENTLoss, AnglELoss])
@pytest.mark.parametrize("batches", ["random", "length"])
def test_the_same_batches_give_the_same_weights(tmp_path: Path, loss: Any, batches: Order) -> None:
    start = tiny_sentence_transformer(tmp_path / "start", dropout=0.0)
    columns: dict[str, list[Any]] = {
        "sentence1": [row[0] for row in SCORED],
        "sentence2": [row[1] for row in SCORED],
        "label": [[row[2], 1.0] for row in SCORED],
    }
    rows = TrainingRows([str(i) for i in range(len(SCORED))], columns, {}, {"pairs": "0"}, Tally(rows_in=len(SCORED)))
    schedule = replace(SCHEDULE, batches=batches)
    common = Common(model=str(start), schedule=schedule)
    if loss is CoSENTLoss:
        train_cosent(rows, tmp_path / "model", tau=0.05, **common)
    else:
        train_angle(rows, tmp_path / "model", weights=(0.0, 0.0, 1.0), taus=(0.05, 0.05, 0.05), **common)
    ours = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    lengths = ours.tokenizer([text for row in SCORED for text in row[:2]], return_length=True)["length"]
    sums = [one + two for one, two in zip(lengths[::2], lengths[1::2], strict=True)]
    batcher = Batches(sums, schedule.batch_size, seed=schedule.seed, order=batches)
    peer = theirs(start, tmp_path / "theirs", loss, [list(batcher.of(epoch)) for epoch in range(schedule.epochs)])
    before = SentenceTransformer(str(start), device="cpu").state_dict()
    for name, weight in peer.state_dict().items():
        found = ours.state_dict()[name]
        torch.testing.assert_close(found, weight, rtol=1e-4, atol=2e-5)
    moved = max(float((weight - before[name]).abs().max()) for name, weight in peer.state_dict().items())
    assert moved > 100 * 2e-5  # so that the weights above are far from where they began
