"""How much of STS-B's test set stands in its training set, verbatim, normalised, and nearly.

python benchmarks/leaks_stsb.py FOLDER    with stsb-en-train.csv, stsb-en-dev.csv and stsb-en-test.csv
"""

import argparse
import time
from collections import Counter
from pathlib import Path

from stscurate.audit import find_leaks, read_splits

_NEAR = 0.8


def main() -> None:
    """Print the counts of each split against the others as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="CSV files without a header: sentence1, sentence2, score 0-5")
    folder = parser.parse_args().folder
    files = [f"{name}={folder / f'stsb-en-{name}.csv'}" for name in ("train", "dev", "test")]
    splits = read_splits(files, columns="sentence1,sentence2,score", scale="0-5")
    began = time.perf_counter()
    found = find_leaks(splits, near=_NEAR)
    seconds = time.perf_counter() - began
    verbatim: Counter[tuple[str, str]] = Counter()
    for one, rows in splits.items():
        for other in splits.keys() - {one}:
            there = {text for row in splits[other] for text in row.texts.values()}
            verbatim[one, other] = sum(text in there for row in rows for text in row.texts.values())
    counts = [
        {**count, "verbatim texts": verbatim[count["split"], count["leaks into"]], "share": f"{count['share']:.1%}"}
        for count in found.counts
    ]
    print(f"| {' | '.join(counts[0])} |\n|{'---|' * len(counts[0])}")
    for count in counts:
        print(f"| {' | '.join(str(value) for value in count.values())} |")
    print(f"\n{seconds:.1f} s")


if __name__ == "__main__":
    main()
