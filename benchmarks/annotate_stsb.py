"""How well a small language model on this machine annotates STS-B dev, without any label: Spearman with gold.

    python benchmarks/annotate_stsb.py stsb-en-dev.csv

The file is STS-B's dev split without a header (sentence1, sentence2, score 0 to 5). Printed as Markdown.
"""

import argparse
import csv
import random
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from scipy.stats import spearmanr

from stscurate.annotators.base import Annotator, Pair
from stscurate.annotators.embedding import EmbeddingAnnotator
from stscurate.annotators.information_gain import InformationGainAnnotator, Paraphrase
from stscurate.ensemble import aggregate
from stscurate.progress import silent
from stscurate.records import from_rows
from stscurate.services.answers import Answers
from stscurate.services.languagemodel import LanguageModel

# Near STS-B's domain; the package's own demonstrations aren't.
NEAR = [
    ["A man is playing a guitar.", "Someone plays the guitar."],
    ["Shares fell sharply on Tuesday.", "On Tuesday, stocks dropped a lot."],
]


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Spearman of gold-free votes with STS-B dev's gold.")
    parser.add_argument("file", type=Path, help="stsb-en-dev.csv")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="the language model (default: %(default)s)")
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="the embedding model (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=300, help="pairs, drawn with seed 1 (default: %(default)s)")
    parser.add_argument("--precision", choices=["bf16", "fp32"], help="default: by the processor")
    options = parser.parse_args()
    with options.file.open(newline="") as file:
        rows = random.Random(1).sample(list(csv.reader(file)), options.rows)
    pairs = [Pair(str(number), *row[:2]) for number, row in enumerate(rows)]
    gold = [float(row[2]) for row in rows]

    model = LanguageModel(options.model, precision=options.precision)
    model.log_likelihoods(model.ids(["Sentence:"])[0], [(model.ids(["A"])[0], model.ids([" b"])[0])])  # loads it
    own = Paraphrase.load()
    annotators: dict[str, Annotator] = {
        f"gain, near demonstrations ({model.precision})": InformationGainAnnotator(
            "near", model, prompt=replace(own, demonstrations=NEAR)
        ),
        f"gain, the package's demonstrations ({model.precision})": InformationGainAnnotator("own", model, prompt=own),
        "cosine": EmbeddingAnnotator("cosine", options.encoder),
    }
    print(
        f"{options.rows} pairs; {options.model}, {options.encoder}; the model's loading isn't timed, the encoder's is."
    )
    print("\n| annotator | Spearman | seconds |\n|---|---|---|")
    votes = {}
    for label, annotator in annotators.items():
        began = time.perf_counter()
        with TemporaryDirectory() as folder, Answers(Path(folder) / "answers.sqlite") as answers:
            voted = [row for of_pair in annotator.vote(pairs, answers, silent) for row in of_pair]
        seconds = time.perf_counter() - began
        votes[annotator.name] = voted
        print(f"| {label} | {_spearman(voted, gold):.3f} | {seconds:.1f} |")
    for name in ("near", "own"):
        print(f"| mean rank of {name} and cosine | {_spearman(votes[name] + votes['cosine'], gold):.3f} | |")


def _spearman(votes: list[dict[str, object]], gold: list[float]) -> float:
    scores = aggregate(from_rows(votes, "votes"))
    found = dict(zip(scores["pair_id"].to_pylist(), scores["score"].to_pylist(), strict=True))
    return float(spearmanr([found[str(number)] for number in range(len(gold))], gold).statistic)


if __name__ == "__main__":
    main()
