"""One round of a peer, by its own interpreter (it needs nothing of ours): distilabel or bespokelabs-curator.

    PYTHON benchmarks/annotate_peers.py distilabel|curator URL COUNT CONCURRENCY

Prints seconds from the call to its result, and how many answers that holds. Imports don't count.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SYSTEM = "Rate how similar the two texts are in meaning, from 0 to 5. Answer with the number alone."


def questions(count: int) -> list[str]:
    """As many different ones."""
    return [f"It crashes at start {i}.\n\nThe start crashes, says {i}." for i in range(count)]


def distilabel(url: str, count: int, concurrency: int) -> Callable[[], int]:
    """Its pipeline of one step, in batches of the concurrency, which is what it keeps in flight."""
    from distilabel.models import OpenAILLM  # type: ignore[import-not-found]
    from distilabel.pipeline import Pipeline  # type: ignore[import-not-found]
    from distilabel.steps import LoadDataFromDicts  # type: ignore[import-not-found]
    from distilabel.steps.tasks import TextGeneration  # type: ignore[import-not-found]

    data = [{"instruction": question, "system_prompt": SYSTEM} for question in questions(count)]
    with Pipeline(name="pace", cache_dir=str(Path.cwd() / "cache")) as pipeline:
        load = LoadDataFromDicts(data=data, batch_size=concurrency)
        llm = OpenAILLM(
            model="m", base_url=url, api_key="none", generation_kwargs={"max_new_tokens": 4, "temperature": 0.0}
        )
        load >> TextGeneration(llm=llm, input_batch_size=concurrency)

    def run() -> int:
        found = pipeline.run(use_cache=False)
        return sum(bool(row["generation"]) for row in found["default"]["train"])

    return run


def curator(url: str, count: int, concurrency: int) -> Callable[[], int]:
    """Its online processor, with limits of its own far above the server's."""
    os.environ |= {"CURATOR_DISABLE_CACHE": "1", "CURATOR_VIEWER": "0", "TELEMETRY_ENABLED": "false"}
    os.environ |= {"OPENAI_API_KEY": "none", "CURATOR_CACHE_DIR": str(Path.cwd() / "cache")}
    import tiktoken  # type: ignore[import-not-found]

    class Bytes:  # its table of tokens would be downloaded
        def encode(self, text: str, **options: Any) -> list[int]:
            return list(text.encode())[::4]

    tiktoken.get_encoding = tiktoken.encoding_for_model = lambda *names: Bytes()
    from bespokelabs import curator as library  # type: ignore[import-not-found]

    class Judge(library.LLM):  # type: ignore[misc]
        def prompt(self, row: dict[str, Any]) -> list[dict[str, str]]:
            return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": row["question"]}]

        def parse(self, row: dict[str, Any], response: str) -> dict[str, Any]:
            return {"answer": response}

    judge = Judge(
        model_name="m",
        backend="openai",
        generation_params={"max_tokens": 4, "temperature": 0},
        backend_params={
            "base_url": url,
            "max_concurrent_requests": concurrency,
            "max_requests_per_minute": 1_000_000,
            "max_tokens_per_minute": 1_000_000_000,
            "require_all_responses": False,
        },
    )

    def run() -> int:
        found = judge([{"question": question} for question in questions(count)])
        return sum(bool(row["answer"]) for row in getattr(found, "dataset", found))

    return run


if __name__ == "__main__":
    name, url, count, concurrency = sys.argv[1:]
    run = {"distilabel": distilabel, "curator": curator}[name](url, int(count), int(concurrency))
    began = time.perf_counter()
    answers = run()
    print(json.dumps({"seconds": time.perf_counter() - began, "answers": answers}))
