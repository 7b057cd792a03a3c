"""The validation set: what chooses the best weights. Never a test split."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.correlation import spearman
from stscurate.methods.similarity import alignment, pair_cosines, positives, uniformity
from stscurate.tables import pairs_source
from stscurate.wording import counted

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_FEWEST = 3  # two points always correlate perfectly


@dataclass(frozen=True)
class Validation:
    """n pairs and their gold, (n,) within 0 and 1."""

    name: str
    pairs: list[tuple[str, str]]
    gold: NDArray[np.float64]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the pairs and their gold."""
        return hashlib.sha256(json.dumps([self.pairs, self.gold.tolist()]).encode()).hexdigest()

    def look(self, encoder: "SentenceTransformer", *, geometry: bool = False) -> dict[str, float | None]:
        """Spearman of the cosines with gold; with `geometry` also alignment and uniformity (Wang and Isola, 2020).

        None where the cosines are all the same, and for the alignment where no gold is above 0.8.
        """
        texts = list(dict.fromkeys(text for pair in self.pairs for text in pair))
        raw = encoder.encode(texts, batch_size=64, show_progress_bar=False, convert_to_tensor=True).float()
        vectors = torch.nn.functional.normalize(raw, dim=1).cpu().numpy()
        place = {text: row for row, text in enumerate(texts)}
        left, right = (vectors[[place[pair[side]] for pair in self.pairs]] for side in (0, 1))
        rank = spearman(pair_cosines(left, right), self.gold)
        found = {"spearman": None if np.isnan(rank) else float(rank)}
        if geometry:
            near = positives(self.gold)
            found["alignment"] = alignment(left[near], right[near]) if near.any() else None
            found["uniformity"] = uniformity(vectors)
        return found


def validation_set(path: Path, *, columns: str | None = None, scale: str | None = None) -> Validation:
    """The validation pairs of a run or a file: those of the split validation, or all where a file knows no splits.

    InputError where it holds only other splits, or fewer than 3 pairs with gold, or gold of one value.
    """
    table = pairs_source(path, columns=columns, scale=scale).table
    splits = set(table["split"].to_pylist()) - {None}
    found = _with_gold(path.resolve().name, table, "validation" if splits else None)
    if len(found.pairs) < _FEWEST:
        other = f" (it holds the split{'s' * (len(splits) > 1)} {', '.join(sorted(splits))})" if splits else ""
        raise InputError(
            f"{path} has {counted(len(found.pairs), 'pair')} with gold to validate on{other}: a correlation needs at "
            "least "
            f"{_FEWEST} of the split validation, or a file without splits."
        )
    if found.gold.min() == found.gold.max():
        raise InputError(f"{path}: all validation gold is {found.gold[0]:g}: a correlation needs gold that varies.")
    return found


def own_validation(name: str, pairs: pa.Table) -> Validation | None:
    """The split validation of the pairs that are trained on, where it has gold enough to correlate with."""
    found = _with_gold(name, pairs, "validation")
    return found if len(found.pairs) >= _FEWEST and found.gold.min() < found.gold.max() else None


def _with_gold(name: str, table: pa.Table, split: str | None) -> Validation:
    pairs, gold = [], []
    for row in table.select(["text1", "text2", "score", "label", "split"]).to_pylist():
        value = row["score"] if row["score"] is not None else row["label"]
        if row["split"] == split and value is not None:
            pairs.append((row["text1"], row["text2"]))
            gold.append(float(value))
    return Validation(name, pairs, np.array(gold))
