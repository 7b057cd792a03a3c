"""An hour of GH Archive: what reading it costs against its bare decompression by the same library.

    PYTHONPATH=. python benchmarks/gharchive.py

The hour is made up (gharchive_hour.py): 180,000 events. Least of some repeats, taken in turn, each in this one process
but the last row, whose peak memory is that of a process of its own. The same pipeline is also measured reading by
Python's gzip (zlib), against zlib's bare decompression: ratios are to that of the same library.
"""

import argparse
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from isal import igzip

from benchmarks.gharchive_hour import write_hour
from stscurate.sources.gharchive import collect_from_archive, read_archive
from stscurate.sources.gharchive.lines import Hour
from stscurate.sources.gharchive.reading import Task, read_file
from stscurate.sources.lists import Listed, OptOut
from stscurate.store import Run

LISTED = 55


def bare(path: Path, opener: Any) -> int:
    """Decompress into one buffer and throw it away."""
    buffer, size = bytearray(1 << 19), 0
    with opener(path, "rb") as file:
        while read := file.readinto(buffer):
            size += read
    return size


def prefilter(path: Path, repositories: frozenset[str] | None) -> int:
    """Find the lines that have to be parsed."""
    return sum(1 for _ in Hour(path, repositories).lines())


def parsed(path: Path, repositories: frozenset[str] | None) -> int:
    """The same, parsed into tables of events."""
    task = Task(0, path, path.name, repositories, OptOut())
    return sum(part.events.num_rows for part in read_file(task))


def everything(path: Path, repositories: frozenset[str] | None) -> int:
    """Both stages into a run: read, parsed, written, merged by issue, cleaned, linked and written."""
    listed = None if repositories is None else [Listed(name, ()) for name in sorted(repositories)]
    with tempfile.TemporaryDirectory() as folder, Run.open(Path(folder) / "run") as run:
        read_archive(run, path, repositories=listed, workers=1)
        return collect_from_archive(run, repositories=listed).rows


def everything_by_zlib(path: Path, repositories: frozenset[str] | None) -> int:
    """Both stages, with hours read by Python's gzip in the place of isal."""
    with patch.object(igzip, "IGzipFile", gzip.GzipFile):
        return everything(path, repositories)


def measure(ways: dict[str, Callable[[], int]], repeats: int) -> None:
    """Print a row for each way."""
    found: dict[str, int] = {}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            began = time.perf_counter(), time.process_time()
            found[name] = way()
            seconds[name].append((time.perf_counter() - began[0], time.process_time() - began[1]))
    least = {name: [min(column) for column in zip(*rows, strict=True)] for name, rows in seconds.items()}
    print("| what | gives | wall, s | ratio | processor, s | ratio |\n|---|---:|---:|---:|---:|---:|")
    for name, (wall, work) in least.items():
        base = least["bare gzip (zlib)" if "zlib" in name else "bare isal"]
        print(f"| {name} | {found[name]:,} | {wall:.2f} | {wall / base[0]:.2f} | {work:.2f} | {work / base[1]:.2f} |")


def main() -> None:
    """Make the hour where it isn't given, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hour", type=Path, help="file to read; made anew without it")
    parser.add_argument("--events", type=int, default=180_000)
    parser.add_argument("--duplicates", type=float, default=0.01, help="share of the comments on issues")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="store_true", help="do everything once and print the peak memory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hour = given.hour or Path(folder) / "2024-03-05-15.json.gz"
        if not hour.exists():
            write_hour(hour, events=given.events, duplicates=given.duplicates)
        if given.only:
            before = peak()
            everything(hour, None)
            print(f"\npeak memory of everything: {peak()} MB, of which {before} after the imports alone")
            return
        names = sorted({event["repository"] for event in _events(hour)})
        listed = frozenset(names[:: max(1, len(names) // LISTED)][:LISTED])
        size = bare(hour, igzip.open)
        print(f"{hour.stat().st_size / 1e6:.0f} MB, {size / 1e6:.0f} MB decompressed, {len(names):,} repositories\n")
        measure(
            {
                "bare isal": partial(bare, hour, igzip.open),
                "bare gzip (zlib)": partial(bare, hour, gzip.open),
                "prefilter": partial(prefilter, hour, None),
                f"prefilter, {LISTED} repositories": partial(prefilter, hour, listed),
                "parsed": partial(parsed, hour, None),
                "everything": partial(everything, hour, None),
                f"everything, {LISTED} repositories": partial(everything, hour, listed),
                "everything by zlib": partial(everything_by_zlib, hour, None),
                f"everything, {LISTED} repositories, by zlib": partial(everything_by_zlib, hour, listed),
            },
            given.repeats,
        )
        subprocess.run([sys.executable, __file__, "--only", "--hour", hour], check=True)


def peak() -> int:
    """The most memory of this process so far, in MB; Linux only."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 // 10**6


def _events(hour: Path) -> list[dict[str, Any]]:
    return [row for part in read_file(Task(0, hour, "", None, OptOut())) for row in part.events.to_pylist()]


if __name__ == "__main__":
    main()
