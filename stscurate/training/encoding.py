"""The model as a loss sees it: each distinct text of a batch encoded once, beside texts of its length."""

from typing import Any

import torch
from torch import Tensor, nn

from stscurate.training.losses.cache import InMicroBatches

Column = dict[str, Any]


class DistinctEncoder(nn.Module):
    """Stands between a loss and its model, and encodes the distinct texts of a batch, in groups of like length.

    A loss asks for a column, (n, d). Where the columns come with `place` (see batches.Collator), the distinct texts
    are sorted by length and encoded `group` at a time, each group padded to its own longest: value and gradient are
    those of the whole to rounding, whatever rows the batch holds. together: the texts of all columns are encoded at
    the first ask, for all columns (a text has then one vector in a step, dropout included); otherwise each ask encodes
    its own column, as losses need that ask twice for dropout's sake. cached: a group's activations are let go until
    the backward pass, which makes them again (losses.cache).

    `tokens` and `cells` count what was encoded: tokens of texts, and tokens with padding. `finite` tells whether all
    vectors of the batch are: the losses take a vector that has no length for a zero, and stay finite themselves.
    Of the rows the trainer can say more than a loss could (losses.features.embed).
    """

    watches_vectors = True

    def __init__(self, encoder: nn.Module, *, group: int, together: bool, cached: bool = False):
        super().__init__()
        self.encoder = encoder
        self.group = group
        self.together = together
        self.cached = cached
        self.tokens = 0
        self.cells = 0
        self.finite = True
        self._distinct: Column | None = None
        self._vectors: Tensor | None = None

    def begin(self, distinct: Column | None) -> None:
        """A batch begins; its distinct texts as the model reads them, None where they aren't known."""
        self._distinct, self._vectors, self.finite = distinct, None, True

    def forward(self, column: Column) -> dict[str, Tensor]:
        """The vectors of a column's texts, under `sentence_embedding`."""
        if self._distinct is None or "place" not in column:
            found = dict(self.encoder(column))
            self.finite = self.finite and bool(torch.isfinite(found["sentence_embedding"]).all())
            return found
        place = column["place"]
        if self.together:
            if self._vectors is None:
                self._vectors = self._encode(self._distinct)
            return {"sentence_embedding": self._vectors[place]}
        asked, own = torch.unique(place, return_inverse=True)
        part = {key: rows_of(value, asked, len(self._distinct["input_ids"])) for key, value in self._distinct.items()}
        return {"sentence_embedding": self._encode(part)[own]}

    def _encode(self, texts: Column) -> Tensor:
        """(m, d) of m texts."""
        mask = texts["attention_mask"]
        count, width = mask.shape
        lengths = mask.sum(dim=1)
        order = torch.argsort(lengths, descending=True, stable=True)
        left = bool((mask[:, -1] == 1).all()) and not bool((mask[:, 0] == 1).all())  # the side of the padding
        widths = lengths[order].tolist()
        found = []
        encoder = InMicroBatches(self.encoder, self.group) if self.cached else self.encoder
        for start in range(0, count, self.group):
            rows, longest = order[start : start + self.group], widths[start]
            keep = slice(width - longest, width) if left else slice(0, longest)
            group = {key: rows_of(value, rows, count) for key, value in texts.items()}
            group = {key: _cut(value, keep, width) for key, value in group.items()}
            found.append(encoder(group)["sentence_embedding"])
            self.cells += longest * len(rows)
        self.tokens += sum(widths)
        vectors = torch.cat(found)
        self.finite = self.finite and bool(torch.isfinite(vectors).all())
        return vectors[torch.argsort(order)]


def rows_of(value: Any, rows: Tensor, count: int) -> Any:
    """The rows of a tensor that has `count` of them; anything else as it is."""
    return value[rows] if isinstance(value, Tensor) and value.ndim and len(value) == count else value


def _cut(value: Any, keep: slice, width: int) -> Any:
    return value[:, keep] if isinstance(value, Tensor) and value.ndim > 1 and value.shape[1] == width else value
