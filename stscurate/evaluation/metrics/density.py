"""How a model's similarities are spread over each band of gold: what ConSERT, ArcCSE and others draw."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stscurate.evaluation.scoring import Scored

_BANDS = 5  # of graded gold; binary gold has two


@dataclass(frozen=True)
class Density:
    """A histogram of the similarities of the pairs of one gold band, low to high (the last band includes its end).

    edges: (bins + 1,) of the bins; pairs: (bins,) pairs in each.
    """

    model: str
    set: str
    low: float
    high: float
    edges: NDArray[np.float64]
    pairs: NDArray[np.int64]

    @property
    def heights(self) -> NDArray[np.float64]:
        """The density in each bin, (bins,): its area is 1; all 0 without a pair."""
        return np.asarray(self.pairs / (max(self.pairs.sum(), 1) * np.diff(self.edges)))

    def rows(self) -> list[dict[str, Any]]:
        """The histogram as rows, a bin each."""
        heights = self.heights
        return [
            {
                "model": self.model,
                "set": self.set,
                "gold_low": self.low,
                "gold_high": self.high,
                "similarity_low": float(self.edges[place]),
                "similarity_high": float(self.edges[place + 1]),
                "pairs": int(pairs),
                "density": float(heights[place]),
            }
            for place, pairs in enumerate(self.pairs)
        ]


def densities(scored: Scored, *, bins: int = 40) -> list[Density]:
    """A histogram for each gold band, over bins from -1 to 1, or over the range of similarities that aren't cosines."""
    found = scored.similarities
    low, high = (-1.0, 1.0) if abs(found).max() <= 1 else (float(found.min()), float(found.max()))
    edges = np.linspace(low, high, bins + 1)
    gold = scored.gold.gold
    cuts = np.linspace(0, 1, (2 if scored.gold.binary else _BANDS) + 1)
    band = np.minimum(np.searchsorted(cuts.round(9), gold.round(9), side="right") - 1, len(cuts) - 2)
    return [
        Density(
            scored.model,
            scored.gold.name,
            float(cuts[place]),
            float(cuts[place + 1]),
            edges,
            np.histogram(found[band == place], edges)[0].astype(np.int64),
        )
        for place in range(len(cuts) - 1)
    ]
