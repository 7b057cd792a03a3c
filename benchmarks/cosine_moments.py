"""Mean and deviation of all cosines of n vectors, and their distribution, against the ways that take each pair.

    OMP_NUM_THREADS=1 python benchmarks/cosine_moments.py [--rows 7791] [--dimension 384] [--repeats 7] [--million]

Made-up unit rows with a common part, seed 0. Ours: `cosine_moments`, which brings the rows to unit length too. Blocks:
all cosines by matrix products of 1,024 rows, their sum and sum of squares. Loop: dot and two norms of each pair in
Python, timed on `--loop-rows` rows against all and multiplied up, since the whole would take minutes. The distribution:
counts of 20,000 steps over half of the matrix, against that half's products alone. In turn, medians; seconds of the
processor on one thread, of the clock on more. --million: also 1,000,000 rows, made block by block, and the memory that
they took. Printed as Markdown.
"""

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stscurate.audit.size_bias import cosine_moments
from stscurate.methods.cosine_counts import count_within
from stscurate.methods.cosines import Moments

BLOCK = 1_024
Rows = NDArray[np.float32]


def now() -> float:
    """Seconds: of the processor on one thread, which other work doesn't lengthen, of the clock on more."""
    return time.process_time() if os.environ.get("OMP_NUM_THREADS") == "1" else time.perf_counter()


def main() -> None:
    """Time each way in turn, and print a table."""
    parser = argparse.ArgumentParser(description="Moments and distribution of all cosines.")
    parser.add_argument("--rows", type=int, default=7_791, help="vectors (default: %(default)s)")
    parser.add_argument("--dimension", type=int, default=384, help="of each (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7, help="of each way, in turn (default: %(default)s)")
    parser.add_argument("--loop-rows", type=int, default=10, help="rows that the loop takes (default: %(default)s)")
    parser.add_argument("--million", action="store_true", help="also 1,000,000 rows made block by block")
    options = parser.parse_args()
    if options.million:  # first, so that its memory isn't what the others have left
        million(options.dimension)
    vectors = made(options.rows, options.dimension, np.random.default_rng(0))
    ways: dict[str, Callable[[], object]] = {
        "moments, ours": lambda: cosine_moments(vectors),
        "moments, blocks": lambda: by_blocks(vectors),
        "moments, loop": lambda: by_loop(vectors, options.loop_rows),
        "distribution, ours": lambda: count_within(vectors),
        "half of the matrix, products alone": lambda: half_of_the_products(vectors),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.repeats):
        for name, way in ways.items():
            begin = now()
            way()
            seconds[name].append(now() - begin)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    median["moments, loop"] *= options.rows / options.loop_rows
    print("| way | seconds | times ours |\n|---|---:|---:|")
    for name, value in median.items():
        ours = median["distribution, ours" if name.startswith(("dist", "half")) else "moments, ours"]
        print(f"| {name} | {value:.4g} | {value / ours:.3g} |")
    one, two = cosine_moments(vectors), by_blocks(vectors)
    print(f"\nmean differs by {abs(one[0] - two[0]):.1e}, deviation by {abs(one[1] - two[1]):.1e}")


def made(number: int, dimension: int, rng: np.random.Generator) -> Rows:
    """Unit rows with a common part."""
    drawn = rng.standard_normal((number, dimension), dtype=np.float32) + np.float32(0.5)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def by_blocks(vectors: Rows) -> tuple[float, float]:
    """Mean and deviation over every cosine, by matrix products of blocks of rows."""
    total = squares = 0.0
    for start in range(0, len(vectors), BLOCK):
        cosines = vectors[start : start + BLOCK] @ vectors.T
        total += float(cosines.sum(dtype=np.float64))
        flat = cosines.ravel()
        squares += float(flat @ flat)
    pairs = len(vectors) * (len(vectors) - 1)
    mean = (total - len(vectors)) / pairs
    return mean, ((squares - len(vectors)) / pairs - mean * mean) ** 0.5


def by_loop(vectors: Rows, number: int) -> list[float]:
    """The cosines of `number` rows with all others, a pair at a time."""
    norm = np.linalg.norm
    return [
        float(np.dot(vectors[i], vectors[j]) / (norm(vectors[i]) * norm(vectors[j])))
        for i in range(number)
        for j in range(len(vectors))
        if i != j
    ]


def half_of_the_products(vectors: Rows) -> None:
    """The floor: the products of each block with itself and all behind it, looked at by nobody."""
    for start in range(0, len(vectors), BLOCK):
        vectors[start : start + BLOCK] @ vectors[start:].T


def million(dimension: int) -> None:
    """A million rows, each block made, taken in and forgotten."""
    rng, moments, seconds = np.random.default_rng(0), Moments.empty(dimension), 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for start in range(0, 1_000_000, 8_192):
        block = made(min(8_192, 1_000_000 - start), dimension, rng)
        begin = now()
        moments.add(block)
        seconds += now() - begin
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    found = moments.within()
    print(f"1,000,000 rows: {seconds:.1f} s, {grown:.0f} MB more memory; mean {found.mean:.6f}\n")


if __name__ == "__main__":
    main()
