"""STS-B when labels are few or wrong: AnglE and CoSENT on shuffled labels, gold alone and with pseudo-labels added.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/label_curves.py FOLDER --answers answers.sqlite --static MODEL
        --work WORK [--rows 1000] [--seeds 3] [--frozen 3] [--what wrong|few]

FOLDER holds stsb as published; MODEL is what benchmarks/static_model.py writes. From all-MiniLM-L6-v2 with its
embeddings and --frozen lower layers kept, batches of 32, one pass, fp32. wrong: 0, 10, 20 and 40 % of the labels of
--rows pairs of STS-B train (drawn by seed 7) are shuffled among themselves by the seed. few: the first 100, 300, 1,000
and all of them with gold, alone (as many steps as one pass over all takes, so that few labels aren't few steps) and in
one pass with the others' gold-free pseudo-labels. Spearman on STS-B dev, mean, lowest and highest of the seeds.
"""

import random
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from benchmarks.fits import START, Recipe, cosines, unit
from benchmarks.fits import said as told_by
from benchmarks.local_annotators import Rows, stsb
from benchmarks.members import options, said, votes_table
from stscurate.ensemble import aggregate
from stscurate.methods.correlation import spearman
from stscurate.methods.overlap import overlap
from stscurate.services.answers import Answers
from stscurate.services.models import locate

SHUFFLED = (0.0, 0.1, 0.2, 0.4)
FEW = (100, 300, 1000)


class Curves:
    """Trains where it isn't kept, and prints."""

    def __init__(self, work: Path, read: Rows, seeds: int):
        self._work, self._read, self._seeds = work, read, seeds
        self._gold = np.array([row[2] for row in read])

    def told(self, made: list[tuple[Rows, Recipe]]) -> str:
        """A cell: Spearman of one training a seed."""
        found = []
        for seed, (rows, recipe) in enumerate(made):
            given = told_by(self._work, rows, recipe, seed=seed, read=self._read)
            found.append(spearman(given, self._gold))
        return f"{np.mean(found):.4f} ({min(found):.4f} to {max(found):.4f})"

    def wrong(self, rows: Rows, ways: dict[str, Recipe]) -> None:
        """Shuffled labels."""
        print(f"| shuffled | {' | '.join(ways)} |\n|---|{'---|' * len(ways)}", flush=True)
        for share in SHUFFLED:
            cells = [
                self.told([(shuffled(rows, share, seed), recipe) for seed in range(self._seeds)])
                for recipe in ways.values()
            ]
            print(f"| {100 * share:.0f} % | {' | '.join(cells)} |", flush=True)

    def few(self, gold: Rows, pseudo: Rows, recipe: Recipe) -> None:
        """A learning curve; `pseudo` are the same pairs with their pseudo-labels."""
        print("| gold pairs | gold alone | and pseudo-labels of the others |\n|---|---|---|", flush=True)
        print(f"| 0 | | {self.told([(pseudo, recipe)] * self._seeds)} |", flush=True)
        for count in sorted({min(count, len(gold)) for count in (*FEW, len(gold))}):
            alone = gold[:count] * round(len(gold) / count)
            cells = [self.told([(alone, recipe)] * self._seeds)]
            both = gold[:count] + pseudo[count:]
            cells.append(self.told([(both, recipe)] * self._seeds) if count < len(gold) else "")
            print(f"| {count} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Parse, train, print."""
    parser = options()
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps what is computed")
    parser.add_argument("--rows", type=int, default=1000, help="pairs of train (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each kind (default: %(default)s)")
    parser.add_argument("--frozen", type=int, default=3, help="lower layers that are kept (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=2e-5, help="learning rate at its peak (default: %(default)s)")
    parser.add_argument("--what", choices=["wrong", "few"], help="one of the two (default: both)")
    given = parser.parse_args()
    rows = random.Random(7).sample(stsb(given.folder, "train"), given.rows)
    read = stsb(given.folder, "dev")
    curves = Curves(given.work, read, given.seeds)
    start = cosines(SentenceTransformer(str(locate(START).path), device="cpu"), read)
    print(f"{len(rows)} pairs; untrained: {spearman(start, np.array([row[2] for row in read])):.4f}\n")
    angle = Recipe(learning_rate=given.rate, frozen=given.frozen)
    cosent = Recipe((1.0, 0.0, 0.0), learning_rate=given.rate, frozen=given.frozen)
    if given.what in (None, "wrong"):
        curves.wrong(unit(rows), {"AnglE": angle, "CoSENT": cosent})
    if given.what in (None, "few"):
        with Answers(given.answers) as answers:
            found = said(rows, answers, given.static)
        words = {str(number): overlap(one, two) for number, (one, two, _) in enumerate(rows)}
        labels = aggregate(votes_table(found), overlap=words)["score"].to_pylist()
        pseudo = [(row[0], row[1], float(label)) for row, label in zip(rows, labels, strict=True)]
        curves.few(unit(rows), pseudo, angle)


def shuffled(rows: Rows, share: float, seed: int) -> Rows:
    """The rows, with the scores of a share of them dealt anew among these."""
    generator = np.random.default_rng(seed)
    chosen = generator.permutation(len(rows))[: round(share * len(rows))]
    dealt = chosen[generator.permutation(len(chosen))]
    found = list(rows)
    for place, other in zip(chosen.tolist(), dealt.tolist(), strict=True):
        found[place] = (*rows[place][:2], rows[other][2])
    return found


if __name__ == "__main__":
    main()
