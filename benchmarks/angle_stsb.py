"""STS-B after training on STS-B: AnglE's objective and its parts against sentence-transformers' CoSENTLoss.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/angle_stsb.py FOLDER --work WORK [--split dev] [--rows 2000]
        [--seeds 3] [--rate 2e-5] [--epochs 1] [--batch-size 32] [--precision fp32] [--threshold 0.8]
        [--taus 0.05,0.05,0.05] [--peer-batch-size 128] [--peer-scale 20] [--kind all ...]

FOLDER holds stsb as published. From all-MiniLM-L6-v2, AdamW with a tenth of warm-up; theirs by their own trainer on the
same pairs and as many steps. --rows pairs of STS-B train (drawn by seed 7, 0 takes all). Choices are made on --split
dev; `--split test` prints Spearman on STS-B test and on its part without a text of STS-B's train and dev sets: mean,
lowest and highest of the seeds, the 95 % interval of 1,000 resamples of the pairs (seed 0), and the difference to
theirs on the same pairs with its interval. WORK keeps what is computed.
"""

import argparse
import random
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import CoSENTLoss

from benchmarks.fits import START, Floats, Recipe, cosines, interval, kept, said, unit, unseen
from benchmarks.local_annotators import Rows, stsb
from benchmarks.train_speed import theirs
from stscurate.methods.correlation import spearman
from stscurate.services.models import locate

PARTS = {
    "all": (1.0, 1.0, 1.0),
    "no in-batch": (1.0, 0.0, 1.0),
    "no angle": (1.0, 1.0, 0.0),
    "cosine only": (1.0, 0.0, 0.0),
    "angle only": (0.0, 0.0, 1.0),
    "in-batch times 30": (1.0, 30.0, 1.0),
}
PEER = "sentence-transformers CoSENTLoss"
KINDS: dict[str, Recipe | None] = {PEER: None}
for _name, _weights in PARTS.items():
    KINDS[_name] = Recipe(_weights)
    if _weights[2]:
        KINDS[f"{_name}, symmetric"] = Recipe(_weights, (0.05, 0.05, 1.0), "symmetric")


def main() -> None:
    """Parse, train, test, print."""
    parser = argparse.ArgumentParser(description="AnglE on STS-B.")
    parser.add_argument("folder", type=Path, help="folder with stsb")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps what is computed")
    parser.add_argument("--split", choices=["dev", "test"], default="dev", help="what is read (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=2000, help="pairs of train, 0 for all (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each kind (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=2e-5, help="learning rate at its peak (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=1, help="passes over the pairs (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="pairs a step (default: %(default)s)")
    parser.add_argument("--peer-batch-size", type=int, help="theirs, chosen on dev as ours is (default: the same)")
    parser.add_argument("--peer-scale", type=float, default=20.0, help="of theirs, 1 / tau (default: %(default)s)")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="default: %(default)s")
    parser.add_argument("--threshold", type=float, default=0.8, help="of in-batch positives (default: %(default)s)")
    parser.add_argument(
        "--taus", help="of the cosine, in-batch and angle term (default: 0.05 each, 1 for the symmetric angle)"
    )
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="one kind (default: all)")
    given = parser.parse_args()
    rows = unit(stsb(given.folder, "train"))
    rows = random.Random(7).sample(rows, given.rows) if given.rows else rows
    # Both are read after each training, so that the choice on dev costs no second one; only --split is printed.
    dev, test = stsb(given.folder, "dev"), stsb(given.folder, "test")
    both = dev + test
    place = slice(0, len(dev)) if given.split == "dev" else slice(len(dev), None)
    read = both[place]
    gold = np.array([row[2] for row in read])
    before = stsb(given.folder, "train") + (dev if given.split == "test" else [])
    clean = unseen(read, before)
    told_of = {name: value for name, value in vars(given).items() if name not in ("folder", "work", "kind")}
    print(f"{len(rows)} pairs of train; {', '.join(f'{name} {value}' for name, value in told_of.items())}\n")
    taus = three(given.taus) if given.taus else None
    budget = Recipe(
        learning_rate=given.rate, epochs=given.epochs, batch_size=given.batch_size, precision=given.precision
    )
    peer_budget = replace(budget, batch_size=given.peer_batch_size or given.batch_size)
    print(
        f"| trained by | STS-B {given.split}, {len(gold)} pairs | minus theirs | clean, {clean.sum()} | minus theirs |"
    )
    print("|---|---|---|---|---|", flush=True)
    start = cosines(SentenceTransformer(str(locate(START).path), device="cpu"), both)[None, place]
    peer: Floats | None = None
    for kind in (None, *(given.kind or KINDS)):
        if kind is None:
            made = start
        else:
            recipe = KINDS[kind]
            if recipe is not None:
                recipe = replace(
                    budget,
                    weights=recipe.weights,
                    variant=recipe.variant,
                    threshold=given.threshold,
                    taus=taus or recipe.taus,
                )
            found = [
                by(given.work, rows, recipe, peer_budget, given.peer_scale, seed, both) for seed in range(given.seeds)
            ]
            made = np.stack(found)[:, place]
            peer = made if recipe is None else peer
        cells = []
        for part in (np.ones(len(gold), bool), clean):
            cells += told(made[:, part], gold[part], None if peer is None or made is peer else peer[:, part])
        print(f"| {kind or 'nothing'} | {' | '.join(cells)} |", flush=True)


def three(text: str) -> tuple[float, float, float]:
    """Numbers with commas between them."""
    cosine, in_batch, angle = (float(part) for part in text.split(","))
    return cosine, in_batch, angle


def by(work: Path, rows: Rows, recipe: Recipe | None, budget: Recipe, scale: float, seed: int, read: Rows) -> Floats:
    """The cosines of a model trained by the recipe, or by theirs with the same budget."""
    if recipe is not None:
        return said(work, rows, recipe, seed=seed, read=read)

    def make() -> Floats:
        rate, epochs, batch = budget.learning_rate, budget.epochs, budget.batch_size
        loss = partial(CoSENTLoss, scale=scale)
        model, _ = theirs(rows, seed, loss, budget.precision, rate=rate, epochs=epochs, batch_size=batch)
        return cosines(model, read)

    return kept(work, [PEER, rows, budget, scale, seed, read], make)


def told(made: Floats, gold: Floats, peer: Floats | None) -> list[str]:
    """Two cells: the mean with spread and interval, and the difference to the peer with its interval."""
    numbers = [spearman(one, gold) for one in made]
    low, high = interval(made, gold)
    cell = f"{np.mean(numbers):.4f} ({min(numbers):.4f} to {max(numbers):.4f}; {low:.3f} to {high:.3f})"
    if peer is None:
        return [cell, ""]
    low, high = interval(made, gold, minus=peer)
    apart = np.mean(numbers) - np.mean([spearman(one, gold) for one in peer])
    return [cell, f"{apart:+.4f} ({low:+.4f} to {high:+.4f})"]


if __name__ == "__main__":
    main()
