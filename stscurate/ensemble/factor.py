"""How far to trust each annotator when there is no gold: what they have in common, by one factor.

With standardised numbers x_a = l_a t + e_a, where the errors e_a are independent of each other, the correlations
between annotators are r_ab = l_a l_b: three annotators or more tell their loadings l_a, the correlation of each with
the truth t that nobody has seen (Spearman 1904; with three, l_a^2 = r_ab r_ac / r_bc). The best linear estimate of t
then weighs each by l_a / (1 - l_a^2) (Thurstone 1935, "regression" factor scores, up to a common factor).
"""

import numpy as np

from stscurate.ensemble.numbers import Floats

_ROUNDS = 500
_MOST = 0.95  # of l^2: without a bound one annotator that agrees a little too well would silence all others


def loadings(values: Floats) -> Floats:
    """Each annotator's loading, 0 at the least, from (pairs, annotators) numbers with nan where there is none.

    Found by principal axes with the communalities iterated. Annotators that share fewer than three pairs, or of whom
    one is constant, count as uncorrelated. With fewer than three annotators the loadings can't be told: all 1.
    """
    annotators = values.shape[1]
    if annotators < 3:
        return np.ones(annotators)
    correlation = _correlations(values)
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


def factor_weights(values: Floats) -> Floats:
    """Weights of the annotators, sum 1; equal where none has anything in common with the others."""
    loading = loadings(values)
    if len(loading) < 3 or not loading.any():
        return np.full(len(loading), 1 / max(len(loading), 1))
    weight = loading / (1 - loading**2)
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
