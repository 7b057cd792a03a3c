"""Does a model learn from labels that no person gave? AnglE on STS-B train, labelled by the ensemble, by gold, or not.

    PYTHONPATH=. python benchmarks/pseudo_labels_stsb.py FOLDER --answers answers.sqlite --static MODEL --work WORK
        [--rows 2000] [--seeds 3] [--epochs 1]

FOLDER holds stsb as published; MODEL is what benchmarks/static_model.py writes. Three annotators vote on --rows pairs
of STS-B train (drawn by seed 7; 0 takes all), their gold-free scores (`ensemble --method weighted`) train
all-MiniLM-L6-v2 by AnglE, and so do gold and, with --agreement, the scores weighed by agreement. Answers and models are
kept: the same command goes on where it was. Spearman on STS-B test and on its part without a text of STS-B's train and
dev sets, as Markdown.
"""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.local_annotators import Rows, stsb
from benchmarks.members import MEMBERS, Floats, options, said, votes_table
from stscurate.ensemble import aggregate
from stscurate.methods.correlation import spearman
from stscurate.methods.overlap import overlap
from stscurate.methods.texts import normalise
from stscurate.records import PAIRS, from_rows
from stscurate.services.answers import Answers, answer_key
from stscurate.training import Schedule, pair_rows, train_angle

START = "all-MiniLM-L6-v2"


def main() -> None:
    """Parse, label, train, test, print."""
    parser = options()
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the trained models")
    parser.add_argument("--rows", type=int, default=2000, help="pairs of train, 0 for all (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each kind (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=1, help="passes over the pairs (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="pairs a step (default: %(default)s)")
    parser.add_argument("--method", default="weighted", help="of the gold-free scores (default: %(default)s)")
    parser.add_argument("--agreement", action="store_true", help="train on scores weighed by agreement too")
    given = parser.parse_args()
    rows = stsb(given.folder, "train")
    rows = random.Random(7).sample(rows, given.rows) if given.rows else rows
    with Answers(given.answers) as answers:
        found = said(rows, answers, given.static)
    words = {str(number): overlap(one, two) for number, (one, two, _) in enumerate(rows)}
    scores = aggregate(votes_table(found), method=given.method, overlap=words)
    told = [f"{name} {spearman(column, found.gold):.4f}" for name, column in zip(MEMBERS, found.votes.T, strict=True)]
    told.append(f"{given.method} {spearman(scores['score'].to_numpy(), found.gold):.4f}")
    print(f"{len(rows)} pairs of train; Spearman of their labels with gold: {', '.join(told)}\n")
    test = stsb(given.folder, "test")
    clean = unseen(test, stsb(given.folder, "train") + stsb(given.folder, "dev"))
    print(
        f"| trained on | seeds | STS-B test, {len(test)} pairs | leak-clean, {clean.sum()} pairs |\n|---|---|---|---|"
    )
    report("nothing", [tested(START, test, clean)])
    kinds: list[tuple[str, dict[str, Any]]] = [("gold", {"labels": "gold"}), ("the ensemble", {"labels": "pseudo"})]
    if given.agreement:
        kinds.append(("the ensemble, by agreement", {"labels": "pseudo", "agreement_weights": True}))
    for kind, how in kinds:
        numbers = []
        for seed in range(given.seeds):
            made = pair_rows(table(rows), inputs={"pairs": answer_key(rows=rows)}, scores=scores, **how)
            place = given.work / f"{kind.replace(' ', '_').replace(',', '')}-{len(rows)}-{given.epochs}-{seed}"
            schedule = Schedule(given.epochs, given.batch_size, seed=seed)
            train_angle(made, place, model=START, schedule=schedule, replace=True)
            numbers.append(tested(str(place), test, clean))
        report(kind, numbers)


def report(kind: str, numbers: list[tuple[float, float]]) -> None:
    """A row: means, and the lowest and highest."""
    found = np.array(numbers).T
    cells = [f"{column.mean():.4f} ({column.min():.4f} to {column.max():.4f})" for column in found]
    print(f"| {kind} | {len(numbers)} | {' | '.join(cells)} |", flush=True)


def table(rows: Rows) -> pa.Table:
    """The pairs with their gold, 0..1."""
    made = []
    for number, (one, two, gold) in enumerate(rows):
        row: dict[str, Any] = dict.fromkeys(PAIRS.names)
        row |= {"pair_id": str(number), "text1": one, "text2": two, "score": gold / 5, "weight": 1.0}
        made.append(row | {"origin": "stsb", "flags": []})
    return from_rows(made, "pairs")


def unseen(test: Rows, before: Rows) -> np.ndarray:
    """Which rows hold no text of `before`, case and spaces aside."""
    known = {normalise(text) for one, two, _ in before for text in (one, two)}
    return np.array([not {normalise(one), normalise(two)} & known for one, two, _ in test])


def tested(model: str, test: Rows, clean: np.ndarray) -> tuple[float, float]:
    """Spearman of the model's cosines on all rows and on the clean ones."""
    from stscurate.services.encoder import Encoder

    encoder = Encoder(model)
    one, two = (encoder.encode([str(row[side]) for row in test]) for side in (0, 1))
    cosines: Floats = (np.asarray(one, dtype=np.float64) * np.asarray(two, dtype=np.float64)).sum(axis=1)
    gold = np.array([row[2] for row in test])
    return spearman(cosines, gold), spearman(cosines[clean], gold[clean])


if __name__ == "__main__":
    main()
