"""Duplicate links and pairs out of the comments of 15,815 rust-lang/rust issues: how many, of which tier, how fast.

python benchmarks/collect_rust.py rust-issues.jsonl.xz
"""

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from stscurate.manifest import Entry
from stscurate.pairing import make_pairs
from stscurate.pairing.tokens import LIMITS, token_counter
from stscurate.sources import collect_issues
from stscurate.store import Run


def main() -> None:
    """Collect and pair in a folder that is removed afterwards, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("issues", type=Path, help="JSON lines of issues with their comments")
    path = parser.parse_args().issues
    with tempfile.TemporaryDirectory() as folder, Run.open(Path(folder) / "run") as run:
        began = time.perf_counter()
        collected = collect_issues(run, path, moved={"mozilla/rust": "rust-lang/rust"})
        between = time.perf_counter()
        paired = make_pairs(run)
        ended = time.perf_counter()
        duplicates = [row for row in run.table("pairs").to_pylist() if row["label"] == 1]
        texts = run.table("issues")["clean_text"].to_pylist()
    print("| stage | what | rows |\n|---|---|---|")
    _show("issues", collected, between - began)
    _show("pairs", paired, ended - between)
    for (tier, origin), count in sorted(Counter((row["tier"], row["origin"]) for row in duplicates).items()):
        print(f"| pairs | tier {tier}, {origin} | {count:,} |")
    _show_lengths([text for text in texts if text.strip()])


def _show(stage: str, entry: Entry, seconds: float) -> None:
    rows = [("in", entry.tally.rows_in)]
    rows += [(table, int(output["rows"])) for table, output in entry.outputs.items()]
    rows += [(f"dropped: {reason}", count) for reason, count in sorted(entry.tally.dropped.items())]
    for name, counter in sorted(entry.tally.counts.items()):
        rows += [(f"{name}: {key}", count) for key, count in sorted(counter.items())]
    for what, count in rows:
        print(f"| {stage} | {what} | {count:,} |")
    print(f"| {stage} | seconds | {seconds:.1f} |")


def _show_lengths(texts: list[str]) -> None:
    began = time.perf_counter()
    counter = token_counter(None)
    tokens = counter.count(texts)
    print(f"| lengths | texts, by the tokenizer {counter.name} | {len(texts):,} |")
    for limit in LIMITS:
        over = sum(count > limit for count in tokens)
        print(f"| lengths | over {limit} tokens | {over:,} ({over / len(texts):.1%}) |")
    print(f"| lengths | seconds | {time.perf_counter() - began:.1f} |")


if __name__ == "__main__":
    main()
