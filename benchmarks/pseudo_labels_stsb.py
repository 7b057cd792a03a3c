"""Does a model learn from labels that no person gave? AnglE on STS-B train, labelled by the ensemble, by gold, or not.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/pseudo_labels_stsb.py FOLDER --answers answers.sqlite
        --static MODEL --work WORK [--split dev] [--rows 2000] [--seeds 3] [--epochs 1] [--weights 1,1,1] [--tau 0.05]

FOLDER holds stsb as published; MODEL is what benchmarks/static_model.py writes. Three annotators vote on --rows pairs
of STS-B train (drawn by seed 7; 0 takes all), their gold-free scores (`ensemble --method weighted`) train
all-MiniLM-L6-v2 by AnglE, and so do gold and, with --agreement, the scores weighed by agreement; fp32, 128 tokens.
Answers and what the models say are kept: the same command goes on where it was. Choices are made on --split dev;
`--split test` gives Spearman on STS-B test and on its part without a text of STS-B's train and dev sets: mean, lowest
and highest of the seeds, and the difference to the start on the same pairs with its 95 % interval (1,000 resamples of
the pairs, seed 0), as Markdown.
"""

import random
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from benchmarks.fits import START, Floats, Recipe, cosines, interval, unit, unseen
from benchmarks.fits import said as told_by
from benchmarks.local_annotators import stsb
from benchmarks.members import MEMBERS, options, said, votes_table
from stscurate.ensemble import aggregate
from stscurate.methods.correlation import spearman
from stscurate.methods.overlap import overlap
from stscurate.services.answers import Answers
from stscurate.services.models import locate


def main() -> None:
    """Parse, label, train, test, print."""
    parser = options()
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps what is computed")
    parser.add_argument("--split", choices=["dev", "test"], default="dev", help="what is read (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=2000, help="pairs of train, 0 for all (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each kind (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=1, help="passes over the pairs (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="pairs a step (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=2e-5, help="learning rate at its peak (default: %(default)s)")
    parser.add_argument("--weights", default="1,1,1", help="cosine, in-batch, angle (default: %(default)s)")
    parser.add_argument("--tau", type=float, default=0.05, help="of the cosine and angle terms (default: %(default)s)")
    parser.add_argument("--threshold", type=float, default=0.8, help="of in-batch positives (default: %(default)s)")
    parser.add_argument("--method", default="weighted", help="of the gold-free scores (default: %(default)s)")
    parser.add_argument("--agreement", action="store_true", help="train on scores weighed by agreement too")
    given = parser.parse_args()
    rows = stsb(given.folder, "train")
    rows = random.Random(7).sample(rows, given.rows) if given.rows else rows
    with Answers(given.answers) as answers:
        found = said(rows, answers, given.static)
    words = {str(number): overlap(one, two) for number, (one, two, _) in enumerate(rows)}
    scores = aggregate(votes_table(found.votes), method=given.method, overlap=words)
    labels = scores["score"].to_pylist()
    told = [f"{name} {spearman(column, found.gold):.4f}" for name, column in zip(MEMBERS, found.votes.T, strict=True)]
    told.append(f"{given.method} {spearman(np.array(labels), found.gold):.4f}")
    print(f"{len(rows)} pairs of train; Spearman of their labels with gold: {', '.join(told)}\n")

    read = stsb(given.folder, given.split)
    before = stsb(given.folder, "train") + (stsb(given.folder, "dev") if given.split == "test" else [])
    clean = unseen(read, before)
    gold = np.array([row[2] for row in read])
    pairs = f"STS-B {given.split}, {len(read)} pairs | minus the start | clean, {clean.sum()} pairs | minus the start"
    print(f"| trained on | {pairs} |\n|---|---|---|---|---|", flush=True)
    start = cosines(SentenceTransformer(str(locate(START).path), device="cpu"), read)[None]
    report("nothing", start, start, gold, clean)
    one, in_batch, angle = (float(part) for part in given.weights.split(","))
    recipe = Recipe(
        (one, in_batch, angle),
        taus=(given.tau, 0.05, given.tau),
        threshold=given.threshold,
        learning_rate=given.rate,
        epochs=given.epochs,
        batch_size=given.batch_size,
    )
    pseudo = [(row[0], row[1], float(label)) for row, label in zip(rows, labels, strict=True)]
    kinds: dict[str, tuple[list[tuple[str, str, float]], list[float] | None]] = {"the ensemble": (pseudo, None)}
    if given.agreement:
        agreed = [1.0 if value is None else value for value in scores["agreement"].to_pylist()]
        kinds["the ensemble, by agreement"] = (pseudo, agreed)
    kinds["gold"] = (unit(rows), None)
    for kind, (labelled, weights) in kinds.items():
        made = [
            told_by(given.work, labelled, recipe, seed=seed, read=read, weights=weights) for seed in range(given.seeds)
        ]
        report(kind, np.stack(made), start, gold, clean)


def report(kind: str, made: Floats, start: Floats, gold: Floats, clean: np.ndarray) -> None:
    """A row: means, the lowest and highest, and by how much they are above the start."""
    cells = []
    for part in (np.ones(len(gold), bool), clean):
        numbers = [spearman(one[part], gold[part]) for one in made]
        cells.append(f"{np.mean(numbers):.4f} ({min(numbers):.4f} to {max(numbers):.4f})")
        low, high = interval(made[:, part], gold[part], minus=start[:, part])
        apart = np.mean(numbers) - spearman(start[0, part], gold[part])
        cells.append("" if made is start else f"{apart:+.4f} ({low:+.4f} to {high:+.4f})")
    print(f"| {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
