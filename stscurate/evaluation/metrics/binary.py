"""Binary gold: F1 and accuracy at the threshold that is best for them, and at the one that another set chose."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.thresholds import accuracy_at, best_accuracy, best_f1, f1_at

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Thresholds:
    """What is best on a set of its own (dev), to be held to the sets that are reported."""

    f1: float
    accuracy: float


def choose(label: Floats, similarity: Floats) -> Thresholds:
    """The thresholds that are best on these rows."""
    return Thresholds(best_f1(label, similarity).threshold, best_accuracy(label, similarity).threshold)


def binary_numbers(label: Floats, similarity: Floats, chosen: Thresholds | None) -> dict[str, float]:
    """f1 and accuracy with their thresholds, best on these very rows, and so too high; and with those chosen before."""
    f1, accuracy = best_f1(label, similarity), best_accuracy(label, similarity)
    found = {
        "f1": f1.value,
        "f1_threshold": f1.threshold,
        "accuracy": accuracy.value,
        "accuracy_threshold": accuracy.threshold,
    }
    if chosen:
        found["f1_transferred"] = f1_at(label, similarity, chosen.f1)
        found["accuracy_transferred"] = accuracy_at(label, similarity, chosen.accuracy)
    return found
