#!/usr/bin/env python3
"""What a push to the Hub costs, against the local Hub of the tests, which is a process of its own here.

requests: those of a first push, of a changed split, and of an unchanged rerun, read-back left out and counted apart.
time: from rows in memory to a commit on the Hub, ours (Parquet, SHA256SUMS, push; with and without reading back) and
`datasets.DatasetDict.push_to_hub`, on the same rows, in turn, medians; seconds of the wall and of this processor.
memory: the peaks of the process that makes the folder of a run, of the one that pushes it, and of the one that reads
back, for runs of two sizes: anonymous memory, and with it the pages of mapped files, which the system may take back.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.local_hub import LocalHub

CARD = """---
configs:
- config_name: pairs
  data_files:
  - split: train
    path: data/pairs/train-*
---
"""
FROM_RUN = """
import sys
from pathlib import Path
from stscurate.publishing import publish_folder
from stscurate.store import Run
with Run.open(Path(sys.argv[1]), new=False) as run:
    publish_folder(run, Path(sys.argv[2]), licence="cc0-1.0")
"""
DELIVER = """
import sys
from pathlib import Path
from benchmarks.publish import delivered
delivered(Path(sys.argv[1]), sys.argv[2])
"""
WORDS = 5_000


def make_files(folder: Path, rows: int, mark: str) -> None:
    """A set of one config and split in the folder, its texts made up, each shard in memory alone."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from stscurate.publishing.checksums import write_checksums
    from stscurate.publishing.layouts import Layout
    from stscurate.publishing.writing import SHARD_ROWS, write_layout

    shards = -(-rows // SHARD_ROWS)
    for shard in range(shards):
        numbers = np.arange(shard * SHARD_ROWS, min((shard + 1) * SHARD_ROWS, rows))
        words = pa.array(numbers).cast(pa.string())
        sides = (f"{side} sentence, {mark}, number" for side in ("One", "Other"))
        texts = [pc.binary_join_element_wise(side, words, " ") for side in sides]
        score = pa.array(np.random.default_rng(shard).random(len(numbers)))
        table = pa.table({"sentence1": texts[0], "sentence2": texts[1], "score": score})
        split = pa.chunked_array([pa.repeat("train", len(numbers))])
        write_layout(Layout.of_table("pairs", table, split), folder / "made")
        place = folder / "data" / "pairs"
        place.mkdir(parents=True, exist_ok=True)
        made = next((folder / "made").rglob("*.parquet"))
        made.rename(place / f"train-{shard:05}-of-{shards:05}.parquet")
    for path in (folder / "made" / "data" / "pairs", folder / "made" / "data", folder / "made"):
        path.rmdir()
    (folder / "README.md").write_text(CARD)
    write_checksums(folder)


def delivered(folder: Path, name: str, *, read_back: bool = True) -> None:
    """Push the folder as `publish` does."""
    from stscurate.publishing.delivery import deliver
    from stscurate.publishing.outgoing import read_folder
    from stscurate.publishing.push import Options
    from stscurate.publishing.verify import reload
    from stscurate.services.hub import HubRepository

    check = reload if read_back else lambda *arguments: 0
    options = Options("Publish it", direct=True)
    deliver(HubRepository(name, "dataset"), read_folder(folder), folder, options, reload=check)


def requests(hub: LocalHub, folder: Path) -> None:
    """Count by the hub's log, in this process."""
    make_files(folder / "first", 250_000, "first")
    make_files(folder / "second", 250_000, "second")
    for path in sorted((folder / "first" / "data").rglob("*.parquet"))[1:]:  # one of three files is another
        (folder / "second" / path.relative_to(folder / "first")).write_bytes(path.read_bytes())
    from stscurate.publishing.checksums import write_checksums

    write_checksums(folder / "second")
    print("| push of 3 shards | reads | questions before sending | uploads | writes | read back |")
    for what, place in (("first", "first"), ("unchanged", "first"), ("a file changed", "second")):
        counts = []
        for read_back in (False, True):
            name = f"me/requests{read_back}"
            hub.log.clear()
            delivered(folder / place, name, read_back=read_back)
            counts.append(list(hub.log))
        ours, with_reading = counts
        reads = sum(asked.method in ("GET", "HEAD") for asked in ours)
        puts = sum(asked.method == "PUT" for asked in ours)
        writes = sum(asked.writes for asked in ours) - puts
        asks = len(ours) - reads - puts - writes
        commits = [number for number, asked in enumerate(with_reading, start=2) if "/commit/" in asked.path]
        back = len(with_reading[commits[0] :]) if commits else 0  # past the commit and the listing behind it
        print(f"| {what} | {reads} | {asks} | {puts} | {writes} | {back} |")


def spent(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the wall, and of the processor with its children."""

    def used() -> float:
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    wall, processor = time.perf_counter(), used()
    call()
    return time.perf_counter() - wall, used() - processor


def times(folder: Path, rows: int, rounds: int) -> None:
    """In turn, each time on rows that the Hub hasn't seen."""
    import datasets

    datasets.disable_progress_bars()
    found: dict[str, list[tuple[float, float]]] = {"push_to_hub": [], "ours": [], "ours, read back": []}
    for number in range(rounds):
        for way in found:
            mark = f"{number} {way}"
            make_files(folder / mark / "source", rows, mark)
            files = sorted(str(path) for path in (folder / mark / "source").rglob("*.parquet"))
            data = datasets.load_dataset("parquet", data_files={"train": files}, cache_dir=str(folder / mark / "cache"))
            name = f"me/time-{number}-{list(found).index(way)}"

            def ours(name: str = name, mark: str = mark, data: Any = data, read_back: bool = "back" in way) -> None:
                import pyarrow as pa

                from stscurate.publishing.checksums import write_checksums
                from stscurate.publishing.layouts import Layout
                from stscurate.publishing.writing import write_layout

                table = data["train"].data.table
                place = folder / mark / "out"
                split = pa.chunked_array([pa.repeat("train", table.num_rows)])
                write_layout(Layout.of_table("pairs", table, split), place)
                (place / "README.md").write_text(CARD)
                write_checksums(place)
                delivered(place, name, read_back=read_back)

            push = (lambda name=name, data=data: data.push_to_hub(name, private=True)) if way == "push_to_hub" else ours
            found[way].append(spent(push))
    for way, seconds in found.items():
        wall, processor = (statistics.median(column) for column in zip(*seconds, strict=True))
        spread = f"{min(one[0] for one in seconds):.2f} to {max(one[0] for one in seconds):.2f}"
        print(f"| {way} | {rows:,} rows | {wall:.3f} s ({spread}) | {processor:.3f} s of the processor |")


def make_run(folder: Path, rows: int) -> None:
    """A run of made-up scored pairs, two texts of eight words each, one in ten in `test`; a shard in memory alone."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from stscurate.records import PAIRS, Tally
    from stscurate.store import Run

    words = pa.array(["".join(chr(97 + number // 26**place % 26) for place in range(4)) for number in range(WORDS)])
    with Run.open(folder) as run:
        stage = run.stage("pairs", tables=["pairs"], inputs={}, settings={"rows": rows})
        for shard, start in enumerate(range(0, rows, 50_000)):
            draw, count = np.random.default_rng(shard), min(50_000, rows - start)
            numbers = np.arange(start, start + count)
            given: dict[str, Any] = {
                "pair_id": pc.binary_join_element_wise("p", pa.array(numbers).cast(pa.string()), ""),
                "score": pa.array(draw.random(count)),
                "weight": pa.array(np.ones(count)),
                "split": pa.array(np.where(numbers % 10 == 9, "test", "train")),
                "origin": pa.repeat("made up", count),
                "flags": pa.array([[]] * count, pa.list_(pa.string())),
            }
            for side in ("text1", "text2"):
                chosen = [words.take(pa.array(draw.integers(WORDS, size=count))) for _ in range(8)]
                given[side] = pc.binary_join_element_wise(*chosen, " ")
            table = pa.table([given.get(field.name, pa.nulls(count, field.type)) for field in PAIRS], schema=PAIRS)
            stage.write(shard, {"pairs": table}, Tally(rows_in=count))
        stage.commit()


def peaks(code: str, *arguments: str) -> list[tuple[float, float]]:
    """(anonymous MB, resident MB with mapped files) at most, of a process and of those that it starts."""
    most: dict[bool, list[float]] = {True: [0.0, 0.0], False: [0.0, 0.0]}
    with subprocess.Popen([sys.executable, "-c", code, *arguments]) as process:
        while process.poll() is None:
            with suppress(OSError, LookupError):  # it may end meanwhile
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                for pid in (str(process.pid), *children):
                    told = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
                    anonymous, mapped, shared = (
                        int(told[name].split()[0]) / 1e3 for name in ("RssAnon", "RssFile", "RssShmem")
                    )
                    own = most[pid == str(process.pid)]
                    own[:] = max(own[0], anonymous + shared), max(own[1], anonymous + shared + mapped)
            time.sleep(0.02)
    if process.returncode:
        sys.exit(process.returncode)
    return [(most[own][0], most[own][1]) for own in (True, False)]


def memory(folder: Path, rows: int) -> None:
    """A process for each step and size."""
    place = folder / f"{rows}-set"
    make_run(folder / str(rows), rows)
    began = time.monotonic()
    (making, _) = peaks(FROM_RUN, str(folder / str(rows)), str(place))
    seconds = time.monotonic() - began
    size = sum(path.stat().st_size for path in place.rglob("*.parquet")) / 1e6
    pushing, reading = peaks(DELIVER, str(place), f"me/memory{rows}")
    told = (
        f"{what} {anonymous:.0f} MB ({resident:.0f} with mapped files)"
        for what, (anonymous, resident) in (("making", making), ("pushing", pushing), ("reading back", reading))
    )
    print(f"| {rows:,} pairs, {size:.0f} MB, {seconds:.0f} s | {' | '.join(told)} |", flush=True)


@contextmanager
def served(storage: Path) -> Iterator[str]:
    """The address of a Hub in another process."""
    command = [sys.executable, __file__, "time", "--serve", str(storage)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def serve(storage: Path) -> None:
    """The other process."""
    with LocalHub.serve(storage) as hub:
        print(hub.address, flush=True)
        while True:
            time.sleep(3600)


def main() -> None:
    """The parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=["requests", "time", "memory"])
    parser.add_argument("--rows", type=int, default=200_000, help="of the comparison of times")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=[500_000, 5_000_000], help="pairs, for the memory")
    parser.add_argument("--serve", type=Path)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
    with tempfile.TemporaryDirectory() as place, served(Path(place) / "storage") as address:
        folder = Path(place)
        with LocalHub.serve(folder / "counted") as counted:
            os.environ.update(counted.environment(folder / "home"))
            if "requests" not in arguments.parts:
                os.environ["HF_ENDPOINT"] = address
            if "requests" in arguments.parts:  # by the log of a Hub in this process; the others in a run of their own
                requests(counted, folder)
                return
            if "time" in arguments.parts:
                times(folder, arguments.rows, arguments.rounds)
            for rows in arguments.sizes if "memory" in arguments.parts else []:
                memory(folder, rows)


if __name__ == "__main__":
    main()
