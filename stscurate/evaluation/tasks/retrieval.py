"""Retrieval of grouped texts: each is a query among all, and the others of its group are to be found."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stscurate.evaluation.gold import FEW
from stscurate.evaluation.metrics.retrieval import retrieval_numbers
from stscurate.evaluation.tasks.data import Grouped, told_drops
from stscurate.evaluation.tasks.measuring import Told
from stscurate.wording import counted


@dataclass(frozen=True)
class Retrieval:
    """The task of finding a text by the others of its group."""

    data: Grouped
    kind = "retrieval"

    def named(self, name: str) -> "Retrieval":
        """The same by another name."""
        return Retrieval(replace(self.data, name=name))

    @property
    def note(self) -> str:
        """What the numbers rest on."""
        groups = int((np.bincount(self.data.groups) > 1).sum())
        few = f", and of {counted(groups, 'group')} they tell little" if groups < FEW else ""
        texts, alone = len(self.data.texts), self.data.alone
        besides = f"; {alone:,} alone in theirs are no queries" if alone else ""
        return (
            f"{self.data.name}: each text is a query among all {texts:,}, and the others of its group are relevant"
            f"{besides}. Any other text that is as similar, within a millionth, stands before a relevant one. "
            f"Intervals draw groups{few}. {told_drops(self.data.dropped)}"
        )

    def told(self, model: str, vectors: NDArray[np.float32], clean: NDArray[np.bool_] | None, seed: int = 0) -> Told:
        """Units are groups. vectors: (n, d) of the texts; clean: (n,) as Scorer.clean."""
        queries, numbers = retrieval_numbers(vectors, self.data.groups)
        of = self.data.groups[queries]
        units = np.unique(of)
        sums = {name: np.bincount(of, values)[units].astype(np.float64) for name, values in numbers.items()}
        known = None if clean is None else np.bincount(self.data.groups, ~clean)[units] == 0
        return Told(model, self.kind, self.data.name, sums, np.bincount(of)[units].astype(np.float64), known)
