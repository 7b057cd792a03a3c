"""Gold to evaluate on: pairs of texts with their similarity, wherever they come from (evaluation/sets/)."""

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.texts import normalise
from stscurate.wording import counted

FEWEST = 3  # two points always correlate perfectly
FEW = 10  # below it an interval tells little, and a note says so


@dataclass(frozen=True)
class GoldSet:
    """n pairs of texts and their gold, (n,) within 0 and 1; `dropped` counts the rows left out, by reason."""

    name: str
    pairs: list[tuple[str, str]]
    gold: NDArray[np.float64]
    dropped: dict[str, int]
    subsets: tuple[str, ...] = ()  # of each pair, where the set has some: the "all" setting takes them as one
    notes: tuple[str, ...] = ()  # what makes a number on it mean less than it seems
    collection: str | None = None  # the sets that are averaged with this one, by their common name

    def __post_init__(self) -> None:
        """Refuse gold that no correlation can be taken of."""
        if len(self.pairs) < FEWEST:
            left_out = ", ".join(f"{reason} {rows}" for reason, rows in self.dropped.items()) or "none"
            raise InputError(
                f"{self.name} has {counted(len(self.pairs), 'pair')} with gold (left out: {left_out}): "
                f"a correlation needs at least {FEWEST}."
            )
        if self.gold.min() == self.gold.max():
            raise InputError(
                f"{self.name}: the gold of all {len(self.pairs)} pairs is {self.gold[0]:g}: "
                "a correlation needs gold that varies."
            )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the pairs, their gold and their subsets."""
        content = [self.pairs, self.gold.tolist(), *([self.subsets] if self.subsets else [])]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    @property
    def binary(self) -> bool:
        """Whether the gold is 0 and 1 only."""
        return bool(np.isin(self.gold, (0, 1)).all())

    @cached_property
    def keys(self) -> list[tuple[str, ...]]:
        """Each pair's texts, normalised and sorted: the same for pairs that differ in neither."""
        return [tuple(sorted(normalise(text) for text in pair)) for pair in self.pairs]

    def shared_with(self, other: "GoldSet") -> int:
        """Pairs that stand in the other set too."""
        known = set(other.keys)
        return sum(key in known for key in self.keys)

    @cached_property
    def conflicting(self) -> int:
        """Pairs whose two texts, normalised and in either order, stand in another row with another gold."""
        rows: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for key, gold in zip(self.keys, self.gold.tolist(), strict=True):
            rows[key].append(gold)
        return sum(len(golds) for golds in rows.values() if len(set(golds)) > 1)
