#!/usr/bin/env python3
"""A chat server in a process of its own that costs next to nothing: what is measured is the client.

    with Served(latency=2.0) as served: ... served.url, served.counts()

Plain asyncio, answers made once. With `per_minute` it is a token bucket of `room` requests, refilled evenly, and tells
so in headers; what finds it empty is answered 429 at once. It also serves peers, which know only its address.
"""

import argparse
import asyncio
import hashlib
import json
import math
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any, Self


class Served:
    """The server, running. Counts are of all requests since it began."""

    def __init__(self, *, latency: float = 0.0, per_minute: int = 0, room: int = 60):
        arguments = ["--latency", str(latency), "--per-minute", str(per_minute), "--room", str(room)]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), *arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        self.url = f"http://127.0.0.1:{self._process.stdout.readline().strip()}/v1"

    def __enter__(self) -> Self:
        """Running already."""
        return self

    def __exit__(self, *error: object) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()

    def counts(self) -> dict[str, int]:
        """answered, refused (429), and questions: how many different ones were answered."""
        with urllib.request.urlopen(self.url + "/counts") as found:
            return dict(json.loads(found.read()))


def answer(digit: int) -> bytes:
    """A completion with twenty likely tokens, as a real one has."""
    shares = {str(other): 0.6 if other == digit else 0.07 for other in range(6)} | {f" t{i}": 0.002 for i in range(14)}
    top = [{"token": token, "logprob": math.log(share), "bytes": None} for token, share in shares.items()]
    token = {"token": str(digit), "logprob": math.log(0.6), "bytes": None, "top_logprobs": top}
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": str(digit), "refusal": None},
                "logprobs": {"content": [token]},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 90, "completion_tokens": 1, "total_tokens": 91},
    }
    return json.dumps(completion).encode()


ANSWERS = [answer(digit) for digit in range(6)]
SLOW_DOWN = b'{"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}'


class Bucket:
    """`room` requests at once, `per_minute` in the long run."""

    def __init__(self, per_minute: int, room: int):
        self.per_second = per_minute / 60
        self.per_minute, self.room, self.level, self.at = per_minute, float(room), float(room), time.monotonic()

    def take(self) -> bool:
        """Whether there was one left."""
        now = time.monotonic()
        self.level = min(self.level + (now - self.at) * self.per_second, self.room)
        self.at = now
        taken = self.level >= 1
        self.level -= taken
        return taken

    def headers(self) -> str:
        """As OpenAI writes them."""
        reset = (self.room - self.level) / self.per_second
        return (
            f"x-ratelimit-limit-requests: {self.per_minute}\r\nx-ratelimit-remaining-requests: {int(self.level)}\r\n"
            f"x-ratelimit-reset-requests: {reset:.3f}s\r\n"
        )


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, latency: float, bucket: Bucket | None, counts: Counter[str], seen: set[bytes]):
        self.latency, self.bucket, self.counted, self.seen = latency, bucket, counts, seen
        self.got = b""

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Serve each request that is whole."""
        self.got += data
        while (end := self.got.find(b"\r\n\r\n")) >= 0:
            head = self.got[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self.got) < end + 4 + length:
                return
            body, self.got = self.got[end + 4 : end + 4 + length], self.got[end + 4 + length :]
            self.serve(head, body)

    def serve(self, head: bytes, body: bytes) -> None:
        """Answer one, after the latency."""
        if head.startswith(b"get"):
            self.reply(200, json.dumps(self.counted | {"questions": len(self.seen)}).encode(), "")
            return
        question = hashlib.sha256(json.dumps(json.loads(body)["messages"]).encode()).digest()
        taken = self.bucket is None or self.bucket.take()
        headers = self.bucket.headers() if self.bucket else ""
        if not taken:
            self.counted["refused"] += 1
            self.reply(429, SLOW_DOWN, headers)
            return
        self.counted["answered"] += 1
        self.seen.add(question)
        later = asyncio.get_running_loop().call_later
        later(self.latency, self.reply, 200, ANSWERS[question[0] % 6], headers)

    def reply(self, status: int, body: bytes, headers: str) -> None:
        """Write one answer."""
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


async def main() -> None:
    """Serve until killed; the port is the first line of output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--per-minute", type=int, default=0)
    parser.add_argument("--room", type=int, default=60)
    arguments = parser.parse_args()
    bucket = Bucket(arguments.per_minute, arguments.room) if arguments.per_minute else None
    counts, seen = Counter[str](answered=0, refused=0), set[bytes]()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(arguments.latency, bucket, counts, seen), "127.0.0.1", 0, backlog=1000
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
