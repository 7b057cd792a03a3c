#!/usr/bin/env python3
"""Memory of `annotate` while the answers of many pairs arrive: resident size after each tenth of them."""

import argparse
import os
import tempfile
from pathlib import Path

import openai  # noqa: F401 - its import is no part of what is measured

from benchmarks.annotate_pace import make_run
from benchmarks.chat_server import Served
from stscurate.annotators import annotate
from stscurate.store import Run


def resident() -> float:
    """MiB that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Annotate, and look at each tenth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--concurrency", type=int, default=200)
    arguments = parser.parse_args()
    sizes: dict[int, float] = {}

    def progress(label: str, done: int, total: int | None) -> None:
        if label.startswith("votes of judge; ") and total:
            sizes.setdefault(done * 10 // total, resident())

    with Served() as served, tempfile.TemporaryDirectory() as place:
        make_run(Path(place) / "run", arguments.pairs)
        with Run.open(Path(place) / "run") as run:
            entry = annotate(run, [f"judge={served.url}#m"], concurrency=arguments.concurrency, progress=progress)
        after = resident()
        assert entry.rows == served.counts()["answered"] == arguments.pairs
    shown = ", ".join(f"{size:.0f}" for _, size in sorted(sizes.items()))
    conditions = f"{arguments.pairs:,} answers, {arguments.concurrency} in flight"
    print(f"| {conditions} | MiB at each tenth: {shown}; after the table of votes: {after:.0f} |")


if __name__ == "__main__":
    main()
