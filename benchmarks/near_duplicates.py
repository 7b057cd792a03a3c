"""Near duplicates among a run's issues: how many and how fast.

stscurate collect-issues --from rust-issues.jsonl.xz --out RUN
python benchmarks/near_duplicates.py RUN
"""

import argparse
import time
from pathlib import Path

from stscurate.methods.near_duplicates import near_duplicates
from stscurate.methods.texts import normalise
from stscurate.store import Run


def main() -> None:
    """Print a row for each threshold as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run that has issues")
    found = Run(parser.parse_args().run).table("issues")["clean_text"].to_pylist()
    texts = list({normalise(text): text for text in found}.values())
    print(f"{len(found):,} texts, {len(texts):,} different ones\n")
    print("| Jaccard similarity from | pairs | seconds |\n|---|---|---|")
    for threshold in (0.9, 0.8, 0.7, 0.5):
        began = time.perf_counter()
        pairs, _ = near_duplicates(texts, threshold=threshold)
        print(f"| {threshold} | {len(pairs):,} | {time.perf_counter() - began:.1f} |")


if __name__ == "__main__":
    main()
