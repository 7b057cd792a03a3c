"""Linear probes as a task: the share of texts whose class a logistic regression on frozen vectors tells."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stscurate.evaluation.gold import FEW
from stscurate.evaluation.metrics.probe import by_splits, out_of_fold
from stscurate.evaluation.tasks.data import FOLDS, Labelled, told_drops
from stscurate.evaluation.tasks.measuring import Told
from stscurate.wording import counted


@dataclass(frozen=True)
class Probe:
    """The task of telling the class of a text."""

    data: Labelled
    kind = "probe"

    def named(self, name: str) -> "Probe":
        """The same by another name."""
        return Probe(replace(self.data, name=name))

    @property
    def note(self) -> str:
        """What the numbers rest on."""
        told = self.data.labels[self._rows]
        share = np.bincount(told).max() / len(told)
        most = self.data.classes[int(np.bincount(told).argmax())]
        how = "by its own splits" if self.data.splits else f"in {FOLDS} folds"
        always = f"to say {most!r:.40} always is right for {share:.1%}"
        found = f"{self.data.name}: {len(self.data.classes)} classes, {how}; {always}. "
        if self.data.unlearnt:
            texts = counted(self.data.unlearnt, "text")
            found += f"{texts} of its split test, of a class without any in train, can't be told right. "
        if len(told) < FEW:
            found += f"Of {counted(len(told), 'text')} an interval tells little. "
        return found + told_drops(self.data.dropped)

    @property
    def _rows(self) -> NDArray[np.int64]:
        return self.data.rows("test") if self.data.splits else np.arange(len(self.data.texts))

    def told(self, model: str, vectors: NDArray[np.float32], clean: NDArray[np.bool_] | None, seed: int = 0) -> Told:
        """Units are texts, of the test split where there is one. vectors: (n, d); clean: (n,) as Scorer.clean."""
        rows, labels = self._rows, self.data.labels
        if self.data.splits:
            train, validation = self.data.rows("train"), self.data.rows("validation")
            found = by_splits(vectors, labels, train, validation, rows, seed=seed)
        else:
            found = out_of_fold(vectors, labels, folds=FOLDS, seed=seed)
        right = (found == labels[rows]).astype(np.float64)
        known = None if clean is None else clean[rows]
        return Told(model, self.kind, self.data.name, {"accuracy": right}, np.ones(len(rows)), known)
