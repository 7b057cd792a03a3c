"""How hard a run's negatives are: a model's ranking of the duplicates above the negatives of each kind.

stscurate collect-issues --from rust-issues.jsonl.xz --moved mozilla/rust=rust-lang/rust --out RUN --negatives 1.5
    --lexical-share 0.3334 --encoder-share 0.3333 --encoder MODEL --similarity cosine
python benchmarks/negatives.py RUN [--model NAME] [--max-tokens 128]

Neighbours by the very model that is measured are hard for it by construction: it is circular, and the rows say so.
"""

import argparse
from pathlib import Path

import numpy as np

from stscurate.methods.correlation import average_precision, bootstrap_interval, spearman
from stscurate.methods.similarity import pair_cosines
from stscurate.services.encoder import Encoder
from stscurate.store import Run


def main() -> None:
    """Print a row for each kind of negative pair as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run that has pairs")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="model folder, packaged or Hub name")
    parser.add_argument("--max-tokens", type=int, default=128, help="tokens a text is cut to")
    options = parser.parse_args()
    run = Run(options.run)
    pairs = run.table("pairs").to_pylist()
    miner = run.entries["pairs"].key["settings"].get("encoder")
    encoder = Encoder(options.model, max_tokens=options.max_tokens)
    vectors = encoder.encode([row[side] for side in ("text1", "text2") for row in pairs])
    cosine = pair_cosines(vectors[: len(pairs)], vectors[len(pairs) :])
    origin = np.array([row["origin"] for row in pairs])
    label = np.array([row["label"] for row in pairs])
    print(
        "| negatives | pairs | mean cosine | Spearman against the duplicates | 95 % interval | AP |\n"
        + "|---" * 6
        + "|"
    )
    for kind in sorted(set(origin[label == 0])):
        by = f" ({miner}{', circular' if miner == encoder.model.name else ''})" if kind == "negative:encoder" else ""
        chosen = (label == 1) | (origin == kind)
        low, high = bootstrap_interval(label[chosen], cosine[chosen], seed=0)
        rho, precision = spearman(label[chosen], cosine[chosen]), average_precision(label[chosen], cosine[chosen])
        print(
            f"| {kind}{by} | {np.sum(origin == kind):,} | {cosine[origin == kind].mean():.3f} | {rho:.3f} "
            f"| {low:.3f} to {high:.3f} | {precision:.3f} |"
        )
    print(f"| (duplicates) | {np.sum(label == 1):,} | {cosine[label == 1].mean():.3f} | | | |")


if __name__ == "__main__":
    main()
