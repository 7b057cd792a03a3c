"""A real HTTP server that speaks chat completions, for the tests: what it answers is a function of the request."""

from __future__ import annotations

import hashlib
import json
import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]


@dataclass
class Answer:
    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    reset: bool = False  # the connection is closed hard instead of an answer
    cut: int = 0  # bytes of the body that are announced and don't come


@dataclass
class ChatServer:
    url: str
    requests: list[Request] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    at_once: int = 0  # the most that were in work together


def completion(text: str | None, *, top: dict[str, float] | None = None, **choice: Any) -> dict[str, Any]:
    """A chat completion of one token; `top` gives probabilities at its place."""
    logprobs = None
    if top is not None:
        places = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in top.items()]
        logprobs = {"content": [{"token": text, "logprob": 0.0, "bytes": None, "top_logprobs": places}]}
    message = {"role": "assistant", "content": text, "refusal": choice.pop("refusal", None)}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": logprobs, **choice}],
        "usage": {"prompt_tokens": 90, "completion_tokens": 1, "total_tokens": 91},
    }


def error(message: str, **more: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "x", **more}}


def digit_of(request: Request) -> str:
    """The same digit for the same question, whoever asks."""
    return str(hashlib.sha256(request["messages"][-1]["content"].encode()).digest()[0] % 6)


def answer_digit(request: Request, count: int) -> Answer:
    digit = digit_of(request)
    other = str((int(digit) + 1) % 6)
    return Answer(completion(digit, top={digit: 0.75, other: 0.25} if request.get("logprobs") else None))


class Bucket:
    """A server's limit: so many at once, so many more a second, told in headers."""

    def __init__(self, room: float, a_second: float, *, told: bool = True, latency: float = 0.05):
        self.room, self.a_second, self.told, self.latency = room, a_second, told, latency
        self.level, self.at, self.refused = room, time.monotonic(), 0
        self.lock = threading.Lock()

    def __call__(self, request: Request, count: int) -> Answer:
        with self.lock:
            now = time.monotonic()
            self.level = min(self.level + (now - self.at) * self.a_second, self.room)
            self.at = now
            taken = self.level >= 1
            self.level -= taken
            self.refused += not taken
            headers = {
                "x-ratelimit-limit-requests": f"{self.a_second * 60:.0f}",
                "x-ratelimit-remaining-requests": str(int(self.level)),
                "x-ratelimit-reset-requests": f"{(self.room - self.level) / self.a_second * 1000:.0f}ms",
            }
            if not self.told:
                headers = {}
        if not taken:
            return Answer(error("slow down"), 429, headers)
        time.sleep(self.latency)
        return Answer(answer_digit(request, count).body, 200, headers)


@contextmanager
def chat_server(answer: Callable[[Request, int], Answer] = answer_digit) -> Iterator[ChatServer]:
    """Serve on a free port. answer: (request, its number from 1) -> Answer."""
    lock = threading.Lock()
    working = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            nonlocal working
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                server.requests.append(request)
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                count = len(server.requests)
                working += 1
                server.at_once = max(server.at_once, working)
            found = answer(request, count)
            body = found.body if isinstance(found.body, bytes) else json.dumps(found.body).encode()
            with lock:
                working -= 1
            if found.reset:
                # Closed with no time to linger, so that the peer gets a reset.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            try:
                self.send_response(found.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                for name, value in found.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body[: len(body) - found.cut])
                self.close_connection = self.close_connection or bool(found.cut)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client was killed, or didn't wait

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    listener = Server(("127.0.0.1", 0), Handler)
    server = ChatServer(f"http://127.0.0.1:{listener.server_address[1]}/v1")
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
