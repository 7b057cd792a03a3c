"""A real HTTP server that speaks embeddings, for the tests: a text's vector is a function of the text."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIMENSION = 8
Body = dict[str, Any]
Answer = tuple[int, Any, dict[str, str]]  # status, body (bytes as they are, else as JSON), headers


@dataclass
class EmbeddingsServer:
    url: str
    bodies: list[Body] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """All texts that were asked for, in order."""
        return [text for body in self.bodies for text in body["input"]]


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """The same numbers for the same text, of any length but zero."""
    digest = hashlib.sha256(text.encode()).digest()
    return [byte / 32 - 4 for byte in digest[:dimension]]


def unit(text: str) -> np.ndarray[Any, Any]:
    found = np.array(vector(text))
    return np.asarray(found / np.linalg.norm(found))


def embeddings(body: Body) -> Any:
    """The answer that is due; a request with late chunking gives each text the mean of all texts' vectors beside it."""
    rows = [np.array(vector(text)) for text in body["input"]]
    if body.get("late_chunking"):
        rows = [row + np.mean(rows, axis=0) for row in rows]
    return {
        "data": [{"index": place, "embedding": list(row)} for place, row in enumerate(rows)],
        "model": body["model"],
    }


@contextmanager
def embeddings_server(answer: Callable[[Body, int], Answer | None] | None = None) -> Iterator[EmbeddingsServer]:
    """A server on a free port. answer: gives another answer for a request (its body, its number), or None."""
    server = EmbeddingsServer("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            number = len(server.bodies)
            server.bodies.append(body)
            server.headers.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
            status, found, headers = (answer and answer(body, number)) or (200, embeddings(body), {})
            content = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *given: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
