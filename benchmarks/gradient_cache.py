"""A training step of 4,096 pairs by the gradient cache against the plain step of 64: seconds a pair, and memory.

    python benchmarks/gradient_cache.py stsb-en-train.csv [--pairs 4096] [--plain 64] [--micro-batch 64]

all-MiniLM-L6-v2 in fp32, forward and backward (no optimiser), the joint AnglE loss, 128 tokens, STS-B's pairs drawn
with seed 0 (the file begins with its shortest). Each way runs in a process of its own, since a process's peak only
rises: what is given is the peak of resident memory less what was resident when model, batch and gradients stood.
Printed as Markdown.
"""

import argparse
import csv
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    """Run each way in turn, print a table."""
    parser = argparse.ArgumentParser(description="The gradient cache: seconds and memory.")
    parser.add_argument("file", type=Path, help="stsb-en-train.csv")
    parser.add_argument("--pairs", type=int, default=4096, help="pairs of the cached step (default: %(default)s)")
    parser.add_argument("--plain", type=int, default=64, help="pairs of the plain step (default: %(default)s)")
    parser.add_argument("--micro-batch", type=int, default=64, help="texts encoded at once (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=1, help="cached steps; of plain ones 5 (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads (default: %(default)s)")
    parser.add_argument("--one", choices=("plain", "cached"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(step(options)))
        return
    print("| step | pairs | s | ms a pair | peak beyond model and batch, MB |\n|---|---:|---:|---:|---:|")
    for way in ("plain", "cached"):
        command = [sys.executable, *sys.argv, "--one", way]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        each = 1000 * found["seconds"] / found["pairs"]
        print(f"| {way} | {found['pairs']:,} | {found['seconds']:.2f} | {each:.1f} | {found['peak']:.0f} |", flush=True)


def step(options: argparse.Namespace) -> dict[str, float]:
    """Median seconds of a step, and its peak in MB."""
    import torch
    from sentence_transformers import SentenceTransformer

    from stscurate.services.models import locate
    from stscurate.training.losses import CachedLoss, JointAngleLoss

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    pairs = options.plain if options.one == "plain" else options.pairs
    with options.file.open(newline="", encoding="utf-8") as file:
        rows = random.Random(0).sample(list(csv.reader(file)), pairs)
    model = SentenceTransformer(str(locate("all-MiniLM-L6-v2").path), device="cpu").train()
    model.max_seq_length = 128
    batch = [dict(model.preprocess([row[side] for row in rows])) for side in (0, 1)]
    scores = torch.tensor([float(row[2]) / 5 for row in rows])
    loss = JointAngleLoss(model)
    step_of = loss if options.one == "plain" else CachedLoss(loss, options.micro_batch)
    warm = [{key: value[:1] for key, value in column.items() if isinstance(value, torch.Tensor)} for column in batch]
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    loss(warm, scores[:1]).backward()
    before = _resident()
    seconds = []
    for _ in range(5 if options.one == "plain" else options.repeats):
        began = time.perf_counter()
        step_of([dict(column) for column in batch], scores).backward()
        seconds.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    return {"pairs": len(rows), "seconds": statistics.median(seconds), "peak": peak}


def _resident() -> float:
    """Resident memory now, in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main()
