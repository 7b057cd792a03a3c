"""How long the published texts are, and what a model could learn of scores from size and wording alone."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stscurate.methods.correlation import spearman
from stscurate.methods.overlap import overlap
from stscurate.records import SPLITS

_FEWEST = 20  # pairs of a split: a correlation of fewer says nothing
_MOST = 10_000  # pairs looked at, evenly spaced: a correlation varies by .01 then

Row = tuple[Any, ...]


def lengths(pairs: pa.Table) -> list[Row]:
    """(split, unit, least, median, 95 %, most) over both texts of each pair."""
    found: list[Row] = []
    for split in SPLITS:
        rows = pairs.filter(pc.equal(pairs["split"], split))
        units = {
            "characters": [pc.utf8_length(rows["text1"]), pc.utf8_length(rows["text2"])],
            "tokens": [rows["tokens1"].drop_null(), rows["tokens2"].drop_null()],
        }
        for unit, columns in units.items():
            numbers = np.concatenate([column.to_numpy() for column in columns])
            if len(numbers):
                middle, high = np.quantile(numbers, [0.5, 0.95], method="inverted_cdf")
                found.append((split, unit, int(numbers.min()), int(middle), int(high), int(numbers.max())))
    return found


def size_bias(pairs: pa.Table) -> list[Row]:
    """(split, pairs looked at, rho with length, with likeness in length, with shared letters), each Spearman's with the
    score, "-" where either is the same for all.

    Length is that of both texts in characters, likeness the shorter over the longer, shared letters `overlap`. Of a
    split of more than 10,000 pairs as many are looked at, evenly spaced; those of fewer than 20 are left out.
    """
    found: list[Row] = []
    for split in SPLITS:
        rows = pairs.filter(pc.equal(pairs["split"], split)).select(["text1", "text2", "score"])
        if rows.num_rows < _FEWEST:
            continue
        if rows.num_rows > _MOST:
            rows = rows.take(pa.array(np.linspace(0, rows.num_rows - 1, _MOST).astype(np.int64)))
        sizes = np.stack([pc.utf8_length(rows[name]).to_numpy() for name in ("text1", "text2")])
        shared = [overlap(*texts) for texts in zip(rows["text1"].to_pylist(), rows["text2"].to_pylist(), strict=True)]
        measures = [sizes.sum(axis=0), sizes.min(axis=0) / np.maximum(sizes.max(axis=0), 1), np.array(shared)]
        score = rows["score"].to_numpy()
        rhos = [spearman(measure, score) for measure in measures]
        found.append((split, rows.num_rows, *("-" if np.isnan(rho) else round(rho, 3) for rho in rhos)))
    return found
