"""What lifts information gain on SICK, whose gold asks for relatedness: wordings, demonstrations, length of b.

    python benchmarks/sick_wordings.py FOLDER --answers answers.sqlite [--rows 120]

FOLDER holds sick/SICK_train.txt as published; the sample is drawn from train with seed 5, so that the test split stays
unseen. Of each wording the same likelihoods are put together in several ways: gain as it is built, the greater of its
two directions, the plain difference of log-likelihoods, that by b's tokens, and the gain of both directions as one sum.
`own` demonstrations are in SICK's manner. What is computed is kept in --answers. Printed as Markdown.
"""

import argparse
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, spearmanr

from stscurate.annotators.base import Pair
from stscurate.annotators.embedding import EmbeddingAnnotator
from stscurate.annotators.information_gain import InformationGainAnnotator, Paraphrase
from stscurate.progress import silent
from stscurate.services.answers import Answers
from stscurate.services.languagemodel import LanguageModel

NEAR = [
    ["A man is playing a guitar.", "Someone plays the guitar."],
    ["Shares fell sharply on Tuesday.", "On Tuesday, stocks dropped a lot."],
]
OWN = [
    ["A man is cutting a tomato.", "A tomato is being cut by a man."],
    ["Two dogs are running on the beach.", "Two dogs run along the sand."],
]
NEGATED = [
    ["A girl is not playing the piano.", "There is no girl playing the piano."],
    ["A group of people is standing near the water.", "Several people stand by a lake."],
]
RELATED = [
    ["A man is cutting a tomato.", "A man is slicing vegetables."],
    ["Two dogs are running on the beach.", "A dog is playing in the sand."],
]
OTHER_WORDS = "Same meaning in other words:"


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Spearman of information gain on SICK's train split, by wording.")
    parser.add_argument("folder", type=Path, help="folder with sick")
    parser.add_argument("--answers", type=Path, required=True, help="SQLite file that keeps what is computed")
    parser.add_argument("--rows", type=int, default=120, help="pairs, drawn with seed 5 (default: %(default)s)")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="the language model (default: %(default)s)")
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="the embedding model (default: %(default)s)")
    options = parser.parse_args()
    lines = (options.folder / "sick" / "SICK_train.txt").read_text("utf-8").splitlines()[1:]
    rows = random.Random(5).sample([line.split("\t") for line in lines], options.rows)
    pairs = [Pair(row[0], row[1], row[2]) for row in rows]
    gold = np.array([float(row[3]) for row in rows])
    model, words = LanguageModel(options.model), Paraphrase.load()
    wordings = {
        "the package's": words,
        "D1": replace(words, demonstrations=NEAR),
        "own": replace(words, demonstrations=OWN),
        "own, with a negation": replace(words, demonstrations=OWN + NEGATED),
        "own, 'Related sentence:'": Paraphrase("Sentence: {text}\nRelated sentence:", "Sentence:", RELATED),
        "own, 'The same scene'": Paraphrase("Sentence: {text}\nThe same scene in other words:", "Sentence:", OWN),
        "own, b alone after the same words": Paraphrase(words.given, OTHER_WORDS, OWN),
        "none": replace(words, demonstrations=[]),
    }

    def told(found: np.ndarray) -> str:
        return f"{spearmanr(found, gold).statistic:.3f}"

    with Answers(options.answers) as answers:
        voted = EmbeddingAnnotator("cosine", options.encoder).vote(pairs, answers, silent)
        cosines = np.array([row["raw"] for of_pair in voted for row in of_pair])
        print(f"{len(pairs)} pairs of SICK train; {options.model} in {model.precision}; cosine: {told(cosines)}")
        print("\n| demonstrations, wording | gain | the greater | difference | by token | as one sum | with cosine |")
        print("|---|---|---|---|---|---|---|")
        for label, wording in wordings.items():
            given, alone, tokens = InformationGainAnnotator("gain", model, prompt=wording).parts(pairs, answers, silent)
            gain, more = (given - alone) / -alone, given - alone
            ways = [gain.mean(axis=1), gain.max(axis=1), more.mean(axis=1), (more / tokens).mean(axis=1)]
            ways += [more.sum(axis=1) / -alone.sum(axis=1), rankdata(cosines) + rankdata(gain.mean(axis=1))]
            print(f"| {label} | {' | '.join(map(told, ways))} |", flush=True)


if __name__ == "__main__":
    main()
