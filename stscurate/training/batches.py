"""Which rows stand in which batch, as a function of the seed and the data alone, and the batch that the losses read."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from stscurate.training.encoding import rows_of

Order = Literal["random", "length"]

WINDOW = 50  # batches that are sorted by length together


class Batches:
    """Batches of row indices, every row once a pass, in another order in each pass.

    lengths: tokens of each row, (n,). order: "random"; or "length": rows are shuffled, sorted by length within
    windows of 50 batches, cut into batches, and the batches of a window shuffled. apart: a key for each row; rows
    of equal keys go through the pass in rounds, each round with one of them, so that no batch holds two (the
    contrastive losses would take them for negatives of each other).

    processes: that share the batches in turn; the first ones come again at the end, as many as make the turns even.

    The negatives of an in-batch objective are then texts of about the same length: its batches hold other rows, not
    fewer.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        *,
        seed: int,
        order: Order = "random",
        apart: Sequence[object] | None = None,
        processes: int = 1,
    ):
        self.batch_size = batch_size
        self._processes = processes
        self.epoch = 0
        self._lengths = np.asarray(lengths)
        self._seed = seed
        self._order = order
        self._rounds = _rounds(len(lengths), apart)

    def set_epoch(self, epoch: int) -> None:
        """Say which pass the next iteration is."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Batches of a pass."""
        own = sum(-(-len(rows) // self.batch_size) for rows in self._rounds)
        return -(-own // self._processes) * self._processes

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of the pass."""
        return itertools.islice(itertools.cycle(self._own()), len(self))

    def _own(self) -> Iterator[list[int]]:
        generator = np.random.default_rng([self._seed, self.epoch])
        for rows in self._rounds:
            order = rows[generator.permutation(len(rows))]
            if self._order == "random":
                yield from self._cut(order)
                continue
            window = WINDOW * self.batch_size
            for start in range(0, len(order), window):
                part = order[start : start + window]
                batches = self._cut(part[np.argsort(self._lengths[part], kind="stable")])
                yield from (batches[place] for place in generator.permutation(len(batches)))

    def _cut(self, rows: NDArray[np.int64]) -> list[list[int]]:
        return [rows[start : start + self.batch_size].tolist() for start in range(0, len(rows), self.batch_size)]


def _rounds(rows: int, keys: Sequence[object] | None) -> list[NDArray[np.int64]]:
    """The rows, parted so that the n-th row of any key stands in the n-th part."""
    if keys is None:
        return [np.arange(rows)]
    seen: dict[object, int] = {}
    parts: list[list[int]] = []
    for row, key in enumerate(keys):
        place = seen[key] = seen.get(key, -1) + 1
        if place == len(parts):
            parts.append([])
        parts[place].append(row)
    return [np.array(part) for part in parts]


@dataclass
class Collator:
    """Rows to tensors: each distinct text of the batch is tokenized once.

    The batch holds `row` (n,); `label` (n, 2) where there are labels; the distinct texts' tensors as `distinct_...`
    (m, length); and of each column the same of its own texts, with `place` (n,), their index among the m. Of a model
    that has no rows of tokens (static embeddings), the columns alone.
    """

    preprocess: Callable[..., dict[str, Any]]
    prompt: str | None = None
    valid_label_columns: list[str] = field(default_factory=lambda: ["label"])

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """The batch of these rows."""
        names = [name for name in rows[0] if name not in ("label", "row")]
        batch: dict[str, Any] = {"row": torch.tensor([row["row"] for row in rows])}
        if "label" in rows[0]:
            batch["label"] = torch.tensor([row["label"] for row in rows])
        index: dict[str, int] = {}
        places = {name: torch.tensor([index.setdefault(row[name], len(index)) for row in rows]) for name in names}
        distinct = self.preprocess(list(index), prompt=self.prompt)
        if distinct["input_ids"].ndim != 2:
            for name in names:
                column = self.preprocess([row[name] for row in rows], prompt=self.prompt)
                batch |= {f"{name}_{key}": value for key, value in column.items()}
            return batch
        batch |= {f"distinct_{key}": value for key, value in distinct.items()}
        for name, place in places.items():
            batch[f"{name}_place"] = place
            batch |= {f"{name}_{key}": rows_of(value, place, len(index)) for key, value in distinct.items()}
        return batch


def columns_of_batch(batch: dict[str, Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """The named columns of a batch, each as the model reads it."""
    return [
        {key[len(name) + 1 :]: value for key, value in batch.items() if key.startswith(f"{name}_")} for name in names
    ]
