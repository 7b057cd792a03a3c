"""Numbers of a task with their intervals, over all units and the leak-clean ones, and of two models on the same."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stscurate.evaluation.measuring import Options
from stscurate.evaluation.results import Comparison, TaskNumber
from stscurate.methods.resampling import Ratio, bootstrap, interval, two_sided_p, value

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Told:
    """What a model makes of a task whose u units (texts, or groups of them) are drawn anew as a whole.

    sums: metric -> (u,) its sum over each unit's rows; sizes: (u,) rows; clean: (u,) the model wasn't trained on any
    text of the unit, None where nothing is known of that.
    """

    model: str
    kind: str
    set: str
    sums: Mapping[str, Floats]
    sizes: Floats
    clean: Rows | None


def measure_task(told: Told, options: Options) -> list[TaskNumber]:
    """Each metric with its 95 % bootstrap interval."""
    every = np.ones(len(told.sizes), dtype=bool)
    full = _numbers(told, every, options)
    clean = None if told.clean is None else _numbers(told, told.clean, options)
    found = []
    for place, metric in enumerate(told.sums):
        rows, number, low, high = full[place]
        rows_clean, number_clean, low_clean, high_clean = clean[place] if clean else (None, None, None, None)
        found.append(
            TaskNumber(
                model=told.model,
                kind=told.kind,
                set=told.set,
                metric=metric,
                rows=rows,
                value=number,
                low=low,
                high=high,
                rows_clean=rows_clean,
                value_clean=number_clean,
                low_clean=low_clean,
                high_clean=high_clean,
            )
        )
    return found


def compare_tasks(first: Told, second: Told, options: Options) -> Iterator[Comparison]:
    """The second less the first in each metric, on the same units and draws; over leak-clean ones too, if known."""
    known = [told.clean for told in (first, second) if told.clean is not None]
    for clean in [False, True] if known else [False]:
        units = np.logical_and.reduce(known) if clean else np.ones(len(first.sizes), dtype=bool)
        n, rows = int(units.sum()), int(first.sizes[units].sum())
        for metric in first.sums:
            about = (first.model, second.model, first.set, first.kind, "", metric)
            if not n:
                yield Comparison(*about, clean, rows, None, None, None, None, None, None)
                continue
            sides = [Ratio(told.sums[metric][units], told.sizes[units]) for told in (first, second)]
            drawn = bootstrap(sides, n, resamples=options.resamples, seed=options.seed)
            differences = drawn[1] - drawn[0]
            one, two = (value(side, n) for side in sides)
            yield Comparison(*about, clean, rows, one, two, two - one, *interval(differences), two_sided_p(differences))


def _numbers(told: Told, units: Rows, options: Options) -> list[tuple[int, float | None, float | None, float | None]]:
    """Of each metric: rows, value, and the ends of its interval."""
    n, rows = int(units.sum()), int(told.sizes[units].sum())
    if not n:
        return [(0, None, None, None)] * len(told.sums)
    statistics = [Ratio(sums[units], told.sizes[units]) for sums in told.sums.values()]
    drawn = bootstrap(statistics, n, resamples=options.resamples, seed=options.seed)
    return [(rows, value(one, n), *interval(draws)) for one, draws in zip(statistics, drawn, strict=True)]
