"""What length does to cosines: tables by length, false positives of one threshold, thresholds of each band, hubs."""

from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.correlation import spearman
from stscurate.methods.cosine_counts import DRAWN, STEPS, Counts, Distribution, count_by_bin, dkw_bound, draw_between
from stscurate.methods.cosines import length_bins, moments_by_bin, spread_table
from stscurate.methods.hubs import k_occurrence, skewness

SHARES = (0.05, 0.001)
_EDGE = 0.3  # share of the bins at either end that is called short, and long
_NEIGHBOURS = 10

Matrix = NDArray[np.float32]
Lengths = NDArray[np.int64]


@dataclass(frozen=True)
class Binned:
    """Unit rows in order of length: the bin of each, from the shortest on, with its least and greatest length."""

    vectors: Matrix
    bins: Lengths
    ends: list[tuple[int, int]]
    left_out: NDArray[np.int64]  # pairs of rows of one document

    @classmethod
    def of(cls, vectors: Matrix, lengths: Lengths, related: NDArray[np.int64]) -> "Binned":
        """Put in order by length. InputError where all have the same."""
        bins, ends = length_bins(lengths)
        if len(ends) < 2:
            raise InputError(
                f"All {len(lengths):,} texts have the same length ({ends[0][0]:,}): there is no size to be biased by."
            )
        order = np.argsort(bins, kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return cls(np.ascontiguousarray(vectors[order]), bins[order], ends, places[related])

    @property
    def sizes(self) -> list[int]:
        """Texts in each bin."""
        return [int(size) for size in np.bincount(self.bins, minlength=len(self.ends))]

    @property
    def names(self) -> list[str]:
        """Which third of the lengths each bin belongs to."""
        number = len(self.ends)
        edge = max(round(_EDGE * number), 1)
        return ["short" if at < edge else "long" if at >= number - edge else "middle" for at in range(number)]


def by_length(binned: Binned, *, exact_up_to: int, seed: int) -> dict[str, Any]:
    """The tables by bin, the bands, and one threshold's false positives in each, as plain data.

    Pairs of different documents are taken to be unrelated: those that reach a threshold are its false positives. The
    tables of mean and deviation are of all pairs, exactly. Distributions are exact up to so many texts; beyond, 1.84
    million pairs are drawn of each band, which leaves an error of .001 at 95 %.
    """
    mean, sd = spread_table(moments_by_bin(binned.vectors, binned.bins, len(binned.ends)))
    exact = len(binned.vectors) <= exact_up_to
    cells, whole, bands = _counted(binned) if exact else _drawn(binned, np.random.default_rng(seed))
    thresholds = [whole.threshold(share) for share in SHARES]
    rows = []
    for name, found in bands.items():
        row: dict[str, Any] = {"band": name, "pairs": found.pairs}
        for share, threshold in zip(SHARES, thresholds, strict=True):
            row |= {f"false positives at {share:.1%}": found.above(threshold)}
            row |= {f"threshold for {share:.1%}": found.threshold(share)}
        rows.append(row)
    return {
        "bins": [
            {"least": least, "greatest": greatest, "texts": size, "called": name}
            for (least, greatest), size, name in zip(binned.ends, binned.sizes, binned.names, strict=True)
        ],
        "mean": _rounded(mean),
        "sd": _rounded(sd),
        "thresholds": {f"{share:.1%}": value for share, value in zip(SHARES, thresholds, strict=True)},
        "false_positives": {
            f"{share:.1%}": _rounded(np.array([[Distribution(cell).above(value) for cell in row] for row in cells]))
            for share, value in zip(SHARES, thresholds, strict=True)
        },
        "bands": rows,
        "bound": whole.bound,
    }


def hubs(binned: Binned, lengths: Lengths, *, exact_up_to: int, seed: int) -> dict[str, Any]:
    """How often texts are among others' ten nearest, against their length (of the same order as the rows).

    Neighbours of the same document don't count. Beyond so many texts, that many are drawn and looked at alone.
    """
    vectors, related, number = binned.vectors, binned.left_out, len(binned.vectors)
    if number > exact_up_to:
        chosen = np.sort(np.random.default_rng(seed).choice(number, exact_up_to, replace=False))
        vectors, lengths = vectors[chosen], lengths[chosen]
        places = np.full(number, -1)
        places[chosen] = np.arange(len(chosen))
        related = places[related]
        related = related[(related >= 0).all(axis=1)]
    k = min(_NEIGHBOURS, len(vectors) - 1)
    times = k_occurrence(vectors, k, related)
    return {
        "texts": len(vectors),
        "neighbours": k,
        "correlation_with_length": spearman(times.astype(np.float64), lengths.astype(np.float64)),
        "skewness": skewness(times),
        "most": int(times.max()),
        "never": float(np.mean(times == 0)),
    }


def _counted(binned: Binned) -> tuple[Counts, Distribution, dict[str, Distribution]]:
    cells = count_by_bin(binned.vectors, binned.sizes, binned.left_out)
    weights = 2 - np.eye(len(cells), dtype=np.int64)  # two bins' cosines are counted one way
    bands: dict[str, Counts] = {}
    for one, other in combinations_with_replacement(range(len(cells)), 2):
        name = f"{binned.names[one]} with {binned.names[other]}"
        own = bands.setdefault(name, np.zeros(STEPS, dtype=np.int64))
        own += cells[one, other] * weights[one, other]
    whole = np.sum(list(bands.values()), axis=0)
    return cells, Distribution(whole), {name: Distribution(counts) for name, counts in bands.items()}


def _drawn(binned: Binned, rng: np.random.Generator) -> tuple[Counts, Distribution, dict[str, Distribution]]:
    ends = np.cumsum([0, *binned.sizes])
    parts = [binned.vectors[start:stop] for start, stop in pairwise(ends)]
    cells = np.zeros((len(parts), len(parts), STEPS), dtype=np.int64)
    members: dict[str, list[tuple[int, int]]] = {}
    for one, other in combinations_with_replacement(range(len(parts)), 2):
        members.setdefault(f"{binned.names[one]} with {binned.names[other]}", []).append((one, other))
    bands = {}
    for name, own in members.items():
        sizes = np.array([len(parts[a]) * (len(parts[b]) * 2 if a != b else len(parts[b]) - 1) for a, b in own], float)
        for (one, other), number in zip(own, rng.multinomial(DRAWN, sizes / sizes.sum()), strict=True):
            counts = draw_between(parts[one], None if one == other else parts[other], int(number), rng)
            cells[one, other] = cells[other, one] = counts
        bands[name] = Distribution(np.sum([cells[pair] for pair in own], axis=0), dkw_bound(DRAWN))
    whole = Distribution(draw_between(binned.vectors, None, DRAWN, rng), dkw_bound(DRAWN))
    return cells, whole, bands


def _rounded(table: NDArray[np.float64]) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(float(value), 6) for value in row] for row in table]
