"""Gold of the user's own: a file or folder of pairs, or a run."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.evaluation.gold import GoldSet
from stscurate.store import is_run
from stscurate.tables import pairs_source


def read_file(path: Path, *, columns: str | None = None, scale: str | None = None) -> GoldSet:
    """Gold is a pair's score, else its label. Of a run, and of a file with several splits, the split test is taken."""
    source = pairs_source(path, columns=columns, scale=scale)
    table, dropped = source.table, Counter(source.tally.dropped)
    splits = pc.unique(table["split"].drop_null())
    if is_run(path) or len(splits) > 1:
        table = _keep(table, pc.fill_null(pc.equal(table["split"], "test"), False), "other_split", dropped)
    gold = pc.coalesce(table["score"], table["label"].cast(pa.float64()))
    table = _keep(table.append_column("gold", gold), pc.is_valid(gold), "no_gold", dropped)
    pairs = list(zip(table["text1"].to_pylist(), table["text2"].to_pylist(), strict=True))
    shown = f"{path.resolve().name}, test split" if is_run(path) else path.resolve().name
    return GoldSet(shown, pairs, table["gold"].to_numpy(), dict(sorted(dropped.items())))


def _keep(table: pa.Table, mask: pa.ChunkedArray, reason: str, dropped: Counter[str]) -> pa.Table:
    kept = table.filter(mask)
    if kept.num_rows < table.num_rows:
        dropped[reason] += table.num_rows - kept.num_rows
    return kept
