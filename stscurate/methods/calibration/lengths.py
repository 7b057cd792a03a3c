"""Bins of lengths on a logarithmic scale, each with texts enough."""

import numpy as np

from stscurate.methods.calibration.base import Floats, Ints

LEAST = 50  # texts in a bin: the mean cosine of one text with them has a standard error of a seventh of their spread


def log_lengths(lengths: Ints) -> Floats:
    """Base 2: a step of 1 is a doubling."""
    return np.log2(np.maximum(lengths, 1).astype(np.float64))


def length_edges(lengths: Ints, least: int = LEAST) -> Floats:
    """Lower ends, rising, of half-octave bins that hold `least` texts or more each; the first is 0.

    From the longest down, since they are the fewest: a bin takes in the next shorter half octave until it has enough,
    and what is left over at the short end joins the last one.
    """
    steps = np.floor(2 * log_lengths(lengths)).astype(np.int64)
    values, counts = np.unique(steps, return_counts=True)
    edges: list[int] = []
    held = 0
    for value, count in zip(values[::-1].tolist(), counts[::-1].tolist(), strict=True):
        held += count
        if held >= least:
            edges.append(value)
            held = 0
    if not edges or held:
        edges[-1:] = [int(values[0])]
    edges[-1] = 0
    return np.exp2(np.array(edges[::-1], dtype=np.float64) / 2) * (np.array(edges[::-1]) > 0)


def bin_of(lengths: Ints, edges: Floats) -> Ints:
    """Each length's bin."""
    return np.asarray(np.searchsorted(edges, np.maximum(lengths, 1), side="right") - 1, dtype=np.int64)
