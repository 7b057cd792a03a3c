"""Cosines as a yes or no: the threshold that serves a binary set best, and what it is worth on another."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Best:
    """The highest value that any threshold gives, and the threshold: a score at or above it is a yes."""

    value: float
    threshold: float


def best_f1(label: ArrayLike, score: ArrayLike) -> Best:
    """The highest F1 of the positives; value 0 without any. label: n numbers 0 or 1."""
    hits, taken, thresholds, labels = _sweep(label, score)
    return _best(2 * hits / np.maximum(taken + labels.sum(), 1), thresholds)


def best_accuracy(label: ArrayLike, score: ArrayLike) -> Best:
    """The highest share of rows told right, which is never below that of the more frequent label."""
    hits, taken, thresholds, labels = _sweep(label, score)
    wrong = (taken - hits) + (labels.sum() - hits)
    return _best(1 - wrong / len(labels), thresholds)


def f1_at(label: ArrayLike, score: ArrayLike, threshold: float) -> float:
    """F1 of the positives where scores at or above the threshold are a yes; 0 where there is none on either side."""
    yes, labels = np.asarray(score) >= threshold, np.asarray(label) > 0.5
    told = int(yes.sum() + labels.sum())
    return float(2 * (yes & labels).sum() / told) if told else 0.0


def accuracy_at(label: ArrayLike, score: ArrayLike, threshold: float) -> float:
    """The share of rows told right where scores at or above the threshold are a yes."""
    return float(np.mean((np.asarray(score) >= threshold) == (np.asarray(label) > 0.5)))


def _sweep(label: ArrayLike, score: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    """For each threshold, from above all scores down: positives at or above it, rows at or above it, and itself.

    Thresholds stand halfway between neighbouring scores, so that neither side's scores on other rows just miss it.
    """
    labels, scores = np.asarray(label, np.float64), np.asarray(score, np.float64)
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)  # the end of each run of equal scores
    ends = ranked[last]
    between = np.append((ends[:-1] + ends[1:]) / 2, ends[-1])
    thresholds = np.append(np.nextafter(ends[0], np.inf), between)
    hits = np.append(0.0, np.cumsum(labels[order])[last])
    return hits, np.append(0.0, last + 1.0), thresholds, labels


def _best(values: Floats, thresholds: Floats) -> Best:
    place = int(np.argmax(values))
    return Best(float(values[place]), float(thresholds[place]))
