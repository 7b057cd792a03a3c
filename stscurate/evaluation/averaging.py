"""Means: of one model over the sets of a collection, and over the models of several seeds on one set or task."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stscurate.evaluation.measuring import Measured
from stscurate.evaluation.results import Mean, TaskNumber
from stscurate.methods.resampling import interval

_OVER_MODELS = ("spearman", "average_precision", "f1", "accuracy", "f1_transferred", "accuracy_transferred")


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
            kind="set",
            metric="spearman",
            over="sets",
            count=len(found),
            value=_mean([one.result.spearman for one in found]),
            low=low,
            high=high,
            deviation=None,
            value_clean=_mean([one.result.spearman_clean for one in found]),
            deviation_clean=None,
        )


def over_models(
    groups: Mapping[str, Sequence[int]], by_model: Sequence[Sequence[Measured | TaskNumber]]
) -> Iterator[Mean]:
    """Of each group of models (name -> their places in by_model), mean and standard deviation of each number.

    by_model: what was measured of each model, on the same sets and tasks in the same order.
    """
    for name, places in groups.items():
        for found in zip(
            *([number for one in by_model[place] for number in _numbers(one)] for place in places), strict=True
        ):
            values, clean = [value for *_, value, _ in found], [value for *_, value in found]
            gold, kind, metric, *_ = found[0]
            yield Mean(
                model=name,
                set=gold,
                kind=kind,
                metric=metric,
                over="models",
                count=len(found),
                value=_mean(values),
                low=None,
                high=None,
                deviation=_deviation(values),
                value_clean=_mean(clean),
                deviation_clean=_deviation(clean),
            )


def _numbers(one: Measured | TaskNumber) -> list[tuple[str, str, str, float | None, float | None]]:
    """Set, kind, metric, value and leak-clean value of each number that applies."""
    if isinstance(one, TaskNumber):
        return [(one.set, one.kind, one.metric, one.value, one.value_clean)]
    full, clean = one.result.full, one.result.clean
    return [
        (one.result.set, "set", metric, getattr(full, metric), getattr(clean, metric, None))
        for metric in _OVER_MODELS
        if getattr(full, metric) is not None
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean, where all have a value."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _deviation(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.std(known, ddof=1)) if len(known) == len(values) > 1 else None
