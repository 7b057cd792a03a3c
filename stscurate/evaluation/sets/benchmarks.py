"""A defined benchmark as gold: rows of the Hub or of a path, scaled to 0..1, those without gold counted."""

from collections import Counter
from pathlib import Path

import numpy as np

from stscurate import cells
from stscurate.errors import InputError
from stscurate.evaluation.gold import GoldSet
from stscurate.evaluation.sets.definitions import Benchmark, Source
from stscurate.evaluation.sets.hub import fetch
from stscurate.evaluation.sets.layouts import find
from stscurate.files import RawTable
from stscurate.roles import parse_scale


def read_benchmark(benchmark: Benchmark, path: Path | None, split: str = "", collection: str | None = None) -> GoldSet:
    """The "all" setting: all subsets of the split one after another, as one set.

    path: where it lies on this disk, as first published; None for the Hub. split: another than the usual one.
    """
    split = split or benchmark.split
    if split not in benchmark.splits:
        raise InputError(f"{benchmark.name} has no split {split}; it has {', '.join(benchmark.splits)}.")
    found = find(benchmark, path, split) if path else fetch(benchmark, split)
    pairs: list[tuple[str, str]] = []
    gold: list[float] = []
    subsets: list[str] = []
    dropped: Counter[str] = Counter()
    for subset, table, source in found:
        before = len(pairs)
        _add(table, source, parse_scale(benchmark.scale), pairs, gold, dropped)
        subsets += [subset] * (len(pairs) - before)
    name = benchmark.name if split == benchmark.split else f"{benchmark.name}:{split}"
    return GoldSet(
        name,
        pairs,
        np.array(gold),
        dict(sorted(dropped.items())),
        subsets=tuple(subsets) if any(subsets) else (),
        notes=(*benchmark.notes, *_other_rows(benchmark, split, len(pairs))),
        collection=collection,
    )


def _add(
    table: RawTable,
    source: Source,
    scale: tuple[float, float],
    pairs: list[tuple[str, str]],
    gold: list[float],
    dropped: Counter[str],
) -> None:
    """Add the rows of one file that have two texts and gold."""
    columns = source.columns or {name: name for name in ("text1", "text2", "score", "label") if name in table.columns}
    missing = [column for column in columns.values() if column not in table.columns]
    if missing:
        raise InputError(f"{table.name} lacks the columns {', '.join(missing)}; it has {', '.join(table.columns)}.")
    for row in range(len(table)):
        text1, text2 = (cells.text(table, columns[role], row) for role in ("text1", "text2"))
        if not text1 or not text1.strip() or not text2 or not text2.strip():
            dropped["empty_text"] += 1
            continue
        value = _gold(table, source, columns.get("score"), columns.get("label"), row, scale)
        if value is None:
            dropped["no_gold"] += 1
            continue
        pairs.append((text1, text2))
        gold.append(value)


def _gold(
    table: RawTable, source: Source, score: str | None, label: str | None, row: int, scale: tuple[float, float]
) -> float | None:
    if score is not None:
        return cells.score(table, score, row, scale)
    if label is None:
        return None
    found = table.columns[label][row]
    return source.labels.get(str(int(found) if isinstance(found, float) and found.is_integer() else found).strip())


def _other_rows(benchmark: Benchmark, split: str, rows: int) -> list[str]:
    expected = benchmark.rows.get(split)
    if expected is None or rows == expected:
        return []
    return [f"{rows:,} pairs with gold were read where {expected:,} were expected: numbers of others may be on those."]
