"""When labels are few or wrong: AnglE and CoSENT on shuffled labels, gold alone and with pseudo-labels added.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/label_curves.py FOLDER --answers answers.sqlite --static MODEL
        --work WORK [--set stsb] [--rows 1000] [--seeds 3] [--frozen 3] [--tau 0.05] [--what wrong|few]

FOLDER holds stsb and sick as published; MODEL is what benchmarks/static_model.py writes. From all-MiniLM-L6-v2 with its
embeddings and --frozen lower layers kept, batches of 32, one pass. wrong: 0, 10, 20 and 40 % of the labels of --rows
pairs of train (drawn by seed 7) are shuffled among themselves by the seed; "weighed" weighs each pair by the agreement
of its label with the cosines of all-MiniLM-L6-v2 and of MODEL. few: the first 100, 300 and 1,000 of them with gold,
alone (as many steps as one pass over all takes, so that few labels aren't few steps) and in one pass with the others'
gold-free pseudo-labels; and the gold of all of train, whose pseudo-labels nobody needs. Spearman on STS-B dev or SICK
trial, mean, lowest and highest of the seeds.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from benchmarks.fits import START, Floats, Recipe, cosines, unit
from benchmarks.fits import said as told_by
from benchmarks.local_annotators import Rows, sick, stsb
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

    def told(self, made: Sequence[tuple[Rows, list[float] | None]], recipe: Recipe) -> str:
        """A cell: Spearman of one training a seed, on its rows and their weights."""
        found = []
        for seed, (rows, weights) in enumerate(made):
            given = told_by(self._work, rows, recipe, seed=seed, read=self._read, weights=weights)
            found.append(spearman(given, self._gold))
        return f"{np.mean(found):.4f} ({min(found):.4f} to {max(found):.4f})"

    def wrong(self, rows: Rows, witnesses: Floats, ways: dict[str, Recipe]) -> None:
        """Shuffled labels; witnesses: (rows, 2) cosines that their weights are drawn from."""
        names = [name for way in ways for name in (way, f"{way}, weighed")]
        print(f"| shuffled | {' | '.join(names)} |\n|---|{'---|' * len(names)}", flush=True)
        for share in SHUFFLED:
            made = [shuffled(rows, share, seed) for seed in range(self._seeds)]
            weighed = [(given, agreements(given, witnesses)) for given in made]
            cells = []
            for recipe in ways.values():
                cells += [self.told([(given, None) for given in made], recipe), self.told(weighed, recipe)]
            print(f"| {100 * share:.0f} % | {' | '.join(cells)} |", flush=True)
        wrong = np.array([[one[2] != two[2] for one, two in zip(given, rows, strict=True)] for given in made])
        weights = np.array([agreement for _, agreement in weighed])
        print(f"\nAgreement of wrong labels {weights[wrong].mean():.3f}, of right ones {weights[~wrong].mean():.3f}\n")

    def few(self, gold: Rows, pseudo: Rows, every: Rows, recipe: Recipe) -> None:
        """A learning curve; `pseudo` are the pairs of `gold` with their pseudo-labels, `every` all that have gold."""
        print("| gold pairs | gold alone | and pseudo-labels of the others |\n|---|---|---|", flush=True)
        print(f"| 0 | | {self._same(pseudo, recipe)} |", flush=True)
        for count in sorted({min(count, len(gold)) for count in FEW}):
            alone = gold[:count] * round(len(gold) / count)
            both = self._same(gold[:count] + pseudo[count:], recipe) if count < len(gold) else ""
            print(f"| {count} | {self._same(alone, recipe)} | {both} |", flush=True)
        print(f"| {len(every)} | {self._same(every, recipe)} | |", flush=True)

    def _same(self, rows: Rows, recipe: Recipe) -> str:
        return self.told([(rows, None)] * self._seeds, recipe)


def main() -> None:
    """Parse, train, print."""
    parser = options()
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps what is computed")
    parser.add_argument("--set", choices=["stsb", "sick"], default="stsb", help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=1000, help="pairs of train (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each kind (default: %(default)s)")
    parser.add_argument("--frozen", type=int, default=3, help="lower layers that are kept (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=2e-5, help="learning rate at its peak (default: %(default)s)")
    parser.add_argument("--tau", type=float, default=0.05, help="of the cosine and angle terms (default: %(default)s)")
    parser.add_argument("--what", choices=["wrong", "few"], help="one of the two (default: both)")
    given = parser.parse_args()
    every = stsb(given.folder, "train") if given.set == "stsb" else of_sick(given.folder, "train")
    read = stsb(given.folder, "dev") if given.set == "stsb" else of_sick(given.folder, "trial")
    rows = random.Random(7).sample(every, given.rows)
    curves = Curves(given.work, read, given.seeds)
    start = SentenceTransformer(str(locate(START).path), device="cpu")
    before = spearman(cosines(start, read), np.array([row[2] for row in read]))
    print(f"{given.set}: {len(rows)} pairs, read {len(read)}, tau {given.tau:g}; untrained: {before:.4f}\n")
    angle = Recipe(taus=(given.tau, 0.05, given.tau), learning_rate=given.rate, frozen=given.frozen)
    if given.what in (None, "wrong"):
        static = SentenceTransformer(str(given.static), device="cpu")
        witnesses = np.stack([cosines(start, rows), cosines(static, rows)], axis=1)
        curves.wrong(unit(rows), witnesses, {"AnglE": angle, "CoSENT": replace(angle, weights=(1.0, 0.0, 0.0))})
    if given.what in (None, "few"):
        with Answers(given.answers) as answers:
            found = said(rows, answers, given.static)
        words = {str(number): overlap(one, two) for number, (one, two, _) in enumerate(rows)}
        labels = aggregate(votes_table(found.votes), overlap=words)["score"].to_pylist()
        pseudo = [(row[0], row[1], float(label)) for row, label in zip(rows, labels, strict=True)]
        curves.few(unit(rows), pseudo, unit(every), angle)


def of_sick(folder: Path, part: str) -> Rows:
    """SICK's pairs with its scores of 1 to 5 on the scale of STS-B, 0 to 5."""
    return [(one, two, (gold - 1) / 4 * 5) for one, two, gold in sick(folder, part)]


def agreements(rows: Rows, witnesses: Floats) -> list[float]:
    """How far each given label agrees with the witnesses, 0 to 1, as `ensemble` weighs it."""
    votes = np.column_stack([[row[2] for row in rows], witnesses])
    found = aggregate(votes_table(votes, ("given", "one", "other")))["agreement"].to_pylist()
    return [1.0 if value is None else float(value) for value in found]


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
