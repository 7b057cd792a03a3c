"""Which angle trains better, and at which temperature: STS-B, SICK and duplicate issues, read on dev.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/objectives.py FOLDER --work WORK [--set stsb] [--rows 0]
        [--seeds 1] [--batch-size 64] [--kind "code at 0.2" ...]

FOLDER holds stsb, sick and issues as published. From all-MiniLM-L6-v2, one pass over train, rate 2e-5, 128 tokens,
fp32. stsb: read on dev; sick: on trial; rust: pairs of `collect-issues` from the rust issues (half of them duplicates,
splits by component and time), read on its own dev. --rows of train are drawn by seed 7, 0 takes all. A temperature is
that of the cosine and of the angle; the in-batch term keeps .05. Spearman, for rust average precision too: mean, lowest
and highest of the seeds, and Spearman of the part without a text of train. WORK keeps what is computed.
"""

import argparse
import random
import tempfile
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from benchmarks.fits import START, Floats, Recipe, cosines, said, unit, unseen
from benchmarks.label_curves import of_sick
from benchmarks.local_annotators import Rows, stsb
from stscurate.methods.correlation import average_precision, spearman
from stscurate.pairing import make_pairs
from stscurate.services.models import locate
from stscurate.sources import collect_issues
from stscurate.store import Run

ALL, COSINE, ANGLE = (1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
KINDS = {
    **{f"cosine at {tau:g}": Recipe(COSINE, (tau, 0.05, tau)) for tau in (0.05, 0.2)},
    **{f"code at {tau:g}": Recipe(ANGLE, (tau, 0.05, tau)) for tau in (0.05, 0.2)},
    **{f"symmetric at {tau:g}": Recipe(ANGLE, (tau, 0.05, tau), "symmetric") for tau in (0.05, 0.2, 1.0)},
    **{f"all terms at {tau:g}": Recipe(ALL, (tau, 0.05, tau)) for tau in (0.05, 0.1, 0.2, 0.5)},
    "all terms at 0.2, symmetric at 1": Recipe(ALL, (0.2, 0.05, 1.0), "symmetric"),
}


def main() -> None:
    """Parse, train, read, print."""
    parser = argparse.ArgumentParser(description="Angles and temperatures on three sets.")
    parser.add_argument("folder", type=Path, help="folder with the data")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps what is computed")
    parser.add_argument("--set", choices=["stsb", "sick", "rust"], default="stsb", help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=0, help="pairs of train, 0 for all (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64, help="pairs a step (default: %(default)s)")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="one kind (default: all)")
    given = parser.parse_args()
    train, read = SETS[given.set](given.folder)
    train = unit(random.Random(7).sample(train, given.rows) if given.rows else train)
    gold, clean = np.array([row[2] for row in read]), unseen(read, train)
    print(f"{given.set}: {len(train)} pairs of train, {len(read)} read, {clean.sum()} of them without a text of train")
    print("\n| trained by | Spearman | clean | AP |\n|---|---|---|---|", flush=True)
    start = cosines(SentenceTransformer(str(locate(START).path), device="cpu"), read)
    told("nothing", start[None], gold, clean)
    for kind in given.kind or KINDS:
        recipe = Recipe(**(vars(KINDS[kind]) | {"batch_size": given.batch_size}))
        found = [said(given.work, train, recipe, seed=seed, read=read) for seed in range(given.seeds)]
        told(kind, np.stack(found), gold, clean)


def told(kind: str, made: Floats, gold: Floats, clean: np.ndarray) -> None:
    """Print a row."""
    cells = [[spearman(one, gold) for one in made], [spearman(one[clean], gold[clean]) for one in made]]
    if set(gold) == {0, 5}:
        cells.append([average_precision(gold == 5, one) for one in made])
    shown = [f"{np.mean(cell):.4f} ({min(cell):.4f} to {max(cell):.4f})" for cell in cells]
    print(f"| {kind} | {' | '.join(shown + [''] * (3 - len(shown)))} |", flush=True)


def rust(folder: Path) -> tuple[Rows, Rows]:
    """Train and dev of the pairs of the rust issues; the duplicates have 5 as their gold, the others 0."""
    with tempfile.TemporaryDirectory() as place, Run.open(Path(place) / "run") as run:
        collect_issues(run, folder / "issues" / "rust-issues.jsonl.xz", moved={"mozilla/rust": "rust-lang/rust"})
        make_pairs(run)
        pairs = run.table("pairs").to_pylist()
    rows = {split: [row for row in pairs if row["split"] == split] for split in ("train", "validation")}
    found = [[(row["text1"], row["text2"], 5.0 * row["label"]) for row in rows[split]] for split in rows]
    return found[0], found[1]


SETS = {
    "stsb": lambda folder: (stsb(folder, "train"), stsb(folder, "dev")),
    "sick": lambda folder: (of_sick(folder, "train"), of_sick(folder, "trial")),
    "rust": rust,
}


if __name__ == "__main__":
    main()
