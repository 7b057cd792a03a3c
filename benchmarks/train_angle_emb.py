"""angle_emb's trainer on the pairs of a JSON file, for train_speed.py: run by the Python of an environment of its own.

    PYTHON benchmarks/train_angle_emb.py ROWS.json MODEL OUT THREADS SEED

ROWS.json: [text1, text2, score 0..1] a row. Prints, as its last line, the times of the steps (processor seconds
on one thread, else the clock), and saves the backbone in OUT. The settings are those of train_speed.py; the loss is its
cosine objective alone, the rank loss in the form of a matrix. Needs nothing of stscurate.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import angle_emb.angle
import torch
from angle_emb import AnglE
from angle_emb.angle import AngleTrainer
from datasets import Dataset


def main() -> None:
    """Train, and tell the times."""
    rows_file, model, out, threads, seed = sys.argv[1:]
    torch.set_num_threads(int(threads))
    now = time.process_time if int(threads) == 1 else time.perf_counter
    ends: list[float] = []

    class Timed(AngleTrainer):  # type: ignore[misc]
        """Its `fit` takes no callbacks: the times are those at which gradients are there, a step apart."""

        def training_step(self, *given: Any, **named: Any) -> Any:
            found = super().training_step(*given, **named)
            ends.append(now())
            return found

    angle_emb.angle.AngleTrainer = Timed
    rows = json.loads(Path(rows_file).read_text())
    columns = dict(zip(("text1", "text2", "label"), map(list, zip(*rows, strict=True)), strict=True))
    angle = AnglE.from_pretrained(model, max_length=128, pooling_strategy="mean", device="cpu")
    angle.fit(
        train_ds=Dataset.from_dict(columns),
        output_dir=out,
        batch_size=32,
        epochs=1,
        learning_rate=2e-5,
        warmup_steps=len(rows) // 320,
        save_strategy="no",
        argument_kwargs={"seed": int(seed), "use_cpu": True, "report_to": "none", "disable_tqdm": True},
        loss_kwargs={"cosine_w": 1.0, "ibn_w": 0.0, "angle_w": 0.0},
    )
    print(json.dumps(ends))


if __name__ == "__main__":
    main()
