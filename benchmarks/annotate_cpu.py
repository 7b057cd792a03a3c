#!/usr/bin/env python3
"""Processor time of the client per request, `annotate` against the bare `openai` client that asks the same.

Ours is all of it: pairs read, prompts made, keys, requests, answers read and committed, votes written. Bare is the
client's own call in as many workers, its answers dropped. In turn, medians; the server is a process of its own.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.annotate_pace import make_run
from benchmarks.bare_client import ask_bare, bodies
from benchmarks.chat_server import Served
from stscurate.annotators import annotate
from stscurate.store import Run


def main() -> None:
    """Rounds of all three, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    found: dict[str, list[float]] = {"annotate": [], "bare, aiohttp": [], "bare, default transport": []}
    for _ in range(arguments.rounds):
        for name, spent in found.items():
            with Served(latency=arguments.latency) as served, tempfile.TemporaryDirectory() as place:
                folder = Path(place) / "run"
                make_run(folder, arguments.requests)
                sent = bodies(folder)
                began = time.process_time()
                if name == "annotate":
                    with Run.open(folder) as run:
                        entry = annotate(run, [f"judge={served.url}#m"], concurrency=arguments.concurrency)
                        assert entry.rows == arguments.requests
                else:
                    asyncio.run(ask_bare(served.url, sent, arguments.concurrency, aiohttp="aiohttp" in name))
                spent.append((time.process_time() - began) / arguments.requests * 1000)
                assert served.counts()["answered"] == arguments.requests
    base = statistics.median(found["bare, aiohttp"])
    for name, spent in found.items():
        middle = statistics.median(spent)
        print(f"| {name} | {middle:.2f} ms a request ({min(spent):.2f} to {max(spent):.2f}) | {middle / base:.2f} |")


if __name__ == "__main__":
    main()
