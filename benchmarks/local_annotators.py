"""How well a small language model on this machine tells similarity, however it is asked: Spearman with gold.

    python benchmarks/local_annotators.py FOLDER --answers answers.sqlite [--rows 300] [--set stsb-dev]

FOLDER holds stsb/stsb-en-dev.csv, sick/SICK_test_annotated.txt and sts12_16/STS2016/*.test.tsv as published. What is
computed is kept in --answers: the same command goes on where it was. The sample of --rows is drawn by `random.sample`
with seed 1 (STS-B dev), 2 (SICK) and 3 (STS16); 0 takes all. Printed as Markdown; the seconds are of the processor, of
what wasn't kept.
"""

import argparse
import csv
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, spearmanr

from stscurate.annotators.base import Pair
from stscurate.annotators.digits import DigitAnnotator
from stscurate.annotators.embedding import EmbeddingAnnotator
from stscurate.annotators.information_gain import InformationGainAnnotator, Paraphrase
from stscurate.annotators.prompts import Prompt
from stscurate.progress import silent
from stscurate.services.answers import Answers
from stscurate.services.languagemodel import LanguageModel

# D1 is near STS-B's domain, D2 far from it; the package's own four are D2 and two about software.
DEMONSTRATIONS = {
    "no demonstration": [],
    "D1": [
        ["A man is playing a guitar.", "Someone plays the guitar."],
        ["Shares fell sharply on Tuesday.", "On Tuesday, stocks dropped a lot."],
    ],
    "D2": [
        ["The committee will meet again next week.", "The panel's next meeting is in a week."],
        ["She could not find her keys.", "Her keys were nowhere to be found."],
    ],
    "the package's": Paraphrase.load().demonstrations,
}
STS16 = ("answer-answer", "question-question", "plagiarism", "postediting", "headlines")
Rows = list[tuple[str, str, float]]


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Spearman of gold-free local annotators with the gold of public sets.")
    parser.add_argument("folder", type=Path, help="folder with stsb, sick and sts12_16")
    parser.add_argument("--answers", type=Path, required=True, help="SQLite file that keeps what is computed")
    parser.add_argument("--set", choices=["stsb-dev", "sick", "sts16"], help="one set alone (default: all)")
    parser.add_argument("--rows", type=int, default=300, help="pairs of each set, 0 for all (default: %(default)s)")
    parser.add_argument("--only", choices=[*DEMONSTRATIONS, "digits"], help="one way to ask alone (default: all)")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="the language model (default: %(default)s)")
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="the embedding model (default: %(default)s)")
    parser.add_argument("--precision", choices=["bf16", "fp32"], help="default: by the processor")
    options = parser.parse_args()
    model = LanguageModel(options.model, precision=options.precision)
    print(f"{options.model} in {model.precision}, {options.encoder}")
    print("\n| set | pairs | annotator | Spearman | one way | the other | with cosine, mean rank | s |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    sets = {"stsb-dev": (stsb, 1), "sick": (sick, 2), "sts16": (sts16, 3)}
    with Answers(options.answers) as answers:
        for name, (read, seed) in sets.items():
            if options.set in (None, name):
                rows = read(options.folder)
                rows = random.Random(seed).sample(rows, options.rows) if options.rows else rows
                measure(name, rows, model, options.encoder, options.only, answers)


def measure(name: str, rows: Rows, model: LanguageModel, encoder: str, only: str | None, answers: Answers) -> None:
    """Print a row for each way to ask."""
    pairs = [Pair(str(number), one, two) for number, (one, two, _) in enumerate(rows)]
    gold = np.array([row[2] for row in rows])

    def told(label: str, found: np.ndarray, ways: Sequence[np.ndarray], began: float) -> None:
        both = rankdata(cosines) + rankdata(found)
        numbers = [spearman(found, gold), *(spearman(way, gold) for way in ways)]
        cells = [f"{number:.3f}" for number in numbers] + [""] * (3 - len(numbers))
        mixed = "" if found is cosines else f"{spearman(both, gold):.3f}"
        print(
            f"| {name} | {len(rows)} | {label} | {' | '.join(cells)} | {mixed} | {time.process_time() - began:.0f} |",
            flush=True,
        )

    began = time.process_time()
    votes = [
        row["raw"] for of_pair in EmbeddingAnnotator("cosine", encoder).vote(pairs, answers, silent) for row in of_pair
    ]
    cosines = np.array(votes)
    told(f"cosine of {encoder}", cosines, [], began)
    for label, demonstrations in DEMONSTRATIONS.items():
        if only in (None, label):
            began = time.process_time()
            prompt = replace(Paraphrase.load(), demonstrations=demonstrations)
            gains = InformationGainAnnotator("gain", model, prompt=prompt).gains(pairs, answers, silent)
            told(f"gain, {label}", gains.mean(axis=1), list(gains.T), began)
    if only in (None, "digits"):
        began = time.process_time()
        asked = DigitAnnotator("digits", model, prompt=Prompt.load(shots=3), both_orders=True)
        digits = np.array([[row["raw"] for row in of_pair] for of_pair in asked.vote(pairs, answers, silent)])
        told("expected digit, three examples", digits.mean(axis=1), list(digits.T), began)


def spearman(found: np.ndarray, gold: np.ndarray) -> float:
    """Rank correlation."""
    return float(spearmanr(found, gold).statistic)


def stsb(folder: Path, split: str = "dev") -> Rows:
    """STS-B dev, or another split."""
    with (folder / "stsb" / f"stsb-en-{split}.csv").open(newline="", encoding="utf-8") as file:
        return [(row[0], row[1], float(row[2])) for row in csv.reader(file)]


def sick(folder: Path, part: str = "test_annotated") -> Rows:
    """SICK's test split, or another."""
    lines = (folder / "sick" / f"SICK_{part}.txt").read_text("utf-8").splitlines()[1:]
    return [(fields[1], fields[2], float(fields[3])) for fields in (line.split("\t") for line in lines)]


def sts16(folder: Path) -> Rows:
    """The scored rows of the five parts of STS16."""
    found: Rows = []
    for part in STS16:
        for line in (folder / "sts12_16" / "STS2016" / f"{part}.test.tsv").read_text("utf-8").split("\n"):
            fields = line.rstrip("\r").split("\t")
            if len(fields) >= 3 and fields[0].strip():
                found.append((fields[1], fields[2], float(fields[0])))
    return found


if __name__ == "__main__":
    main()
