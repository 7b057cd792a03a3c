"""Runs with pairs to vote on, for the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stscurate.annotators import plan
from stscurate.records import PAIRS, Tally, from_rows
from stscurate.services.purse import Price, Prices
from stscurate.store import Run
from tests.tiny_models import SENTENCES

PRICES = Prices({"m": Price(1000.0, 1000.0)}, "test")


def make_pairs(folder: Path, count: int, texts: Callable[[int], tuple[str, str]] | None = None) -> None:
    """A run with pairs of distinct texts, every fifth of split test."""
    texts = texts or (lambda i: (f"{SENTENCES[i % 12]} ({i})", SENTENCES[(i * 5 + 1) % 12]))
    rows = []
    for i in range(count):
        text1, text2 = texts(i)
        row: dict[str, Any] = dict.fromkeys(PAIRS.names)
        row |= {"pair_id": f"p{i}", "text1": text1, "text2": text2, "weight": 1.0, "origin": "test", "flags": []}
        rows.append(row | {"split": "test" if i % 5 == 4 else "train"})
    with Run.open(folder) as run:
        stage = run.stage("pairs", tables=["pairs"], inputs={}, settings={})
        stage.write(0, {"pairs": from_rows(rows, "pairs")}, Tally(rows_in=count))
        stage.commit()


def votes_of(folder: Path) -> list[dict[str, Any]]:
    return list(Run(folder).table("votes").to_pylist())


def due(run: Run, spec: str) -> tuple[int, int]:
    """How many asks a plan says are due, and how many answers are known."""
    (found,) = plan(run, [spec])
    return found.due, found.known
