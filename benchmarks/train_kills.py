#!/usr/bin/env python3
"""`train angle` killed by SIGKILL at random steps and called again: are the weights those of an unbroken training?

    python benchmarks/train_kills.py stsb-en-train.csv [--rows 200] [--epochs 2] [--kills 5] [--seed 0]

FILE has sentence1, sentence2, score 0 to 5, without a header line. Prints a Markdown row.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from stscurate.disk import fingerprint
from stscurate.tables import pairs_source
from stscurate.training import Schedule, pair_rows, train_angle


def train(file: Path, out: Path, rows: int, epochs: int) -> None:
    """Train on the first rows in this process, and tell each step on standard output."""

    def progress(label: str, done: int, total: int | None) -> None:
        print("step", done, total, flush=True)

    torch.set_num_threads(1)
    source = pairs_source(file, columns="sentence1,sentence2,score", scale="0-5")
    pairs = pair_rows(source.table.slice(0, rows), inputs=source.inputs)
    schedule = Schedule(epochs=epochs, save_steps=3, precision="fp32")
    train_angle(pairs, out, schedule=schedule, progress=progress)


def main() -> None:
    """Train once, then once with kills, and compare the folders byte for byte."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)  # a call of this script by itself
    given = parser.parse_args()
    if given.out:
        train(given.file, given.out, given.rows, given.epochs)
        return
    chance, killed = random.Random(given.seed), []
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "killed"
        call = [sys.executable, __file__, *sys.argv[1:]]
        subprocess.run([*call, "--out", str(Path(place) / "unbroken")], check=True, stdout=subprocess.DEVNULL)
        for _ in range(given.kills):
            with subprocess.Popen([*call, "--out", str(out)], stdout=subprocess.PIPE, text=True) as process:
                aim = None
                for line in process.stdout or ():
                    _, step, steps = line.split()
                    # of this call, any step but the last, so that there is one to kill; and a moment within it
                    aim = aim or chance.randrange(int(step), max(int(steps), int(step) + 1))
                    if int(step) >= aim:
                        time.sleep(chance.random())
                        process.kill()
                        killed.append(int(step))
                        break
        subprocess.run([*call, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        same = fingerprint(out) == fingerprint(Path(place) / "unbroken")
        names = sorted(path.name for path in Path(place).iterdir())
    print(
        f"| {given.rows} rows, {given.epochs} epochs of batches of 32, kills after the steps "
        f"{', '.join(map(str, killed))}, seed {given.seed} | {'the same' if same else 'OTHER'} bytes as unbroken, "
        f"the whole folder; left beside it: {', '.join(names)} |"
    )


if __name__ == "__main__":
    main()
