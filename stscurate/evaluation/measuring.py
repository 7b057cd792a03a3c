"""The numbers of a model on a set, over all rows, over those that are leak-clean, and over each part."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stscurate.evaluation.gold import FEWEST
from stscurate.evaluation.metrics import bands
from stscurate.evaluation.metrics.binary import Thresholds, binary_numbers
from stscurate.evaluation.results import Numbers, Result
from stscurate.evaluation.scoring import Scored
from stscurate.methods.correlation import pearson
from stscurate.methods.resampling import AveragePrecision, Spearman, Statistic, bootstrap, interval, value

Rows = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """How much is told: bootstrap resamples, and which parts of each set besides the whole."""

    resamples: int = 1000
    seed: int = 0
    subsets: bool = False
    bands: bool = False

    def parts(self, scored: Scored) -> Iterator[tuple[str, str, Rows]]:
        """Kind, name and rows of each part that is asked for; a part without any row is left out."""
        kinds = {"subset": bands.subsets} if self.subsets else {}
        kinds |= {"tokens": bands.by_tokens, "word overlap": bands.by_overlap} if self.bands else {}
        for kind, find in kinds.items():
            for name, rows in find(scored):
                if rows.any():
                    yield kind, name, rows


@dataclass(frozen=True)
class Measured:
    """A result, and the Spearman of each bootstrap resample, over all rows and over the leak-clean ones."""

    result: Result
    resampled: Floats
    resampled_clean: Floats | None


def measure(scored: Scored, options: Options, chosen: Thresholds | None = None) -> Measured:
    """The whole set. chosen: thresholds from another set, for binary gold."""
    everything = np.ones(len(scored.gold.pairs), dtype=bool)
    return _measured(scored, "set", "", everything, options, chosen)


def measure_parts(scored: Scored, options: Options, chosen: Thresholds | None = None) -> list[Result]:
    """Each part of the set, as Options.parts."""
    return [_measured(scored, kind, name, rows, options, chosen).result for kind, name, rows in options.parts(scored)]


def statistics_of(gold: Floats, similarity: Floats, *, binary: bool) -> dict[str, Statistic]:
    """What has an interval: Spearman, and average precision where the set's gold is 0 and 1."""
    found: dict[str, Statistic] = {"spearman": Spearman(similarity, gold)}
    if binary:
        found["average_precision"] = AveragePrecision(gold, similarity)
    return found


def _measured(
    scored: Scored, kind: str, part: str, rows: Rows, options: Options, chosen: Thresholds | None
) -> Measured:
    full, resampled = _numbers(scored, rows, options, chosen)
    clean, resampled_clean = (
        (None, None) if scored.clean is None else _numbers(scored, rows & scored.clean, options, chosen)
    )
    whole = kind == "set"
    result = Result(
        model=scored.model,
        set=scored.gold.name,
        kind=kind,
        part=part,
        dropped=scored.gold.dropped if whole else {},
        conflicting=scored.gold.conflicting if whole else None,
        tokens_cut_share=scored.tokens_cut_share if whole else None,
        alignment=scored.alignment if whole else None,
        uniformity=scored.uniformity if whole else None,
        full=full,
        clean=clean,
        variant=scored.variant,
        words_unknown_share=scored.words_unknown_share if whole else None,
        texts_unknown=scored.texts_unknown if whole else None,
    )
    return Measured(result, resampled, resampled_clean)


def _numbers(scored: Scored, rows: Rows, options: Options, chosen: Thresholds | None) -> tuple[Numbers, Floats]:
    gold, similarity = scored.gold.gold[rows], scored.similarities[rows]
    n = len(gold)
    if n < FEWEST:
        return Numbers(rows=n), np.full(options.resamples, np.nan)
    statistics = statistics_of(gold, similarity, binary=scored.gold.binary)
    drawn = bootstrap(list(statistics.values()), n, resamples=options.resamples, seed=options.seed)
    low, high = interval(drawn[0])
    found = {
        "spearman": value(statistics["spearman"], n),
        "low": low,
        "high": high,
        "pearson": pearson(similarity, gold),
    }
    if scored.gold.binary:
        found["average_precision"] = value(statistics["average_precision"], n)
        found["average_precision_low"], found["average_precision_high"] = interval(drawn[1])
        found |= binary_numbers(gold, similarity, chosen)
    return Numbers(rows=n, **found), drawn[0]
