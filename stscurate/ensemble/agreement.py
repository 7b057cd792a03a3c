"""How far the annotators of a run agree, and what is odd about each: bias, order gap, length bias."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from stscurate.ensemble.factor import loadings
from stscurate.methods.agreement import intraclass_correlation, krippendorff_alpha
from stscurate.methods.correlation import spearman
from stscurate.methods.numbers import Floats, numbers_of, placed
from stscurate.methods.orders import order_gaps

_CLASSES = 6  # the nominal alpha takes numbers of 0..1 to this many classes


@dataclass(frozen=True)
class Agreement:
    """overall: coefficients over all annotators. annotators: a row each. couples: Spearman of each two."""

    overall: dict[str, float]
    annotators: list[dict[str, Any]]
    couples: list[dict[str, Any]]


def agreement(
    votes: pa.Table,
    *,
    lengths: Mapping[str, tuple[int, int]] | None = None,
    overlap: Mapping[str, float] | None = None,
    dear: Collection[str] = (),
    weights: Mapping[str, float] | None = None,
) -> Agreement:
    """Agreement of the annotators in a table of schema VOTES, their numbers placed as `aggregate` does without gold.

    overall: Krippendorff's alpha (interval, ordinal, and nominal over six classes), ICC(2,1) and ICC(3,1) with the
    number of pairs that all have voted on.

    Of an annotator: `pairs` it has a number for, `failed` votes, `bias` (the mean of its numbers minus those of the
    others on the same pairs), `leave_one_out` (Spearman with the mean of the others), `loading` (correlation with what
    all have in common, by `overlap` and `dear` as in `aggregate`; of three annotators or more), where `weights` are
    given its `weight`, `order_gap` (mean |ab - ba| in parts of its scale; None where it wasn't asked in both orders),
    and, with lengths (pair_id -> characters of the two texts), `length_bias`: Spearman of its number minus the others'
    mean with |log(length1 / length2)|, positive where it rates texts of unlike length as more similar than the others
    do. nan where a number can't be told.
    """
    numbers = numbers_of(votes)
    value = placed(numbers, dear=dear)
    table = numbers.matrix(value)
    alphas = {
        f"alpha_{level}": krippendorff_alpha(numbers.pair, value, level=level) for level in ("interval", "ordinal")
    }
    alphas["alpha_nominal"] = krippendorff_alpha(numbers.pair, np.rint(value * (_CLASSES - 1)), level="nominal")
    within = intraclass_correlation(table)
    overall = alphas | {"icc_agreement": within.agreement, "icc_consistency": within.consistency, "pairs": within.units}
    late = np.array([name in dear for name in numbers.names], dtype=np.bool_)
    common = None if overlap is None else np.array([overlap.get(pair_id, np.nan) for pair_id in numbers.pair_ids])
    loading = loadings(table, late, common)
    failed = _failed(votes)
    gaps: dict[str, list[float]] = defaultdict(list)
    for annotator, _, gap in order_gaps(votes):
        gaps[annotator].append(gap)
    unlike = _unlike(numbers.pair_ids, lengths)
    rows = []
    for number, name in enumerate(numbers.names):
        own, others = table[:, number], _others(table, number)
        both = np.isfinite(own) & np.isfinite(others)
        residual = own[both] - others[both]
        rows.append(
            {
                "annotator": name,
                "pairs": int(np.isfinite(own).sum()),
                "failed": failed.get(name, 0),
                "bias": float(residual.mean()) if residual.size else float("nan"),
                "leave_one_out": _spearman(own[both], others[both]),
                "loading": float(loading[number]) if len(loading) > 2 else float("nan"),
                **({"weight": weights[name]} if weights is not None else {}),
                "order_gap": float(np.mean(gaps[name])) if gaps[name] else None,
                "length_bias": _spearman(residual, unlike[both]),
            }
        )
    couples = [
        {"annotator1": numbers.names[a], "annotator2": numbers.names[b], "spearman": _couple(table[:, a], table[:, b])}
        for a, b in combinations(range(len(numbers.names)), 2)
    ]
    return Agreement(overall, rows, couples)


def _others(table: Floats, number: int) -> Floats:
    """The mean of the other annotators on each pair; nan where none has voted."""
    rest = np.delete(table, number, axis=1)
    count = np.isfinite(rest).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(rest, axis=1) / np.where(count > 0, count, np.nan))


def _couple(x: Floats, y: Floats) -> float:
    both = np.isfinite(x) & np.isfinite(y)
    return _spearman(x[both], y[both])


def _spearman(x: Floats, y: Floats) -> float:
    finite = np.isfinite(x) & np.isfinite(y)
    return spearman(x[finite], y[finite]) if finite.sum() > 2 else float("nan")


def _unlike(pair_ids: list[str], lengths: Mapping[str, tuple[int, int]] | None) -> Floats:
    """|log(length1 / length2)| of each pair, an empty text counting as one character; nan where it isn't known."""
    found = np.full(len(pair_ids), np.nan)
    for index, pair_id in enumerate(pair_ids):
        if lengths and pair_id in lengths:
            first, second = lengths[pair_id]
            found[index] = abs(np.log(max(first, 1) / max(second, 1)))
    return found


def _failed(votes: pa.Table) -> dict[str, int]:
    annotators = votes.filter(votes["raw"].is_null())["annotator"]
    return {row["values"]: row["counts"] for row in annotators.value_counts().to_pylist()}
