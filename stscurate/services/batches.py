"""Items in batches of like length, as large as memory lets them be; the size in force is kept for the next run."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from stscurate.errors import InputError
from stscurate.services.answers import Answers

Ids = tuple[int, ...]
Item = tuple[Ids, Ids]  # context and target


class Batches:
    """Goes over `items` from the shortest to the longest, so many at once that rows and tokens stay within limits.

    A batch that doesn't fit into memory (see `shrinking`) is tried again in halves, and the smaller limits hold from
    then on: for the rest, and, kept in `answers` under `key`, for a run that goes on here. InputError where a single
    item doesn't fit.
    """

    def __init__(
        self, name: str, items: Collection[Item], *, rows: int, tokens: int, answers: Answers | None, key: str
    ):
        self._name = name
        self._due = sorted(items, key=lambda item: (_length(item), len(item[1]), item))
        self._at = 0
        self._now: list[Item] = []
        self._answers, self._key = answers, key
        self._rows, self._tokens = rows, tokens
        if answers and (kept := answers.get([key])):
            self._rows, self._tokens = (min(pair) for pair in zip(json.loads(kept[key]), (rows, tokens), strict=True))

    def __bool__(self) -> bool:
        """Whether there is any item."""
        return bool(self._due)

    def __iter__(self) -> Iterator[list[Item]]:
        """Each batch, until all are done."""
        while self._at < len(self._due):
            self._now = []
            for item in self._due[self._at : self._at + self._rows]:
                if self._now and (len(self._now) + 1) * _length(item) > self._tokens:
                    break
                self._now.append(item)
            yield list(self._now)

    @contextmanager
    def shrinking(self) -> Iterator[None]:
        """Around the work on a batch: it counts as done, or, where memory ran out, the limits are halved."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            self._shrink()
            return
        self._at += len(self._now)

    def _shrink(self) -> None:
        rows, longest = len(self._now), _length(self._now[-1])
        if rows == 1:
            raise InputError(
                f"{self._name} has no memory for a pair of {longest} tokens at once: "
                "lower --max-tokens, end what else uses the memory, or take a smaller model."
            )
        self._rows = rows // 2
        self._tokens = min(self._tokens, max(rows * longest // 2, 1))
        if self._answers:
            self._answers.put("batch", {self._key: json.dumps([self._rows, self._tokens]).encode()})


def together(items: Collection[Item]) -> dict[Item, list[Item]]:
    """The items that one pass reads, by the one that is gone through: those that it begins with, itself the first."""
    found: dict[Item, list[Item]] = {}
    longest: Item = ((), ())
    # In this order all that begin with an item stand behind it.
    for item in sorted(items, key=lambda item: (item[0] + item[1], item), reverse=True):
        whole = item[0] + item[1]
        if not found or (longest[0] + longest[1])[: len(whole)] != whole:
            longest = item
        found.setdefault(longest, []).append(item)
    return found


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch says that memory ran out, on a GPU or here."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    told = str(error)
    return isinstance(error, RuntimeError) and ("alloc" in told and "memory" in told.lower())


def _length(item: Item) -> int:
    return len(item[0]) + len(item[1])
