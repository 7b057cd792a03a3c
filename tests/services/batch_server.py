"""A real HTTP server with files and batches of OpenAI's batch API, for the tests: it works off a batch as it is asked.

A batch is validated, then in progress for some looks, then ends. What it answers is a function of each request, as that
of chat_server.py; the rest of what may happen stands in `Faults`.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.services.chat_server import Answer, Request, answer_digit

Made = dict[str, Any]


@dataclass
class Faults:
    looks: int = 1  # at a batch in progress, until it ends
    missing: Callable[[int], bool] = lambda number: False  # whether the row of the number-th request ever is left out
    expire_after: int | None = None  # rows, in the first batch; the others expire
    validation: list[dict[str, Any]] = field(default_factory=list)  # what is wrong with every batch
    most_waiting: int | None = None  # requests in all batches together; more fail validation
    refuse: Callable[[str, str, int], Answer | None] = lambda method, path, count: None  # instead of an answer
    lost: Callable[[str, str, int], bool] = lambda method, path, count: False  # done, but answered with 500
    cancel: bool = False
    broken_files: int = 0  # so many reads of a file end in the middle of a line
    strange: bytes = b""  # goes before the rows of an output file


@dataclass
class BatchServer:
    url: str
    faults: Faults
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Made] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)  # bodies of all that batches have answered
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def sent(self) -> list[list[dict[str, Any]]]:
        """The rows of each batch."""
        return [[json.loads(line) for line in self.files[made["input_file_id"]].splitlines()] for made in self._made]

    @property
    def _made(self) -> list[Made]:
        return list(self.batches.values())


def dropping(*numbers: int) -> Callable[[int], bool]:
    return lambda number: number in numbers


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state: BatchServer
    answer: Callable[[Request, int], Answer]

    def do_GET(self) -> None:
        self._serve("GET", b"")

    def do_POST(self) -> None:
        self._serve("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def _serve(self, method: str, body: bytes) -> None:
        path, state = re.sub(r"\?.*", "", self.path.removeprefix("/v1")), self.state
        with state.lock:
            state.calls.append((method, path))
            count = sum(call == (method, path) for call in state.calls)
            found = state.faults.refuse(method, path, count) or self._answered(method, path, body)
            if state.faults.lost(method, path, count):
                found = Answer({"error": {"message": "lost on the way"}}, 500)
        content = found.body if isinstance(found.body, bytes) else json.dumps(found.body).encode()
        with suppress(BrokenPipeError, ConnectionResetError):  # the client was killed
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def _answered(self, method: str, path: str, body: bytes) -> Answer:
        state = self.state
        if (method, path) == ("POST", "/files"):
            name = f"file-{len(state.files)}"
            state.files[name] = self._sent_file(body)
            return Answer({"id": name, "object": "file", "purpose": "batch", "filename": "f", "bytes": 1})
        if (method, path) == ("POST", "/batches"):
            return Answer(make(state, json.loads(body)))
        if (method, path) == ("GET", "/batches"):
            return Answer({"object": "list", "data": list(state.batches.values())[::-1], "has_more": False})
        kind, name = path.split("/")[1:3]
        if kind == "batches":
            made = state.batches.get(name)
            return Answer(look(state, made, type(self).answer)) if made else Answer({"error": {"message": "gone"}}, 404)
        content = state.files[name]
        if state.faults.broken_files:
            state.faults.broken_files -= 1
            content = content[: len(content) // 2]
        return Answer(content)

    def _sent_file(self, body: bytes) -> bytes:
        kind = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        for part in BytesParser(policy=HTTP).parsebytes(kind + body).iter_parts():
            if part.get_param("name", header="content-disposition") == "file":
                content = part.get_payload(decode=True)
                assert isinstance(content, bytes)
                return content
        raise AssertionError("no file was sent")

    def log_message(self, *args: Any) -> None:
        pass


class Listener(ThreadingHTTPServer):
    daemon_threads = True


@contextmanager
def batch_server(
    faults: Faults | None = None, answer: Callable[[Request, int], Answer] = answer_digit
) -> Iterator[BatchServer]:
    """Serve on a free port. answer: (request, its number from 1) -> Answer, whose status goes into the row."""
    state = BatchServer("", faults or Faults())
    listener = Listener(("127.0.0.1", 0), type("Bound", (Handler,), {"state": state, "answer": staticmethod(answer)}))
    state.url = f"http://127.0.0.1:{listener.server_address[1]}/v1"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


def make(server: BatchServer, asked: dict[str, Any]) -> Made:
    name = f"batch_{len(server.batches)}"
    total = len(server.files[asked["input_file_id"]].splitlines())
    waiting = sum(made["request_counts"]["total"] for made in server.batches.values() if made["status"] in OPEN)
    made = {
        "id": name,
        "object": "batch",
        "created_at": 0,
        "status": "validating",
        "looks": 0,
        "too_many": server.faults.most_waiting is not None and waiting + total > server.faults.most_waiting,
        "request_counts": {"total": total, "completed": 0, "failed": 0},
        **asked,
    }
    server.batches[name] = made
    return made


OPEN = ("validating", "in_progress")


def look(server: BatchServer, made: Made, answer: Callable[[Request, int], Answer]) -> Made:
    if made["status"] not in OPEN:
        return made
    wrong = server.faults.validation or (
        [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}] if made["too_many"] else []
    )
    if wrong:
        made |= {"status": "failed", "errors": {"object": "list", "data": wrong}}
        return made
    made["status"], made["looks"] = "in_progress", made["looks"] + 1
    if made["looks"] > server.faults.looks:
        end(server, made, answer)
    return made


def end(server: BatchServer, made: Made, answer: Callable[[Request, int], Answer]) -> None:
    faults = server.faults
    output: list[bytes] = []
    errors: list[bytes] = []
    rows = [json.loads(line) for line in server.files[made["input_file_id"]].splitlines()]
    for row in rows:
        if faults.expire_after is not None and len(output) + len(errors) >= faults.expire_after:
            code = "batch_cancelled" if faults.cancel else "batch_expired"
            left = {"custom_id": row["custom_id"], "response": None, "error": {"code": code, "message": "too late"}}
            errors.append(json.dumps({"id": "r", **left}).encode())
            continue
        server.requests.append(row["body"])
        if faults.missing(len(server.requests)):
            continue
        found = answer(row["body"], len(server.requests))
        response = {"status_code": found.status, "request_id": "q", "body": found.body}
        line = {"id": "r", "custom_id": row["custom_id"], "response": response, "error": None}
        (output if found.status == 200 else errors).append(json.dumps(line, ensure_ascii=False).encode())
    for kind, lines in (("output_file_id", output), ("error_file_id", errors)):
        random.Random(1).shuffle(lines)
        if lines:
            made[kind] = f"file-{len(server.files)}"
            strange = faults.strange if kind == "output_file_id" else b""
            server.files[made[kind]] = strange + b"".join(line + b"\n" for line in lines)
    expired = "cancelled" if faults.cancel else "expired"
    made["status"] = expired if faults.expire_after is not None else "completed"
    made["request_counts"] |= {"completed": len(output), "failed": len(errors)}
    faults.expire_after = None
