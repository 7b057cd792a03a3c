#!/usr/bin/env python3
"""`stscurate annotate` killed by SIGKILL at random moments and called again: votes in the end, requests sent twice."""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.chat_server import Served
from stscurate.store import Run


def main() -> None:
    """Kill, call again, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=600)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with Served(latency=arguments.latency) as served, tempfile.TemporaryDirectory() as place:
        pairs, run = Path(place) / "pairs.csv", Path(place) / "run"
        pairs.write_text("text1,text2\n" + "".join(f"It crashes {i}.,It stops {i}.\n" for i in range(arguments.pairs)))
        command = [sys.executable, "-m", "stscurate", "annotate", str(pairs), "--llm", f"judge={served.url}#m"]
        command += ["--concurrency", str(arguments.concurrency), "--out", str(run), "--quiet"]
        for _ in range(arguments.kills):
            before = served.counts()["answered"]
            process = subprocess.Popen(command)
            # Between the first answer of this call and what is left then, at a moment of chance.
            aim = before + chance.randrange(1, max((arguments.pairs - before) // 2, 2))
            while served.counts()["answered"] < aim and process.poll() is None:
                time.sleep(0.01)
            process.kill()
            process.wait()
            print(f"killed at {served.counts()['answered']} requests", file=sys.stderr)
        subprocess.run(command, check=True)
        votes = Run(run).table("votes")
        counts = served.counts()
        good = votes.num_rows - votes["raw"].null_count
        twice, most = counts["answered"] - counts["questions"], arguments.kills * arguments.concurrency
        print(
            f"| {arguments.kills} kills, {arguments.pairs} pairs, {arguments.concurrency} in flight, "
            f"seed {arguments.seed} | {good} votes; {counts['answered']} requests, {twice} of them a second time "
            f"(in flight at the kills: {most} at most) |"
        )


if __name__ == "__main__":
    main()
