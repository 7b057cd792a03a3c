"""How far to trust each annotator when there is no gold: what they have in common, by one factor.

With standardised numbers x_a = l_a t + e_a, where the errors e_a are independent of each other, the correlations
between annotators are r_ab = l_a l_b: three annotators or more tell their loadings l_a, the correlation of each with
the truth t that nobody has seen (Spearman 1904; with three, l_a^2 = r_ab r_ac / r_bc). The best linear estimate of t
then weighs each by l_a / (1 - l_a^2) (Thurstone 1935, "regression" factor scores, up to a common factor).

Errors aren't independent where annotators are taken in by the same thing. What takes in machines of all kinds is how
much of their wording two texts share: the one that goes by it most agrees best with the others, and would weigh most.
So what each tells by that overlap is taken out of the correlations (partial correlations), where it is known: the
weights go by what annotators have in common beyond it. The numbers that are weighed stay whole. Some errors are shared
all the same, which calls for less even weights: there they are raised to the power of 1.5, chosen on STS-B dev and a
part of SICK (benchmarks/README.md).
"""

import numpy as np

from stscurate.methods.numbers import Flags, Floats

_ROUNDS = 500
_LEAST_PAIRS = 30
_SHARPER = 1.5
_LEAST_OF_PART = 5  # pairs a coefficient, from which a regression on the early annotators is trusted
_MOST = 0.95  # of l^2: without a bound one annotator that agrees a little too well would silence all others


def loadings(values: Floats, late: Flags | None = None, overlap: Floats | None = None) -> Floats:
    """Each annotator's loading, 0 at the least, from (pairs, annotators) numbers with nan where there is none.

    late: (annotators,) who was asked about a part that the others' votes chose, as in a cascade; see `_unselected`.
    overlap: (pairs,) how much of their wording the two texts share, see methods/overlap.py.

    Found by principal axes with the communalities iterated. Annotators that share fewer than three pairs, or of whom
    one is constant, count as uncorrelated. With fewer than three annotators, or on fewer than 30 pairs that two have
    voted on, the loadings can't be told: all 1.
    """
    annotators = values.shape[1]
    if annotators < 3 or np.sum(np.isfinite(values).sum(axis=1) > 1) < _LEAST_PAIRS:
        return np.ones(annotators)
    columns = values if overlap is None else np.column_stack([values, overlap])
    correlation = _correlations(columns)
    if late is not None and late.any() and not late.all():
        correlation = _unselected(columns, np.append(late, np.zeros(columns.shape[1] - annotators, bool)), correlation)
    if overlap is not None:
        correlation = _beyond_last(correlation)
    off = correlation - np.diag(np.diag(correlation))
    if not off.any():
        return np.zeros(annotators)
    common = np.clip(np.max(np.abs(off), axis=1), 0.01, _MOST)
    for _ in range(_ROUNDS):
        size, axes = np.linalg.eigh(off + np.diag(common))
        loading = axes[:, -1] * np.sqrt(max(size[-1], 0.0))
        loading *= 1.0 if loading.sum() >= 0 else -1.0
        before, common = common, np.clip(loading**2, 0.0, _MOST)
        if np.max(np.abs(common - before)) < 1e-9:
            break
    return np.asarray(np.clip(loading, 0.0, np.sqrt(_MOST)))


def factor_weights(values: Floats, late: Flags | None = None, overlap: Floats | None = None) -> Floats:
    """Weights of the annotators, sum 1; equal where none has anything in common with the others. See `loadings`."""
    loading = loadings(values, late, overlap)
    if not loading.any() or (loading == 1).all():
        return np.full(len(loading), 1 / max(len(loading), 1))
    weight = (loading / (1 - loading**2)) ** (1.0 if overlap is None else _SHARPER)
    return np.asarray(weight / weight.sum())


def _correlations(values: Floats) -> Floats:
    """Pearson's r of each two annotators over the pairs that both have seen; 0 where there are too few."""
    annotators = values.shape[1]
    found = np.eye(annotators)
    for a in range(annotators):
        for b in range(a):
            both = np.isfinite(values[:, a]) & np.isfinite(values[:, b])
            x, y = values[both, a], values[both, b]
            if len(x) > 2 and x.std() > 0 and y.std() > 0:
                found[a, b] = found[b, a] = np.corrcoef(x, y)[0, 1]
    return found


def _beyond_last(correlation: Floats) -> Floats:
    """Partial correlations of all but the last column, given that."""
    with_last = np.clip(correlation[:-1, -1], -0.999, 0.999)
    left = np.sqrt(1 - with_last**2)
    found = (correlation[:-1, :-1] - np.outer(with_last, with_last)) / np.outer(left, left)
    np.fill_diagonal(found, 1.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _unselected(values: Floats, late: Flags, correlation: Floats) -> Floats:
    """The correlations with those of late annotators as they would be had these seen all pairs (Lawley 1943).

    In the part that the early ones' disagreement chose everything correlates less, which would make the late look
    worse than they are. Their regression on the early ones, and what it leaves over, isn't changed by a choice that
    goes by the early ones alone; with the early ones' covariance over all pairs it gives the covariances over all.
    """
    early = values[:, ~late]
    whole = np.isfinite(early).all(axis=1)
    size = early.shape[1]
    if whole.sum() < 3:
        return correlation
    inner = np.atleast_2d(np.cov(early[whole].T, bias=True))
    slopes, rest = np.zeros((len(late), size)), np.full(values.shape, np.nan)
    slopes[~late] = np.eye(size)
    able = ~late
    for number in np.flatnonzero(late).tolist():
        both = whole & np.isfinite(values[:, number])
        if both.sum() < _LEAST_OF_PART * (size + 1):
            continue
        x, y = early[both] - early[both].mean(axis=0), values[both, number] - values[both, number].mean()
        slopes[number] = np.linalg.lstsq(x, y, rcond=None)[0]
        rest[both, number] = y - x @ slopes[number]
        able[number] = True
    covariance = slopes @ inner @ slopes.T
    for a in np.flatnonzero(late & able).tolist():
        for b in np.flatnonzero(late & able).tolist():
            both = np.isfinite(rest[:, a]) & np.isfinite(rest[:, b])
            covariance[a, b] += np.mean(rest[both, a] * rest[both, b]) if both.any() else 0.0
    scale = np.sqrt(np.diag(covariance))
    known = able & (scale > 0)
    found = correlation.copy()
    scale[~known] = 1.0
    found[np.ix_(known, known)] = (covariance / np.outer(scale, scale))[np.ix_(known, known)]
    return found
