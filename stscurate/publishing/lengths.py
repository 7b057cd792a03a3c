"""How long the published texts are, and what a model could learn of scores from size and wording alone."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stscurate.methods.correlation import spearman
from stscurate.methods.overlap import overlap
from stscurate.publishing.parts import Parts
from stscurate.publishing.scored import counted
from stscurate.records import SPLITS

_FEWEST = 20  # pairs of a split: a correlation of fewer says nothing
_MOST = 10_000  # pairs looked at, evenly spaced: a correlation varies by .01 then

Row = tuple[Any, ...]


def lengths(pairs: Parts) -> list[Row]:
    """(split, unit, least, median, 95 %, most) over both texts of each pair."""
    counts: dict[tuple[str, str], Counter[int]] = {}
    for batch in pairs.batches(["split", "text1", "text2", "tokens1", "tokens2"]):
        for split in pc.unique(batch["split"]).to_pylist():
            rows = batch.filter(pc.equal(batch["split"], split))
            units = {
                "characters": [pc.utf8_length(rows["text1"]), pc.utf8_length(rows["text2"])],
                "tokens": [rows["tokens1"].drop_null(), rows["tokens2"].drop_null()],
            }
            for unit, columns in units.items():
                numbers, times = np.unique(np.concatenate(columns), return_counts=True)
                counter = counts.setdefault((split, unit), Counter())
                counter.update(dict(zip(numbers.tolist(), times.tolist(), strict=True)))
    order = [(split, unit) for split in SPLITS for unit in ("characters", "tokens")]
    return [(*key, *_summary(counts[key])) for key in order if counts.get(key)]


def _summary(counts: Counter[int]) -> tuple[int, int, int, int]:
    """Least, median, 95 % and most: the smallest length that so many don't exceed."""
    sizes = sorted(counts)
    total = np.cumsum([counts[size] for size in sizes])
    middle, high = (sizes[int(np.searchsorted(total, share * total[-1]))] for share in (0.5, 0.95))
    return sizes[0], middle, high, sizes[-1]


def size_bias(pairs: Parts) -> list[Row]:
    """(split, pairs looked at, rho with length, with likeness in length, with shared letters), each Spearman's with the
    score, "-" where either is the same for all.

    Length is that of both texts in characters, likeness the shorter over the longer, shared letters `overlap`. Of a
    split of more than 10,000 pairs as many are looked at, evenly spaced; those of fewer than 20 are left out.
    """
    found: list[Row] = []
    looked: dict[str, list[tuple[float, ...]]] = {}
    counts = counted(pairs)
    wanted = {split: _evenly(rows) for split, rows in counts.items() if rows >= _FEWEST}
    seen = dict.fromkeys(wanted, 0)
    for batch in pairs.batches(["split", "text1", "text2", "score"]):
        for split in pc.unique(batch["split"]).to_pylist():
            if split in wanted:
                rows = batch.filter(pc.equal(batch["split"], split))
                low, high = np.searchsorted(wanted[split], [seen[split], seen[split] + rows.num_rows])
                chosen = rows.take(pa.array(wanted[split][low:high] - seen[split]))
                looked.setdefault(split, []).extend(map(_measures, chosen.to_pylist()))
                seen[split] += rows.num_rows
    for split in wanted:
        *measures, score = np.array(looked[split]).T
        rhos = [spearman(measure, score) for measure in measures]
        found.append((split, len(score), *("-" if np.isnan(rho) else round(rho, 3) for rho in rhos)))
    return found


def _evenly(rows: int) -> NDArray[np.int64]:
    if rows <= _MOST:
        return np.arange(rows)
    return np.linspace(0, rows - 1, _MOST).astype(np.int64)


def _measures(row: dict[str, Any]) -> tuple[float, ...]:
    text1, text2 = row["text1"], row["text2"]
    sizes = sorted((len(text1), len(text2)))
    return float(sum(sizes)), sizes[0] / max(sizes[1], 1), overlap(text1, text2), row["score"]
