"""The bare `openai` client, asking what `annotate` asks: the yardstick of what a machine and a library allow."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai

from stscurate.annotators.base import Pair
from stscurate.annotators.prompts import Prompt
from stscurate.store import Run


def bodies(folder: Path) -> list[dict[str, Any]]:
    """What `annotate` sends."""
    prompt = Prompt.load()
    table = Run(folder).table("pairs").select(Pair._fields).to_pylist()
    sampling = {"max_tokens": 4, "temperature": 0, "seed": 0, "logprobs": True, "top_logprobs": 20}
    return [{"messages": prompt.messages(row["text1"], row["text2"]), **sampling} for row in table]


async def ask_bare(url: str, sent: list[dict[str, Any]], concurrency: int, *, aiohttp: bool) -> None:
    """The same asks by the client alone."""
    limits = httpx2.Limits(max_connections=2 * concurrency, max_keepalive_connections=2 * concurrency)
    http = (openai.DefaultAioHttpClient if aiohttp else openai.DefaultAsyncHttpxClient)(limits=limits)

    async def work(todo: Iterator[dict[str, Any]]) -> None:
        for body in todo:
            await client.chat.completions.create(model="m", **body)

    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, http_client=http) as client:
        todo = iter(sent)
        await asyncio.gather(*(work(todo) for _ in range(concurrency)))
