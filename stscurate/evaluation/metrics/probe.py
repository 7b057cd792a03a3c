"""Linear probes: what a logistic regression on frozen vectors tells of texts that it hasn't seen.

As SentEval has them (Conneau and Kiela, LREC 2018): ten folds, or the set's own splits; how strongly weights are held
down is chosen on rows that are held out of training. Vectors are scaled so that a number's mean square is 1.
"""

import warnings

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Vectors = NDArray[np.float32]

_STRENGTHS = (0.001, 0.01, 0.1, 1.0)  # scikit-learn's C: the smaller, the more weights are held down
_USUAL = 0.1
_HELD_OUT = 5  # a fifth of the rows to learn from chooses
_ITERATIONS = 1_000


def out_of_fold(vectors: Vectors, labels: Ints, *, folds: int = 10, seed: int = 0) -> Ints:
    """The class that each of n rows is taken for by a model of the other folds, (n,)."""
    fold = fold_of(labels, folds, seed)
    found = np.empty_like(labels)
    for number in range(folds):
        learnt, told = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        inner = fold_of(labels[learnt], _HELD_OUT, seed) == 0
        found[told] = _told(vectors, labels, learnt[~inner], learnt[inner], told, refit=True)
    return found


def by_splits(vectors: Vectors, labels: Ints, train: Ints, validation: Ints, test: Ints, *, seed: int = 0) -> Ints:
    """The class that each row of `test` is taken for by a model of `train`; rows are given by place.

    The strength is chosen on `validation`, or without one on a fifth of `train`, which is learnt from at the end.
    """
    if len(validation):
        return _told(vectors, labels, train, validation, test, refit=False)
    inner = fold_of(labels[train], _HELD_OUT, seed) == 0
    return _told(vectors, labels, train[~inner], train[inner], test, refit=True)


def fold_of(labels: Ints, folds: int, seed: int) -> Ints:
    """The fold of each row, (n,): drawn by seed, the rows of each class spread evenly."""
    drawn = np.random.default_rng(seed).permutation(len(labels))
    ordered = drawn[np.argsort(labels[drawn], kind="stable")]
    fold = np.empty(len(labels), np.int64)
    fold[ordered] = np.arange(len(labels)) % folds
    return fold


def _told(vectors: Vectors, labels: Ints, fit: Ints, choose: Ints, told: Ints, *, refit: bool) -> Ints:
    rows = vectors.astype(np.float64) * np.sqrt(vectors.shape[1])
    strength = _USUAL
    if len(choose) and len(np.unique(labels[fit])) > 1:
        right = [
            np.mean(_learnt(rows[fit], labels[fit], strength).predict(rows[choose]) == labels[choose])
            for strength in _STRENGTHS
        ]
        strength = _STRENGTHS[int(np.argmax(right))]
    learnt = np.sort(np.concatenate([fit, choose])) if refit else fit
    return np.asarray(_learnt(rows[learnt], labels[learnt], strength).predict(rows[told]), dtype=np.int64)


def _learnt(rows: NDArray[np.float64], labels: Ints, strength: float):  # type: ignore[no-untyped-def]
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near its end, and the same for every model
        return LogisticRegression(C=strength, max_iter=_ITERATIONS).fit(rows, labels)
