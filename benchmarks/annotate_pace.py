#!/usr/bin/env python3
"""Wall time of asking a chat server, against the least that its latency, or its limit, allows.

Peers, each in an environment of its own, are measured between our rounds where their interpreters are given.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import openai  # noqa: F401 - its import, of a second or more, is no part of what is measured

from benchmarks.bare_client import ask_bare, bodies
from benchmarks.chat_server import Served
from stscurate.annotators import annotate
from stscurate.records import PAIRS, Tally, from_rows
from stscurate.store import Run

HERE = Path(__file__).parent


def make_run(folder: Path, count: int) -> None:
    """Pairs of short texts, all different."""
    rows = [
        dict.fromkeys(PAIRS.names)
        | {"pair_id": f"p{i}", "text1": f"It crashes at start {i}.", "text2": f"The start crashes, says {i}."}
        | {"weight": 1.0, "origin": "made-up", "flags": []}
        for i in range(count)
    ]
    with Run.open(folder) as run:
        stage = run.stage("pairs", tables=["pairs"], inputs={}, settings={})
        stage.write(0, {"pairs": from_rows(rows, "pairs")}, Tally(rows_in=count))
        stage.commit()


def ours(url: str, count: int, concurrency: int) -> tuple[float, int]:
    """Seconds of `annotate` from pairs to the table of votes, and votes."""
    with tempfile.TemporaryDirectory() as folder:
        make_run(Path(folder) / "run", count)
        with Run.open(Path(folder) / "run") as run:
            began = time.perf_counter()
            entry = annotate(run, [f"judge={url}#m"], concurrency=concurrency)
            return time.perf_counter() - began, entry.rows - sum(entry.tally.counts.get("failed", {}).values())


def bare(url: str, count: int, concurrency: int) -> tuple[float, int]:
    """The `openai` client alone, its answers dropped: what this machine allows at this time."""
    with tempfile.TemporaryDirectory() as folder:
        make_run(Path(folder) / "run", count)
        sent = bodies(Path(folder) / "run")
    began = time.perf_counter()
    asyncio.run(ask_bare(url, sent, concurrency, aiohttp=True))
    return time.perf_counter() - began, count


def peer(python: str, name: str, url: str, count: int, concurrency: int) -> tuple[float, int]:
    """The same asks by a peer, which says its seconds and answers itself, so that its imports don't count."""
    command = [python, str(HERE / "annotate_peers.py"), name, url, str(count), str(concurrency)]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOME": folder, "PYTHONPATH": ""}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
            )
            found = json.loads(done.stdout.strip().splitlines()[-1])
            return float(found["seconds"]), int(found["answers"])
        except subprocess.TimeoutExpired:
            return 300.0, 0
        except (IndexError, ValueError, TypeError):
            print(done.stderr[-2000:], file=sys.stderr)
            return float("nan"), 0


def main() -> None:
    """Rounds of ours and the peers, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=2.0, help="seconds")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--per-minute", type=int, default=0, help="the server's limit, a bucket of 60")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--distilabel", help="a Python that has it")
    parser.add_argument("--curator", help="a Python that has it")
    arguments = parser.parse_args()
    with Served() as served:
        ours(served.url, 5, 1)
        bare(served.url, 5, 1)  # what is imported at the first request is no part of what is measured
    peers = {"distilabel": arguments.distilabel, "curator": arguments.curator}
    for concurrency in arguments.concurrency:
        if arguments.per_minute:
            least = max(arguments.pairs - 60, 0) / arguments.per_minute * 60 + arguments.latency
        else:
            least = arguments.latency * -(-arguments.pairs // concurrency)
        rows: dict[str, list[tuple[float, int, int]]] = {}
        for _ in range(arguments.rounds):
            own_names = ["ours"] if arguments.per_minute else ["ours", "bare client"]
            for name in own_names + [name for name, python in peers.items() if python]:
                with Served(latency=arguments.latency, per_minute=arguments.per_minute) as served:
                    how = (served.url, arguments.pairs, concurrency)
                    own = {"ours": ours, "bare client": bare}.get(name)
                    seconds, labels = own(*how) if own else peer(peers[name], name, *how)
                    rows.setdefault(name, []).append((seconds, labels, served.counts()["refused"]))
        for name, found in rows.items():
            middle = statistics.median(row[0] for row in found)
            conditions = f"{arguments.pairs} pairs, {arguments.latency:g} s, {concurrency} in flight"
            every, refused = ("/".join(str(row[place]) for row in found) for place in (1, 2))
            took = f"{middle:.2f} s, {middle / least:.3f} of the least {least:g} s"
            print(f"| {name} | {conditions} | {took} | labels {every}; 429: {refused} |", flush=True)


if __name__ == "__main__":
    main()
