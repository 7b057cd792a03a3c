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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai

from benchmarks.annotate_pace import make_run
from benchmarks.chat_server import Served
from stscurate.annotators import annotate
from stscurate.annotators.base import Pair
from stscurate.annotators.prompts import Prompt
from stscurate.store import Run


def bodies(folder: Path) -> list[dict[str, Any]]:
    """What `annotate` sends."""
    prompt = Prompt.load()
    table = Run(folder).table("pairs").select(Pair._fields).to_pylist()
    sampling = {"max_tokens": 4, "temperature": 0, "seed": 0, "logprobs": True, "top_logprobs": 20}
    return [{"messages": prompt.messages(row["text1"], row["text2"]), **sampling} for row in table]


async def bare(url: str, sent: list[dict[str, Any]], concurrency: int, *, aiohttp: bool) -> None:
    """The same asks by the client alone."""
    limits = httpx2.Limits(max_connections=2 * concurrency, max_keepalive_connections=2 * concurrency)
    http = (openai.DefaultAioHttpClient if aiohttp else openai.DefaultAsyncHttpxClient)(limits=limits)

    async def work(todo: Iterator[dict[str, Any]]) -> None:
        for body in todo:
            await client.chat.completions.create(model="m", **body)

    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, http_client=http) as client:
        todo = iter(sent)
        await asyncio.gather(*(work(todo) for _ in range(concurrency)))


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
                    asyncio.run(bare(served.url, sent, arguments.concurrency, aiohttp="aiohttp" in name))
                spent.append((time.process_time() - began) / arguments.requests * 1000)
                assert served.counts()["answered"] == arguments.requests
    base = statistics.median(found["bare, aiohttp"])
    for name, spent in found.items():
        middle = statistics.median(spent)
        print(f"| {name} | {middle:.2f} ms a request ({min(spent):.2f} to {max(spent):.2f}) | {middle / base:.2f} |")


if __name__ == "__main__":
    main()
