"""Triplets a second on one core: by a model's tokens, against its tokenizer's bare encode_batch, and by words.

    python benchmarks/triplets.py stsb-en-train.csv rust-issues.jsonl.xz [--number 15815] [--repeats 5]

Ours is the whole stage `triplets`: texts in a table to Parquet on disk with hashes in the manifest, the loading of the
tokenizer included. Bare is one call of `encode_batch` for each 2,000 texts, reading the offsets of each. The tokenizer
is that of all-MiniLM-L6-v2, on one thread; texts of issues are title and body. Seconds of the processor, in turn,
medians after a warm-up. The start of a stage (the model's hash, its tokenizer) is measured on ten texts, and taken
off in the last column. Printed as Markdown.
"""

import argparse
import csv
import json
import lzma
import os
import statistics
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ["RAYON_NUM_THREADS"] = "1"  # the tokenizer's threads

from transformers import AutoTokenizer

from stscurate.services.models import locate
from stscurate.store import Run
from stscurate.tables import Source, texts_source
from stscurate.triplets import make_triplets

MODEL = "all-MiniLM-L6-v2"


def main() -> None:
    """Measure each set of texts, and print a table."""
    parser = argparse.ArgumentParser(description="Triplets a second.")
    parser.add_argument("sts", type=Path, help="stsb-en-train.csv")
    parser.add_argument("issues", type=Path, help="rust-issues.jsonl.xz")
    parser.add_argument("--number", type=int, default=15815, help="issues (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="medians of so many (default: %(default)s)")
    options = parser.parse_args()
    with options.sts.open(newline="", encoding="utf-8") as file:
        short = [text for row in csv.reader(file) for text in row[:2]]
    with lzma.open(options.issues, "rt", encoding="utf-8") as file:
        issues = [json.loads(line) for line in islice(file, options.number)]
    long = [f"{issue['title']} {issue['body'] or ''}" for issue in issues]
    backend = AutoTokenizer.from_pretrained(str(locate(MODEL).path)).backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    print(
        "| texts | number | words, texts/s | tokens, texts/s | bare encode_batch, texts/s | tokens / bare | start, s "
        "| tokens without it / bare |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    )
    with TemporaryDirectory() as folder:
        for name, texts in (("STS-B train", short), ("rust issues", long)):
            source, few = _source(Path(folder), texts), _source(Path(folder), texts[:10])
            given = source.table["text"].to_pylist()

            def bare(given: list[str] = given) -> None:
                for start in range(0, len(given), 2000):
                    for found in backend.encode_batch(given[start : start + 2000], add_special_tokens=False):
                        found.offsets  # noqa: B018 - a list is built at each reading

            ways: dict[str, Callable[[], None]] = {
                "words": lambda source=source: _stage(source, None),  # type: ignore[misc]
                "tokens": lambda source=source: _stage(source, MODEL),  # type: ignore[misc]
                "bare": bare,
                "start": lambda few=few: _stage(few, MODEL),  # type: ignore[misc]
            }
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            for repeat in range(options.repeats + 1):
                for way, run in ways.items():
                    began = time.process_time()
                    run()
                    if repeat:
                        seconds[way].append(time.process_time() - began)
            took = {way: statistics.median(values) for way, values in seconds.items()}
            rate = {way: len(given) / spent for way, spent in took.items()}
            print(
                f"| {name} | {len(given):,} | {rate['words']:,.0f} | {rate['tokens']:,.0f} | {rate['bare']:,.0f} "
                f"| {rate['tokens'] / rate['bare']:.0%} | {took['start']:.2f} "
                f"| {took['bare'] / (took['tokens'] - took['start']):.0%} |",
                flush=True,
            )


def _source(folder: Path, texts: list[str]) -> Source:
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return texts_source(path)


def _stage(source: Source, tokenizer: str | None) -> None:
    with TemporaryDirectory() as folder, Run.open(Path(folder) / "run") as run:
        make_triplets(run, source, tokenizer=tokenizer)


if __name__ == "__main__":
    main()
