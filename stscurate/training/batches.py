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
    windows of 50 batches, cut into batches, and the batches of a window shuffled; the negatives of an in-batch
    objective are then texts of about the same length: its batches hold other rows, not fewer.

    apart: a key for each row; rows of equal keys go through the pass in rounds, each round with one of them, so that no
    batch holds two (the contrastive losses would take them for negatives of each other).

    processes: that share the batches in turn; the first ones come again at the end, as many as make the turns even.
    `batch_size` is then None: told a size, accelerate passes over a turn whose last batch is smaller, or fills it with
    rows of others.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        *,
        seed: int | Sequence[int],
        order: Order = "random",
        apart: Sequence[object] | None = None,
        processes: int = 1,
    ):
        self._size = batch_size
        self.batch_size = batch_size if processes == 1 else None
        self._processes = processes
        self.epoch = 0
        self._lengths = np.asarray(lengths)
        self._seed = [seed] if isinstance(seed, int) else list(seed)
        self._order = order
        self._rounds = _rounds(len(lengths), apart)

    def set_epoch(self, epoch: int) -> None:
        """Say which pass the next iteration is."""
        self.epoch = epoch

    @property
    def rows(self) -> int:
        """Rows of a pass."""
        return len(self._lengths)

    def __len__(self) -> int:
        """Batches of a pass."""
        own = sum(-(-len(rows) // self._size) for rows in self._rounds)
        return -(-own // self._processes) * self._processes

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of the pass."""
        return self.of(self.epoch)

    def of(self, epoch: int) -> Iterator[list[int]]:
        """The batches of that pass."""
        return itertools.islice(itertools.cycle(self._own(epoch)), len(self))

    def _own(self, epoch: int) -> Iterator[list[int]]:
        generator = np.random.default_rng([*self._seed, epoch])
        for rows in self._rounds:
            order = rows[generator.permutation(len(rows))]
            if self._order == "random":
                yield from self._cut(order)
                continue
            window = WINDOW * self._size
            for start in range(0, len(order), window):
                part = order[start : start + window]
                batches = self._cut(part[np.argsort(self._lengths[part], kind="stable")])
                yield from (batches[place] for place in generator.permutation(len(batches)))

    def _cut(self, rows: NDArray[np.int64]) -> list[list[int]]:
        return [rows[start : start + self._size].tolist() for start in range(0, len(rows), self._size)]


class Turns:
    """The batches of several sources, a source each; which one's turn it is, is drawn by the seed and the pass.

    Rows are counted through all sources. shares: of each source in the batches; by default as many as its rows fill, so
    that a pass holds every row once. With shares a pass is as long: of a source that gets less than it has the next
    pass goes on where this one stopped, and a source that gets more begins again, in another order.
    processes: each turn is a batch for every one of them, since losses compare the pairs of all.
    """

    def __init__(
        self, sources: Sequence[Batches], *, seed: int, shares: Sequence[float] | None = None, processes: int = 1
    ):
        self.batch_size = sources[0].batch_size
        self.epoch = 0
        self._sources = sources
        self._seed = seed
        self._processes = processes
        self._own = [len(source) // processes for source in sources]
        self._turns = self._own if shares is None else _apportioned(sum(self._own), shares)
        self._first = np.cumsum([0, *(source.rows for source in sources)]).tolist()

    def set_epoch(self, epoch: int) -> None:
        """Say which pass the next iteration is."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Batches of a pass."""
        return sum(self._turns) * self._processes

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of the pass."""
        generator = np.random.default_rng([self._seed, 0, self.epoch])
        order = generator.permutation(np.repeat(np.arange(len(self._sources)), self._turns))
        streams = [self._stream(place) for place in range(len(self._sources))]
        for place in order:
            yield from itertools.islice(streams[place], self._processes)

    def _stream(self, place: int) -> Iterator[list[int]]:
        """A source's batches, pass after pass of its own, from where the pass before has left it."""
        past, skipped = divmod(self.epoch * self._turns[place], self._own[place])
        own = itertools.chain.from_iterable(self._sources[place].of(epoch) for epoch in itertools.count(past))
        for batch in itertools.islice(own, skipped * self._processes, None):
            yield [row + self._first[place] for row in batch]


def _apportioned(total: int, shares: Sequence[float]) -> list[int]:
    """`total` turns by shares, each at least one; by largest remainders, the first first."""
    wanted = np.array(shares) / sum(shares) * total
    turns = np.floor(wanted).astype(np.int64)
    left = np.argsort(-(wanted - turns), kind="stable")[: total - int(turns.sum())]
    turns[left] += 1
    return [max(1, int(turn)) for turn in turns]


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

    Columns in which the rows have None are another source's. The batch holds `row` (n,); `source` (n,) where there are
    several; `label` (n, 2) where there are labels; the distinct texts' tensors as `distinct_...`
    (m, length); and of each column the same of its own texts, with `place` (n,), their index among the m. Of a model
    that has no rows of tokens (static embeddings), the columns alone.
    """

    preprocess: Callable[..., dict[str, Any]]
    prompt: str | None = None
    valid_label_columns: list[str] = field(default_factory=lambda: ["label"])

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """The batch of these rows."""
        given = [name for name, value in rows[0].items() if value is not None]
        numbers = [name for name in ("row", "source", "label") if name in given]
        batch: dict[str, Any] = {name: torch.tensor([row[name] for row in rows]) for name in numbers}
        names = [name for name in given if name not in numbers]
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
