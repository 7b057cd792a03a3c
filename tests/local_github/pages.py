"""Pages of sorted lists behind opaque cursors that name the last item seen, so that changes shift none."""

from __future__ import annotations

import base64
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError

LARGEST = 100

Key = Callable[[Any], tuple[Any, ...]]  # of strings and numbers, different for any two items


class ApiError(GraphQLError):
    """An error with GitHub's `type` beside its message."""

    def __init__(self, type: str, message: str) -> None:  # noqa: A002 - GitHub's own name
        super().__init__(message)
        self.type = type


@dataclass(frozen=True)
class Page:
    items: Sequence[Any]
    cursors: Sequence[str]
    total: int
    has_next: bool
    has_previous: bool


def cursor_of(key: tuple[Any, ...]) -> str:
    return base64.b64encode(b"cursor:v2:" + json.dumps(key).encode()[::-1]).decode()


def key_of(cursor: str) -> tuple[Any, ...]:
    """ApiError if the cursor is none of ours."""
    try:
        magic, packed = base64.b64decode(cursor, validate=True).split(b"v2:", 1)
        if magic == b"cursor:":
            return tuple(json.loads(packed[::-1]))
    except ValueError:
        pass
    raise ApiError("INVALID_CURSOR_ARGUMENTS", f"`{cursor}` does not appear to be a valid cursor.")


class Rows:
    """A sorted list that pages are cut out of."""

    def __init__(self, items: Iterable[Any], key: Key, *, descending: bool = False) -> None:
        keyed = sorted(((key(item), item) for item in items), key=lambda pair: pair[0])
        self._keys = [key for key, _ in keyed]  # ascending
        self._items = [item for _, item in keyed]
        self._descending = descending

    def __len__(self) -> int:
        return len(self._items)

    def page(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        after: str | None = None,
        before: str | None = None,
        at_most: int | None = None,
    ) -> Page:
        """at_most: how far pages can be turned. `first` is taken before `last`."""
        start, stop = 0, min(len(self), at_most or len(self))
        end = stop
        if after is not None:
            start = self._count(after, and_itself=True)
        if before is not None:
            stop = self._count(before, and_itself=False)
        if first is not None:
            stop = min(stop, start + first)
        if last is not None:
            start = max(start, stop - last)
        places = [len(self) - 1 - i if self._descending else i for i in range(start, stop)]
        return Page(
            items=[self._items[i] for i in places],
            cursors=[cursor_of(self._keys[i]) for i in places],
            total=len(self),
            has_next=stop < end,
            has_previous=start > 0,
        )

    def _count(self, cursor: str, *, and_itself: bool) -> int:
        """How many stand before the place of the cursor."""
        bound = key_of(cursor)
        if self._descending:
            return len(self) - (bisect_left if and_itself else bisect_right)(self._keys, bound)
        return (bisect_right if and_itself else bisect_left)(self._keys, bound)


class Kept:
    """Sorted lists, made once for all pages until something changes. Used under the store's lock."""

    def __init__(self) -> None:
        self._revision = -1
        self._rows: dict[tuple[Any, ...], Rows] = {}

    def rows(self, revision: int, key: tuple[Any, ...], make: Callable[[], Rows]) -> Rows:
        if revision != self._revision:
            self._revision, self._rows = revision, {}
        if key not in self._rows:
            self._rows[key] = make()
        return self._rows[key]


def check_bounds(connection: str, first: int | None, last: int | None) -> None:
    """ApiError in GitHub's words where neither is given, or one is out of range."""
    if first is None and last is None:
        raise ApiError(
            "MISSING_PAGINATION_BOUNDARIES",
            f"You must provide a `first` or `last` value to properly paginate the `{connection}` connection.",
        )
    for name, value in (("first", first), ("last", last)):
        if value is not None and value < 0:
            raise ApiError("ARGUMENT_LIMIT", f"`{name}` on the `{connection}` connection cannot be less than zero.")
        if value is not None and value > LARGEST:
            raise ApiError(
                "EXCESSIVE_PAGINATION",
                f"Requesting {value} records on the `{connection}` connection exceeds the `{name}` limit of "
                f"{LARGEST} records.",
            )
