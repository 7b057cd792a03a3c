"""Time 1,000 bootstrap resamples of Spearman: a loop, all ranked at once, and as evaluate takes them, without sorting.

    OMP_NUM_THREADS=1 python benchmarks/bootstrap.py [--rows 1379 3000 20000]

Gold on 26 values; processor seconds, least of three in turn. Prints Markdown, and fails where the three don't
give the same interval.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from stscurate.methods.correlation import bootstrap_interval

Floats = NDArray[np.float64]
RESAMPLES = 1000


def loop(x: Floats, y: Floats) -> Floats:
    """scipy's spearmanr, a resample at a time."""
    generator = np.random.default_rng(0)
    draws = (generator.integers(len(x), size=len(x)) for _ in range(RESAMPLES))
    return np.array(np.percentile([spearmanr(x[draw], y[draw]).statistic for draw in draws], [2.5, 97.5]))


def ranked(x: Floats, y: Floats) -> Floats:
    """scipy's rankdata of a hundred resamples at a time."""
    generator = np.random.default_rng(0)
    found = []
    for _ in range(RESAMPLES // 100):
        draws = generator.integers(len(x), size=(100, len(x)))
        sides = [rankdata(side[draws], axis=1) - (len(x) + 1) / 2 for side in (x, y)]
        squares = [np.einsum("ij,ij->i", side, side) for side in sides]
        found.append(np.einsum("ij,ij->i", *sides) / np.sqrt(squares[0] * squares[1]))
    return np.array(np.percentile(np.concatenate(found), [2.5, 97.5]))


def ours(x: Floats, y: Floats) -> Floats:
    """As evaluate does."""
    return np.array(bootstrap_interval(x, y, resamples=RESAMPLES, seed=0))


def main() -> None:
    """Time, compare, print."""
    parser = argparse.ArgumentParser(description="Time the bootstrap of Spearman.")
    parser.add_argument("--rows", type=int, nargs="+", default=[1379, 3000, 20000])
    ways: dict[str, Callable[[Floats, Floats], Floats]] = {"loop": loop, "ranked at once": ranked, "ours": ours}
    print(f"| rows | {' | '.join(ways)} |\n|{'---:|' * (len(ways) + 1)}")
    for rows in parser.parse_args().rows:
        noise = np.random.default_rng(rows)
        gold = noise.integers(0, 26, rows) / 5
        cosines = gold + noise.normal(size=rows) * 2
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        intervals = []
        for _ in range(3):
            for name, way in ways.items():
                begun = time.process_time()
                intervals.append(way(cosines, gold))
                seconds[name].append(time.process_time() - begun)
        np.testing.assert_allclose(intervals, [intervals[0]] * len(intervals), atol=1e-12)
        print(f"| {rows:,} | {' | '.join(f'{min(taken):.2f} s' for taken in seconds.values())} |", flush=True)


if __name__ == "__main__":
    main()
