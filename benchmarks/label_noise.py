"""How well `audit labels` finds gold that was made wrong, on pairs of STS-B train.

    python benchmarks/label_noise.py stsb-en-train.csv [--rows 2000] [--share 0.05]

Of the first rows a share is drawn, and each of these gets another one's gold that differs by 2 of 5 at least (seed 0).
Pairs are ranked by how far their gold lies from what is expected: by `audit labels` with one witness and with two
(cosines of all-MiniLM-L6-v2, shared letters), and by the plain difference of gold and cosine ranks. AP, and the share
of wrong ones among the first as many as there are; 95 % intervals from 1,000 bootstrap samples of the pairs. fp32.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from stscurate.methods.correlation import average_precision
from stscurate.methods.label_noise import expected_gold, scaled_residual, stacked
from stscurate.methods.overlap import overlap
from stscurate.methods.similarity import pair_cosines
from stscurate.services.encoder import Encoder


def main() -> None:
    """Spoil some gold, rank all, and print a table."""
    parser = argparse.ArgumentParser(description="Finding gold that was made wrong.")
    parser.add_argument("pairs", type=Path, help="stsb-en-train.csv")
    parser.add_argument("--rows", type=int, default=2000, help="pairs (default: %(default)s)")
    parser.add_argument("--share", type=float, default=0.05, help="made wrong (default: %(default)s)")
    options = parser.parse_args()
    with options.pairs.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[: options.rows]
    left, right = [row[0] for row in rows], [row[1] for row in rows]
    true = np.array([float(row[2]) / 5 for row in rows])
    gold, wrong = spoiled(true, options.share, np.random.default_rng(0))
    vectors = Encoder("all-MiniLM-L6-v2").encode(left + right)
    cosines = pair_cosines(vectors[: len(rows)], vectors[len(rows) :])
    shared = np.array([overlap(one, two) for one, two in zip(left, right, strict=True)])
    both = np.column_stack([cosines, shared])
    ways = {
        "plain difference of ranks": np.abs(rankdata(gold) - rankdata(cosines)),
        "one witness (cosine)": suspicion(gold, both[:, :1]),
        "two witnesses (cosine, shared letters)": suspicion(gold, both),
    }
    print(f"{len(rows):,} pairs, {int(wrong.sum())} made wrong\n")
    print("| ranked by | AP | 95 % interval | wrong among the first as many |\n|---|---:|---:|---:|")
    generator = np.random.default_rng(1)
    samples = generator.integers(len(rows), size=(1000, len(rows)))
    for name, found_wrong in ways.items():
        found = [average_precision(wrong[sample], found_wrong[sample]) for sample in samples]
        low, high = np.quantile(found, [0.025, 0.975])
        first = np.argsort(-found_wrong, kind="stable")[: int(wrong.sum())]
        ap = average_precision(wrong, found_wrong)
        print(f"| {name} | {ap:.3f} | {low:.3f} to {high:.3f} | {wrong[first].mean():.0%} |")


def suspicion(gold: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """How far each gold is from what the witnesses let expect, as `audit labels` has it."""
    return np.abs(scaled_residual(gold, stacked(expected_gold(gold, evidence), gold)))


def spoiled(true: np.ndarray, share: float, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Gold of which a share is wrong by .4 at least, and which rows are (1) and aren't (0)."""
    gold, wrong = true.copy(), np.zeros(len(true))
    for row in generator.permutation(len(true))[: round(share * len(true))]:
        others = true[np.abs(true - true[row]) >= 0.4]
        gold[row] = generator.choice(others)
        wrong[row] = 1.0
    return gold, wrong


if __name__ == "__main__":
    main()
