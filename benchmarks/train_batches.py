"""Training on STS-B by the order of its batches: processor time, padding, and what is learnt.

    python benchmarks/train_batches.py FOLDER [--rows 2000] [--seeds 1] [--groups 16,64] [--orders random,length]

FOLDER holds stsb-en-train.csv and stsb-en-dev.csv (sentence1, sentence2, score 0 to 5, without a header line). Prints a
Markdown row for each order of batches and size of the groups that are encoded at once.
"""

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from stscurate.tables import pairs_source
from stscurate.training import (
    Schedule,
    TrainingRows,
    Validation,
    fitting,
    pair_rows,
    train_angle,
    validation_set,
)
from stscurate.training.batches import Order

COLUMNS = "sentence1,sentence2,score"


def main() -> None:
    """Train once for each order, group and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--groups", default="16,64")
    parser.add_argument("--orders", default=",".join(get_args(Order)))
    given = parser.parse_args()
    source = pairs_source(given.folder / "stsb-en-train.csv", columns=COLUMNS, scale="0-5")
    rows = pair_rows(source.table.slice(0, given.rows), inputs=source.inputs)
    validation = validation_set(given.folder / "stsb-en-dev.csv", columns=COLUMNS, scale="0-5")
    print("| batches | texts at once | seed | processor s | padding | dev Spearman |\n|---|---|---|---|---|---|")
    for seed in range(given.seeds):
        for order in given.orders.split(","):
            for group in (int(size) for size in given.groups.split(",")):
                fitting._GROUP = group
                with TemporaryDirectory() as folder:
                    spent = _train(rows, Path(folder) / "model", order, seed, validation)
                    found = json.loads((Path(folder) / "model" / "training_curve.json").read_text())
                print(
                    f"| {order} | {group} | {seed} | {spent:.0f} | {found['padding_share']:.1%} | "
                    f"{found['points'][-1]['spearman']:.4f} |",
                    flush=True,
                )


def _train(rows: TrainingRows, out: Path, order: Order, seed: int, validation: Validation) -> float:
    """Processor seconds of the steps, the looks left out."""
    marks = {"began": 0.0, "ended": 0.0}

    def progress(label: str, done: int, total: int | None) -> None:
        if label.startswith("training steps") and done == 1:
            marks["began"] = time.process_time()
        elif label.startswith("training steps") and total and done == total - 1:
            marks["ended"] = time.process_time()

    schedule = Schedule(seed=seed, batches=order, eval_steps=10**6, precision="fp32")
    train_angle(rows, out, taus=(0.05, 0.05, 0.05), schedule=schedule, validation=validation, progress=progress)
    return marks["ended"] - marks["began"]


if __name__ == "__main__":
    main()
