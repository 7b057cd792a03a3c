"""The most similar of many texts that aren't the same thing, exact, in blocks of bounded memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration import Method, Texts

_BLOCK = 4_000_000  # similarities held at once

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Nearest:
    """Of m anchors the nearest allowed candidates: `places`, (m, k), best first, -1 where there are no more.

    similarity: (m, k), -inf there. above: (m,) how many candidates lay above the anchor's ceiling.
    """

    places: Ints
    similarity: NDArray[np.float32]
    above: Ints


def nearest_allowed(
    method: Method,
    anchors: Texts,
    candidates: Texts,
    *,
    anchor_groups: Ints,
    candidate_groups: Ints,
    ceilings: Floats,
    first: int = 1,
    last: int,
) -> Nearest:
    """The `first` to `last` nearest of the n candidates, for each of m anchors; k = last - first + 1.

    Those of the anchor's own group (m,), (n,) are never taken, nor those whose similarity is above its ceiling, (m,).
    All others are ranked, however deep: a narrow ceiling costs no anchor its negatives. Equal similarities go by place.
    """
    m, n = len(anchors), len(candidates)
    depth = min(last, n)
    members = _members(candidate_groups)
    places = np.full((m, last - first + 1), -1, np.int64)
    similarity = np.full(places.shape, -np.inf, np.float32)
    above = np.zeros(m, np.int64)
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, m, step):
        rows = slice(start, min(start + step, m))
        block = method.block(anchors[rows], candidates)
        for row, group in enumerate(anchor_groups[rows].tolist()):
            block[row, members.get(group, [])] = -np.inf
        too_near = block > ceilings[rows, None].astype(np.float32)
        above[rows] = too_near.sum(axis=1)
        block[too_near] = -np.inf
        best, values = _top(block, depth)
        kept = slice(0, max(depth - first + 1, 0))
        places[rows, kept] = np.where(np.isfinite(values), best, -1)[:, first - 1 :]
        similarity[rows, kept] = values[:, first - 1 :]
    return Nearest(places, similarity, above)


def _top(block: NDArray[np.float32], depth: int) -> tuple[Ints, NDArray[np.float32]]:
    """The columns with the highest values of each row, highest first, and these."""
    best = np.argpartition(-block, depth - 1, axis=1)[:, :depth]
    best.sort(axis=1)
    values = np.take_along_axis(block, best, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1), np.take_along_axis(values, order, axis=1)


def _members(groups: Ints) -> dict[int, Ints]:
    """Of each group the places of its members."""
    order = np.argsort(groups, kind="stable")
    values, starts = np.unique(groups[order], return_index=True)
    return dict(zip(values.tolist(), np.split(order, starts[1:]), strict=True))
