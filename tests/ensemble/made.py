"""Votes made by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from stscurate.annotators.base import Pair, vote_row
from stscurate.records import PAIRS, from_rows


def vote(pair: str, annotator: str, raw: float | None, scale: str = "0..5", **more: Any) -> dict[str, Any]:
    """A row of the table votes."""
    values = {"order": "ab", "cut": 0, "error": "parse" if raw is None else None, **more}
    return vote_row(Pair(pair, "", ""), annotator, "digit", "", raw=raw, scale=scale, **values)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows as the table votes."""
    return from_rows(rows, "votes")


def pair(key: str, text1: str, text2: str, score: float | None = None, label: int | None = None) -> dict[str, Any]:
    """A row of the table pairs."""
    row: dict[str, Any] = dict.fromkeys(PAIRS.names)
    row |= {"pair_id": key, "text1": text1, "text2": text2, "score": score, "label": label}
    return row | {"weight": 1.0, "origin": "test", "flags": []}
