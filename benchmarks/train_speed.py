"""Pairs a second in training on STS-B, ours against sentence-transformers' trainer, and the Spearman that they reach.

    python benchmarks/train_speed.py stsb-en-train.csv stsb-en-dev.csv [--steps 180] [--seeds 3] [--threads 2]
        [--seconds 90] [--way "ours, fp32" ...]

all-MiniLM-L6-v2, batches of 32 pairs, AdamW at 2e-5 with a tenth of warm-up, 128 tokens, the cosine rank loss (theirs:
CoSENTLoss, and AnglELoss), the same pairs drawn by the seed. Ours goes by length (`--batches length`), and encodes each
text of a batch once. In fp32, and in bf16 where the processor multiplies it. Pairs a second are counted from the end of
the first step to the end of the last, in turn; one thread by processor seconds, more by the clock. Spearman is of the
dev set after the last step, so at the same number of pairs and not at the same time; with --seconds each way trains
once more for each seed, on as many batches as its median pace fills that time with, and Spearman is at equal time.
`--steps 6 --seeds 1` is a short look. Printed as Markdown. angle_emb pins other versions of transformers: with
`--angle-emb PYTHON`, the Python of an environment that has it, its trainer is compared as well (train_angle_emb.py), by
its cosine objective.
"""

import argparse
import csv
import json
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset
from scipy.stats import spearmanr
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import AnglELoss, CoSENTLoss
from sentence_transformers.util import pairwise_cos_sim
from transformers import AutoModel, PrinterCallback, TrainerCallback

from stscurate.records import Tally
from stscurate.services.models import locate
from stscurate.training import Schedule, TrainingRows, train_cosent

MODEL, BATCH, TOKENS, RATE = "all-MiniLM-L6-v2", 32, 128, 2e-5
Row = tuple[str, str, float]
Way = Callable[[list[Row], int], tuple[SentenceTransformer, list[float]]]


def now() -> float:
    """Seconds: of the processor on one thread, which other work doesn't lengthen, of the clock on more."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def main() -> None:
    """Run each way in turn for each seed, and print a table."""
    parser = argparse.ArgumentParser(description="Training speed.")
    parser.add_argument("train", type=Path, help="stsb-en-train.csv")
    parser.add_argument("dev", type=Path, help="stsb-en-dev.csv")
    parser.add_argument("--steps", type=int, default=180, help="steps of 32 pairs (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each, seeds from 0 on (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="torch's threads (default: %(default)s)")
    parser.add_argument("--angle-emb", help="Python of an environment that has angle_emb (default: not compared)")
    parser.add_argument("--seconds", type=float, help="train each way for so long, too (default: only for --steps)")
    parser.add_argument("--way", action="append", help="one way alone, by its name in the table (default: all)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    train, dev = _rows(options.train), _rows(options.dev)
    ways: dict[str, Way] = {
        "ours, fp32": lambda rows, seed: ours(rows, seed, "fp32"),
        "sentence-transformers CoSENTLoss, fp32": lambda rows, seed: theirs(rows, seed, CoSENTLoss, "fp32"),
        "sentence-transformers AnglELoss, fp32": lambda rows, seed: theirs(rows, seed, AnglELoss, "fp32"),
        "ours, bf16": lambda rows, seed: ours(rows, seed, "bf16"),
        "sentence-transformers CoSENTLoss, bf16": lambda rows, seed: theirs(rows, seed, CoSENTLoss, "bf16"),
    }
    if options.angle_emb:
        ways["angle_emb, fp32"] = lambda rows, seed: angle_emb(rows, seed, options.angle_emb)
    ways = {name: way for name, way in ways.items() if options.way is None or name in options.way}
    if not ways:
        parser.error(f"--way {', '.join(options.way)}: no such way; take a name of the table.")
    steps = dict.fromkeys(ways, options.steps)
    paces = measured(ways, train, dev, steps, options.seeds)
    if options.seconds:
        print(f"\nEach for {options.seconds:g} s:\n")
        fill = {name: min(round(options.seconds * pace / BATCH), len(train) // BATCH) for name, pace in paces.items()}
        measured(ways, train, dev, fill, options.seeds)


def measured(
    ways: dict[str, Way], train: list[Row], dev: list[Row], steps: dict[str, int], seeds: int
) -> dict[str, float]:
    """Train each way in turn for each seed, print a table, and give the median pace of each, pairs a second."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for seed in range(seeds):
        order = random.Random(seed).sample(train, len(train))
        for name, way in ways.items():
            model, ends = way(order[: steps[name] * BATCH], seed)
            pace = BATCH * (len(ends) - 1) / (ends[-1] - ends[0])
            found[name].append((pace, _spearman(model, dev)))
    print("| way | steps | pairs/s | dev Spearman of each seed |\n|---|---:|---:|---|")
    paces = {name: statistics.median(pace for pace, _ in values) for name, values in found.items()}
    for name, values in found.items():
        numbers = ", ".join(f"{rho:.4f}" for _, rho in values)
        print(f"| {name} | {steps[name]} | {paces[name]:.1f} | {numbers} |", flush=True)
    return paces


def ours(rows: list[Row], seed: int, precision: Any) -> tuple[SentenceTransformer, list[float]]:
    """Our trainer: the model, and the times at which its steps ended."""
    ends: list[float] = []

    def progress(label: str, done: int, total: int | None) -> None:
        if label.startswith("training steps") and done:
            ends.append(now())

    columns: dict[str, list[Any]] = {"sentence1": [], "sentence2": [], "label": []}
    for row in rows:
        for column, value in zip(columns.values(), (row[0], row[1], [row[2], 1.0]), strict=True):
            column.append(value)
    given = TrainingRows([str(i) for i in range(len(rows))], columns, {}, {}, Tally(rows_in=len(rows)))
    schedule = Schedule(
        batch_size=BATCH, learning_rate=RATE, max_tokens=TOKENS, seed=seed, save_steps=10**6, precision=precision,
        batches="length",
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        train_cosent(given, Path(folder) / "model", tau=0.05, model=MODEL, schedule=schedule, progress=progress)
        return SentenceTransformer(str(Path(folder) / "model"), device="cpu"), ends


def theirs(
    rows: list[Row],
    seed: int,
    loss: Any,
    precision: str,
    *,
    rate: float = RATE,
    epochs: int = 1,
    batch_size: int = BATCH,
) -> tuple[SentenceTransformer, list[float]]:
    """sentence-transformers' trainer as its documentation has it, with nothing logged and nothing saved."""
    ends: list[float] = []

    class Watch(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append(now())

    model = SentenceTransformer(str(locate(MODEL).path), device="cpu")
    model.max_seq_length = TOKENS
    with TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=batch_size,
            learning_rate=rate,
            warmup_steps=0.1,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            bf16=precision == "bf16",
            use_cpu=True,
            seed=seed,
            dataloader_pin_memory=False,
        )
        columns = dict(zip(("sentence1", "sentence2", "score"), map(list, zip(*rows, strict=True)), strict=True))
        trainer = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=Dataset.from_dict(columns), loss=loss(model), callbacks=[Watch()]
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return model, ends


def angle_emb(rows: list[Row], seed: int, python: str) -> tuple[SentenceTransformer, list[float]]:
    """angle_emb's trainer in a process of its own; its backbone in the model that it started from."""
    start = locate(MODEL).path
    with TemporaryDirectory() as folder:
        (Path(folder) / "rows.json").write_text(json.dumps(rows))
        script = str(Path(__file__).with_name("train_angle_emb.py"))
        given = [str(Path(folder) / "rows.json"), str(start), str(Path(folder) / "out"), str(torch.get_num_threads())]
        done = subprocess.run([python, script, *given, str(seed)], check=True, stdout=subprocess.PIPE, text=True)
        model = SentenceTransformer(str(start), device="cpu")
        model[0].model = AutoModel.from_pretrained(str(Path(folder) / "out"))
    ends: list[float] = json.loads(done.stdout.splitlines()[-1])
    return model, ends


def _rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return [(row[0], row[1], float(row[2]) / 5) for row in csv.reader(file)]


def _spearman(model: SentenceTransformer, rows: list[Row]) -> float:
    sides = [model.encode([row[side] for row in rows], convert_to_tensor=True) for side in (0, 1)]
    return float(spearmanr(pairwise_cos_sim(*sides).cpu().numpy(), [row[2] for row in rows]).statistic)


if __name__ == "__main__":
    main()
