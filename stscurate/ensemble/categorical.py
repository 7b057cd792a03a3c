"""Graded votes as classes: Dawid and Skene's model of raters, and MACE, with the expected class as the score.

Numbers of 0 to 1 are cut into `bins` classes, class k standing for k / (bins - 1): with 6, the digits 0 to 5. A number
halfway between two goes to the even class. Where all votes on a pair are of one class, that class wins, whatever
the model makes of the raters; so does the vote of an annotator that is alone on a pair.
"""

from typing import NamedTuple

import numpy as np

from stscurate.errors import InputError
from stscurate.methods.numbers import Floats, Ints

BINS = 6
_ROUNDS = 100
_LEAST = 1e-10


class Votes(NamedTuple):
    """m votes as classes: pair and annotator (indices), label in 0..bins-1; and how many there are of each."""

    pair: Ints
    annotator: Ints
    label: Ints
    pairs: int
    annotators: int
    bins: int


def binned(pair: Ints, annotator: Ints, value: Floats, *, pairs: int, annotators: int, bins: int) -> Votes:
    """Numbers of 0..1 as classes. InputError for fewer than two bins."""
    if bins < 2:
        raise InputError(f"--bins {bins}: votes are cut into two classes at least.")
    label = np.rint(value * (bins - 1)).astype(np.int64)
    return Votes(pair, annotator, label, pairs, annotators, bins)


def expected(votes: Votes, classes: Floats) -> Floats:
    """The expected class of each pair as a number of 0..1; nan for a pair without a vote.

    classes: (pairs, bins) probabilities. Unanimous pairs have their class.
    """
    count = np.bincount(votes.pair, minlength=votes.pairs)
    low, high = np.full(votes.pairs, votes.bins), np.full(votes.pairs, -1)
    np.minimum.at(low, votes.pair, votes.label)
    np.maximum.at(high, votes.pair, votes.label)
    score = classes @ (np.arange(votes.bins) / (votes.bins - 1))
    score = np.where(low == high, low / (votes.bins - 1), score)
    return np.where(count > 0, score, np.nan)


def dawid_skene(votes: Votes) -> Floats:
    """Class probabilities (pairs, bins) by expectation and maximisation (Dawid and Skene 1979, section 4).

    Starts from the shares of the votes; ends when no probability moves by 1e-7, or after 100 rounds. The product of
    an annotator's votes is summed in log space, where it can't underflow. Nothing is drawn by chance.
    """
    cell = votes.annotator * votes.bins + votes.label  # who said what
    classes = np.zeros((votes.pairs, votes.bins))
    np.add.at(classes, (votes.pair, votes.label), 1.0)
    count = np.maximum(classes.sum(axis=1, keepdims=True), 1.0)
    classes /= count
    for _ in range(_ROUNDS):
        prior = classes.sum(axis=0) / max(classes.sum(), 1.0)
        log_said = _log_confusion(votes, cell, classes)
        log_class = np.empty_like(classes)
        for true in range(votes.bins):
            log_class[:, true] = np.bincount(votes.pair, weights=log_said[true, cell], minlength=votes.pairs)
        log_class += np.log(np.maximum(prior, _LEAST))
        log_class -= log_class.max(axis=1, keepdims=True)
        before, classes = classes, np.exp(log_class)
        classes /= classes.sum(axis=1, keepdims=True)
        if np.max(np.abs(classes - before), initial=0.0) < 1e-7:
            break
    return classes


def _log_confusion(votes: Votes, cell: Ints, classes: Floats) -> Floats:
    """log p(annotator says label | true class), (bins, annotators * bins)."""
    size = votes.annotators * votes.bins
    said = np.empty((votes.bins, size))
    for true in range(votes.bins):
        said[true] = np.bincount(cell, weights=classes[votes.pair, true], minlength=size)
    each = np.maximum(said, _LEAST).reshape(votes.bins, votes.annotators, votes.bins)
    return np.asarray(np.log(each / each.sum(axis=2, keepdims=True))).reshape(votes.bins, size)


def mace(votes: Votes) -> Floats:
    """Class probabilities (pairs, bins) by MACE (Hovy et al. 2013, "Learning Whom to Trust with MACE").

    An annotator either knows the class or spams by a habit of its own; both shares are found by expectation and
    maximisation, counts smoothed by .1 over the classes. We start from equal trust and even habits where the paper
    draws restarts by chance, so nothing depends on a seed; products are summed in log space.
    """
    return _classes(votes, *trust(votes))


def trust(votes: Votes) -> tuple[Floats, Floats]:
    """MACE's annotators: how often each knows the class, (annotators,), and its habit, (annotators, bins)."""
    knows, habit = np.full(votes.annotators, 0.5), np.full((votes.annotators, votes.bins), 1 / votes.bins)
    smooth = 0.1 / votes.bins
    cell = votes.annotator * votes.bins + votes.label
    for _ in range(_ROUNDS):
        classes = _classes(votes, knows, habit)
        spam = (1 - knows[votes.annotator]) * habit[votes.annotator, votes.label]
        # Of the votes that name the true class, the part that the annotator knew rather than hit by its habit.
        known = classes[votes.pair, votes.label] * knows[votes.annotator] / (spam + knows[votes.annotator])
        knew = np.bincount(votes.annotator, weights=known, minlength=votes.annotators)
        spammed = np.bincount(cell, weights=1 - known, minlength=habit.size).reshape(habit.shape)
        habit = (spammed + smooth) / (spammed.sum(axis=1, keepdims=True) + votes.bins * smooth)
        before, knows = knows, (knew + smooth) / (knew + spammed.sum(axis=1) + 2 * smooth)
        if np.max(np.abs(knows - before), initial=0.0) < 1e-7:
            break
    return knows, habit


def _classes(votes: Votes, knows: Floats, habit: Floats) -> Floats:
    """Class probabilities by MACE's story: each vote is the class, or by habit."""
    spam = (1 - knows[votes.annotator]) * habit[votes.annotator, votes.label]
    log_class = np.zeros((votes.pairs, votes.bins))
    log_class += np.bincount(votes.pair, weights=np.log(spam), minlength=votes.pairs)[:, None]
    np.add.at(log_class, (votes.pair, votes.label), np.log(1 + knows[votes.annotator] / spam))
    log_class -= log_class.max(axis=1, keepdims=True)
    classes = np.exp(log_class)
    return np.asarray(classes / classes.sum(axis=1, keepdims=True))
