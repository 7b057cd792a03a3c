"""Two models on the same rows: is the difference more than which rows happened to be drawn?"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stscurate.evaluation.gold import FEWEST
from stscurate.evaluation.measuring import Options, statistics_of
from stscurate.evaluation.results import Comparison
from stscurate.evaluation.scoring import Scored
from stscurate.methods.resampling import bootstrap, interval, two_sided_p, value


def compare(first: Scored, second: Scored, options: Options) -> Iterator[Comparison]:
    """The set as a whole and each part, over all rows, and where training texts are known over the leak-clean ones.

    Paired bootstrap (Efron and Tibshirani, 1993; Koehn, EMNLP 2004): rows are drawn anew, both models are measured
    on the same draw, and the differences give interval and p. Parts by tokens go by the first model's.
    """
    everything = np.ones(len(first.gold.pairs), dtype=bool)
    known = [scored.clean for scored in (first, second) if scored.clean is not None]
    clean = np.logical_and.reduce(known) if known else None
    for kind, part, rows in [("set", "", everything), *options.parts(first)]:
        yield from _over(first, second, kind, part, rows, options, clean=False)
        if clean is not None:
            yield from _over(first, second, kind, part, rows & clean, options, clean=True)


def _over(
    first: Scored,
    second: Scored,
    kind: str,
    part: str,
    rows: NDArray[np.bool_],
    options: Options,
    *,
    clean: bool,
) -> Iterator[Comparison]:
    gold, n = first.gold.gold[rows], int(rows.sum())
    names = ["spearman", "average_precision"] if first.gold.binary else ["spearman"]
    if n < FEWEST:
        for name in names:
            nothing: dict[str, None] = dict.fromkeys(("first_value", "second_value", "difference", "low", "high", "p"))
            yield Comparison(
                first.model, second.model, first.gold.name, kind, part, name, clean=clean, rows=n, **nothing
            )
        return
    sides = [statistics_of(gold, scored.similarities[rows], binary=first.gold.binary) for scored in (first, second)]
    for name in names:
        statistics = [side[name] for side in sides]
        drawn = bootstrap(statistics, n, resamples=options.resamples, seed=options.seed)
        differences = drawn[1] - drawn[0]
        low, high = interval(differences)
        one, two = (value(statistic, n) for statistic in statistics)
        yield Comparison(
            first=first.model,
            second=second.model,
            set=first.gold.name,
            kind=kind,
            part=part,
            metric=name,
            clean=clean,
            rows=n,
            first_value=one,
            second_value=two,
            difference=two - one,
            low=low,
            high=high,
            p=two_sided_p(differences),
        )
