"""Which pairs a person should look at: those that the annotators are least sure of, or a fair sample for gold."""

from math import atanh, ceil, sqrt, tanh
from typing import Any

import numpy as np
import pyarrow as pa

from stscurate.errors import InputError
from stscurate.methods.doubt import own_doubt
from stscurate.methods.numbers import Floats, Ints, mid_ranks

_STRATA = 5  # of score, by two of doubt


def doubts(votes: pa.Table, scores: pa.Table) -> list[dict[str, Any]]:
    """How sure the annotators are of each pair of `scores`, in its order; a dict a pair.

    spread: of the annotators (0 of one alone). missing_mass, entropy, order_gap: as methods.doubt.OwnDoubt tells them.
    doubt: the sum of the four, half of the entropy.
    """
    rows = scores.select(["pair_id", "score", "spread"]).to_pylist()
    own = own_doubt(votes, [row["pair_id"] for row in rows])
    parts = {**own._asdict(), "doubt": own.total}
    for number, row in enumerate(rows):
        row["spread"] = row["spread"] or 0.0
        row |= {name: float(values[number]) for name, values in parts.items()}
        row["doubt"] += row["spread"]
    return list(rows)


def most_doubtful(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The `count` pairs of most doubt, the most doubtful first, equal ones in their order."""
    return sorted(rows, key=lambda row: -row["doubt"])[:count]


def gold_sample(rows: list[dict[str, Any]], count: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """`count` pairs for a person to label, spread evenly over score and doubt, drawn and shuffled by the seed.

    The pairs are cut into five strata of equal number by score and each into two by doubt; every stratum gives as
    many, those that have too few all they have. So rare, sure or doubtful kinds are in, and a curve can be fitted over
    the whole range; a mean over the sample isn't one over the run.
    """
    generator = np.random.default_rng(seed)
    score, doubt = np.array([row["score"] for row in rows]), np.array([row["doubt"] for row in rows])
    stratum: Ints = np.minimum((_places(score) * _STRATA).astype(np.int64), _STRATA - 1) * 2
    for part in range(0, 2 * _STRATA, 2):
        own = np.flatnonzero(stratum == part)
        stratum[own] += _places(doubt[own]) > 0.5
    queues = [list(generator.permutation(np.flatnonzero(stratum == part))) for part in range(2 * _STRATA)]
    taken: list[int] = []
    while len(taken) < min(count, len(rows)):
        for queue in queues:
            if queue and len(taken) < count:
                taken.append(int(queue.pop()))
    return [rows[index] for index in generator.permutation(taken)]


def labels_needed(rho: float, width: float) -> int:
    """How many labelled pairs give Spearman's rho a 95 % interval of a width, where it is about `rho`.

    By Fisher's z with the variance (1 + rho^2 / 2) / (n - 3) (Bonett and Wright 2000, eq. 3).
    InputError for a rho outside -1..1 or a width outside 0..2.
    """
    if not (-1 < rho < 1 and 0 < width < 2):
        raise InputError("Labels are reckoned for a rho between -1 and 1 and an interval between 0 and 2 wide.")
    low, high = 4, 10**9
    while low < high:
        n = (low + high) // 2
        half = 1.959964 * sqrt((1 + rho**2 / 2) / (n - 3))
        if tanh(atanh(rho) + half) - tanh(atanh(rho) - half) <= width:
            high = n
        else:
            low = n + 1
    return ceil(low)


def _places(values: Floats) -> Floats:
    return mid_ranks(values) if len(values) else values
