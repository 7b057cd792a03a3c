"""What the gates cost that look at every text: on made-up pairs, in processor seconds.

    python benchmarks/gates.py --pairs 100000

Texts of 5 to 60 words of a Zipf vocabulary; one pair in a hundred of the test split is a training pair but for a word.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from stscurate.publishing.gate_splits import across_splits
from stscurate.publishing.gate_texts import scan
from stscurate.publishing.parts import InMemory


def made(pairs: int, seed: int) -> pa.Table:
    """The pairs, of the columns that the gates read."""
    draw = np.random.default_rng(seed)
    words = np.array([f"w{rank}" for rank in range(50_000)])
    shares = 1 / np.arange(1, len(words) + 1)
    chosen = words[draw.choice(len(words), size=pairs * 2 * 33, p=shares / shares.sum())]
    lengths = draw.integers(5, 61, size=pairs * 2)
    ends = np.cumsum(lengths) % (len(chosen) - 61)
    texts = [" ".join(chosen[end : end + length]) for end, length in zip(ends, lengths, strict=True)]
    split = np.where(np.arange(pairs) % 10 == 9, "test", "train")
    for row in range(109, pairs, 1_000):
        texts[2 * row] = texts[2 * (row - 1)] + " w1"
    return pa.table(
        {
            "text1": texts[::2], "text2": texts[1::2], "split": split, "row": np.arange(pairs),
            "pair_id": [f"p{row}" for row in range(pairs)], "component": pa.nulls(pairs, pa.string()),
        }
    )  # fmt: skip


def main() -> None:
    """Print a line a gate: processor seconds, findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    table = InMemory(made(arguments.pairs, arguments.seed))
    with TemporaryDirectory() as scratch:
        gates: dict[str, Callable[[], Any]] = {
            "empty, secret, personal, size": lambda: scan(table, None),
            "leak, duplicate, near": lambda: across_splits(table, None, Path(scratch)),
        }
        for name, gate in gates.items():
            began = time.process_time()
            found = sum(one.count for one in gate().values())
            print(f"{name}: {time.process_time() - began:.1f} s, {found:,} findings", flush=True)


if __name__ == "__main__":
    main()
