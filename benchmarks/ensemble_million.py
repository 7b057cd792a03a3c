"""A million votes of four annotators: seconds and memory of each method, Dawid-Skene beside crowd-kit's.

    PYTHONPATH=. python benchmarks/ensemble_million.py [--pairs 250000] [--repeats 3] [--methods mean,...]

Made-up votes: the truth of each pair is uniform, each annotator adds normal noise of its own size (seed 0). Seconds of
the processor, medians, the methods in turn; memory above what the votes take, as the process's peak says after each
method in a process of its own. crowd-kit gets the same classes, as the table that it wants.
"""

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from stscurate.ensemble import METHODS, aggregate
from stscurate.records import VOTES

NOISE = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.5}


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Time and memory of aggregating many votes.")
    parser.add_argument("--pairs", type=int, default=250_000, help="pairs, of four votes each (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each (default: %(default)s)")
    parser.add_argument("--methods", default=",".join(METHODS), help="methods, by commas (default: all)")
    options = parser.parse_args()
    methods = options.methods.split(",")
    votes = made(options.pairs)
    works: dict[str, Callable[[], Any]] = {name: partial(aggregate, votes, method=name) for name in methods}
    if "dawid-skene" in methods:
        works["crowd-kit's Dawid-Skene"] = crowdkit(votes)
    # Before anything has run here, whose freed memory a child would use again.
    needed = {name: peak(work) / votes.num_rows for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(options.repeats):
        for name, work in works.items():
            began = time.process_time()
            work()
            seconds[name].append(time.process_time() - began)
    print(f"{votes.num_rows:,} votes, {votes.nbytes / votes.num_rows:.0f} bytes each as a table\n")
    print("| method | s, median | lowest to highest | peak memory above that before, bytes a vote |\n|---|---|---|---|")
    for name, found in seconds.items():
        print(
            f"| {name} | {statistics.median(found):.1f} | {min(found):.1f} to {max(found):.1f} | {needed[name]:.0f} |"
        )


def made(pairs: int) -> pa.Table:
    """The votes, by pair."""
    rng = np.random.default_rng(0)
    truth = rng.random(pairs)
    raw = np.clip(truth[:, None] + rng.normal(0, list(NOISE.values()), (pairs, len(NOISE))), 0, 1).ravel()
    columns: dict[str, Any] = {entry.name: pa.nulls(len(raw), entry.type) for entry in VOTES}
    for name, value in {"scoring": "s", "prompt": "", "order": "ab", "scale": "0..1"}.items():
        columns[name] = pa.array([value] * len(raw))
    columns |= {
        "pair_id": pa.array([f"p{pair}" for pair in range(pairs) for _ in NOISE]),
        "annotator": pa.array(list(NOISE) * pairs),
        "raw": pa.array(raw),
        "sample": pa.array(np.zeros(len(raw), np.int16)),
        "cut": pa.array(np.zeros(len(raw), np.int32)),
    }
    return pa.table(columns, schema=VOTES)


def crowdkit(votes: pa.Table) -> Callable[[], Any]:
    """Their Dawid-Skene on the same six classes, as many rounds at most as ours."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    frame = pd.DataFrame(
        {
            "task": votes["pair_id"].to_pylist(),
            "worker": votes["annotator"].to_pylist(),
            "label": np.rint(votes["raw"].to_numpy() * 5).astype(int),
        }
    )
    return lambda: DawidSkene(n_iter=100, tol=1e-5).fit_predict_proba(frame)


def peak(work: Callable[[], Any]) -> float:
    """Bytes that a process needs above what it begins with, in a child that has the votes already."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        work()
        os.write(write, str(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return float(os.read(read, 100))


if __name__ == "__main__":
    main()
