"""Means: of one model over the sets of a collection, and over the models of several seeds on one set."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stscurate.evaluation.measuring import Measured
from stscurate.evaluation.results import Mean
from stscurate.methods.resampling import interval


def over_sets(measured: Sequence[Measured], collections: Mapping[str, str]) -> Iterator[Mean]:
    """Of each model, the plain mean over the sets of each collection (set's name -> collection's name).

    The interval is that of means of resamples: the sets are drawn anew independently of each other.
    """
    groups: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for one in measured:
        if one.result.set in collections:
            groups[one.result.model, collections[one.result.set]].append(one)
    for (model, collection), found in groups.items():
        low, high = interval(np.mean([one.resampled for one in found], axis=0))
        yield Mean(
            model=model,
            set=collection,
            over="sets",
            count=len(found),
            spearman=_mean([one.result.spearman for one in found]),
            low=low,
            high=high,
            deviation=None,
            spearman_clean=_mean([one.result.spearman_clean for one in found]),
            deviation_clean=None,
        )


def over_models(groups: Mapping[str, Sequence[int]], by_model: Sequence[Sequence[Measured]]) -> Iterator[Mean]:
    """Of each group of models (name -> their places in by_model), mean and standard deviation on each set.

    by_model: what was measured of each model, on the same sets in the same order.
    """
    for name, places in groups.items():
        for found in zip(*(by_model[place] for place in places), strict=True):
            values = [one.result.spearman for one in found]
            clean = [one.result.spearman_clean for one in found]
            yield Mean(
                model=name,
                set=found[0].result.set,
                over="models",
                count=len(found),
                spearman=_mean(values),
                low=None,
                high=None,
                deviation=_deviation(values),
                spearman_clean=_mean(clean),
                deviation_clean=_deviation(clean),
            )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean, where all have a value."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _deviation(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.std(known, ddof=1)) if len(known) == len(values) > 1 else None
