"""Evaluate a model on STS-B's test split, to hold it against published numbers.

    python benchmarks/evaluate_stsb.py FOLDER [--model NAME]

FOLDER holds stsb-en-test.csv without a header line: sentence1, sentence2, score 0 to 5. Prints a Markdown table.
"""

import argparse
from pathlib import Path

from stscurate.evaluation import as_markdown, evaluate, gold_set


def main() -> None:
    """Parse, evaluate, print."""
    parser = argparse.ArgumentParser(description="Spearman on STS-B test with its 95 % bootstrap interval.")
    parser.add_argument("folder", type=Path, help="folder with stsb-en-test.csv")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="model folder, packaged or Hub name")
    options = parser.parse_args()
    gold = gold_set(str(options.folder / "stsb-en-test.csv"), columns="sentence1,sentence2,score", scale="0-5")
    print(as_markdown(evaluate(options.model, [gold])), end="")


if __name__ == "__main__":
    main()
