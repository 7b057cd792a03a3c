"""Which gold may be wrong: it contradicts itself, or lies far from what other evidence lets expect."""

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.components import components

Floats = NDArray[np.float64]

_TO_DEVIATION = 1.4826  # the median absolute deviation of a normal distribution, times this, is its standard deviation


def expected_gold(gold: Floats, evidence: Floats, *, folds: int = 5, seed: int = 0) -> Floats:
    """What each column of the evidence lets expect of the gold, (n, k), by isotonic regression on the other folds.

    gold: (n,); evidence: (n, k), any scale that rises with the gold. No row's expectation knows its own gold, so a
    wrong label can't excuse itself (cross-fitting, as in confident learning, Northcutt et al. 2021, for classes).
    """
    from sklearn.isotonic import IsotonicRegression

    fold = np.random.default_rng(seed).permutation(len(gold)) % folds
    found = np.empty_like(evidence, dtype=np.float64)
    for part in range(folds):
        out = fold == part
        for column in range(evidence.shape[1]):
            curve = IsotonicRegression(out_of_bounds="clip").fit(evidence[~out, column], gold[~out])
            found[out, column] = curve.predict(evidence[out, column])
    return found


def stacked(expected: Floats, gold: Floats) -> Floats:
    """One expectation of all columns, (n,) of (n, k): their mean by the weights that come nearest to the gold.

    Weights are 0 at the least and 1 in all (stacked regressions, Breiman 1996): a witness that tells little counts for
    little. That all should find a gold wrong was tried, and lets a weak witness clear what a good one has found.
    """
    from scipy.optimize import nnls

    weights, _ = nnls(expected, gold)
    total = weights.sum()
    return np.asarray(expected @ (weights / total if total > 0 else np.full(len(weights), 1 / len(weights))))


def scaled_residual(gold: Floats, expected: Floats) -> Floats:
    """How far gold lies above what is expected, both (n,), in robust standard deviations; 0 where all is as expected.

    The deviation is from the median absolute one, which wrong gold hardly moves; where that is 0, the usual one.
    """
    residual = gold - expected
    spread = _TO_DEVIATION * float(np.median(np.abs(residual - np.median(residual)))) or float(residual.std())
    return residual / spread if spread > 0 else np.zeros_like(residual)


def conflicts(keys: Sequence[Hashable], gold: Floats, *, gap: float) -> dict[int, int]:
    """Rows of one key whose gold differs by more than `gap`: each with the row of its key that differs most."""
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        rows[key].append(row)
    found = {}
    for group in rows.values():
        for row in group:
            other = max(group, key=lambda each: (abs(gold[each] - gold[row]), -each))
            if abs(gold[other] - gold[row]) > gap:
                found[row] = other
    return found


def broken_chains(texts: Sequence[tuple[Hashable, Hashable]], gold: Floats) -> dict[int, int]:
    """Pairs of gold 0 whose two texts hang together by pairs of gold 1: each with the length of the shortest chain.

    If a means the same as b, and b the same as c, then a and c can't be different: one of these labels is wrong.
    """
    index: dict[Hashable, int] = {}
    ends = [(index.setdefault(one, len(index)), index.setdefault(two, len(index))) for one, two in texts]
    same = [pair for pair, value in zip(ends, gold, strict=True) if value == 1]
    part = components(len(index), same)
    near: dict[int, set[int]] = defaultdict(set)
    for one, two in same:
        near[one].add(two)
        near[two].add(one)
    return {
        row: _distance(near, one, two)
        for row, (one, two) in enumerate(ends)
        if gold[row] == 0 and one != two and part[one] == part[two]
    }


def _distance(near: dict[int, set[int]], start: int, end: int) -> int:
    """Edges of the shortest way, breadth first; there is one."""
    seen, edge, steps = {start}, {start}, 0
    while end not in seen:
        edge = {other for one in edge for other in near[one]} - seen
        seen |= edge
        steps += 1
    return steps
