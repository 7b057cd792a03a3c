"""What a similarity means: the probability that two texts are relevant to each other, given it and both lengths."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KINDS = ("share", "similarity", "similarity and lengths")


@dataclass(frozen=True)
class RelevanceCurve:
    """A logistic curve over x = (1, similarity, log2 length of the first text, log2 of the second): P = 1/(1+e^-wx).

    Lengths are in tokens, 1 or more. A reranker's number may stand for the similarity: the fit then says what its
    numbers mean here, which its own sigmoid can't know (Platt scaling, with lengths).
    """

    weights: tuple[float, float, float, float]

    def probability(self, similarity: Floats, length1: Ints, length2: Ints) -> Floats:
        """Of n pairs, (n,) each: within 0 and 1."""
        return _sigmoid(_inputs(similarity, length1, length2) @ np.array(self.weights))

    def similarity_at(self, probability: float, length1: float, length2: float) -> float:
        """The similarity at which texts of these lengths are relevant with that probability; nan where none is."""
        bias, slope, *by_length = self.weights
        if slope <= 0:
            return float("nan")
        wanted = float(np.log(probability / (1 - probability)))
        return float((wanted - bias - np.dot(by_length, np.log2([length1, length2]))) / slope)


def fit_curve(
    similarity: Floats, length1: Ints, length2: Ints, relevance: Floats, *, with_lengths: bool = True
) -> RelevanceCurve:
    """Fit to n pairs, (n,) each; relevance: 0 to 1, a grade counting as so much of either class.

    Penalised maximum likelihood: a standard normal prior on the weights of standardised inputs, so that classes that
    don't overlap give a finite curve. Without lengths their weights are 0.
    """
    from sklearn.linear_model import LogisticRegression

    inputs = _inputs(similarity, length1, length2)[:, 1 : 4 if with_lengths else 2]
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)  # equal lengths have a spread of rounding
    scaled = (inputs - mean) / spread
    n = len(relevance)
    model = LogisticRegression(C=1.0, max_iter=1000, tol=1e-8).fit(
        np.vstack([scaled, scaled]),
        np.repeat([1, 0], n),
        sample_weight=np.concatenate([relevance, 1 - relevance]),
    )
    found = np.zeros(4)
    found[1 : 1 + inputs.shape[1]] = model.coef_[0] / spread
    found[0] = model.intercept_[0] - float(np.dot(model.coef_[0], mean / spread))
    bias, slope, first, second = found.tolist()
    return RelevanceCurve((bias, slope, first, second))


def resampled_curves(
    similarity: Floats,
    length1: Ints,
    length2: Ints,
    relevance: Floats,
    groups: Sequence[object],
    *,
    resamples: int = 200,
    seed: int = 0,
) -> list[RelevanceCurve]:
    """Curves of bootstrap samples of whole groups (the pairs of one query hang together), for intervals."""
    names = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    of_row = np.array([names[group] for group in groups])
    rows_of = [np.flatnonzero(of_row == place) for place in range(len(names))]
    generator = np.random.default_rng(seed)
    curves: list[RelevanceCurve] = []
    while len(curves) < resamples:
        drawn = np.concatenate([rows_of[place] for place in generator.integers(len(names), size=len(names))])
        if 0 < relevance[drawn].sum() < len(drawn):
            curves.append(fit_curve(similarity[drawn], length1[drawn], length2[drawn], relevance[drawn]))
    return curves


def cross_validated(
    similarity: Floats,
    length1: Ints,
    length2: Ints,
    relevance: Floats,
    groups: Sequence[object],
    *,
    folds: int = 5,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """Log loss and Brier score of each of KINDS on folds that it wasn't fitted to; no group stands in two folds."""
    names = list(dict.fromkeys(groups))
    fold_of = dict(zip(names, np.random.default_rng(seed).permutation(len(names)) % folds, strict=True))
    fold = np.array([fold_of[group] for group in groups])
    found = {kind: np.zeros(len(relevance)) for kind in KINDS}
    for part in np.unique(fold):
        out, into = fold == part, fold != part
        rest = (similarity[into], length1[into], length2[into], relevance[into])
        found["share"][out] = rest[3].mean()
        for kind in KINDS[1:]:
            curve = fit_curve(*rest, with_lengths=kind == KINDS[2])
            found[kind][out] = curve.probability(similarity[out], length1[out], length2[out])
    return {kind: _losses(values, relevance) for kind, values in found.items()}


def _losses(probability: Floats, relevance: Floats) -> dict[str, float]:
    safe = np.clip(probability, 1e-12, 1 - 1e-12)
    log_loss = -(relevance * np.log(safe) + (1 - relevance) * np.log(1 - safe)).mean()
    return {"log_loss": float(log_loss), "brier": float(((probability - relevance) ** 2).mean())}


def _inputs(similarity: Floats, length1: Ints, length2: Ints) -> Floats:
    lengths = [np.log2(np.maximum(length, 1)) for length in (length1, length2)]
    return np.column_stack([np.ones(len(similarity)), similarity, *lengths])


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -values)))
