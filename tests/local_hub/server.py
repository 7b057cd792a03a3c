"""The HTTP side: a server on loopback with its log of requests, its faults, and who may do what."""

import hashlib
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.local_hub.answers import Answer, Refused
from tests.local_hub.api import Request, answer
from tests.local_hub.faults import Fault
from tests.local_hub.repositories import LFS_NAMES, File, Repository, lfs_file, small_file

WRITER, READER, STRANGER = ("hf_" + letter * 34 for letter in "wrs")  # tokens, made up; STRANGER's owns nothing here
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Asked:
    """A request, and the status of its answer (0: the connection was closed)."""

    method: str
    path: str  # with its query
    status: int
    token: str | None

    @property
    def writes(self) -> bool:
        """Whether it could have changed something."""
        asks = ("paths-info", "validate-yaml", "/preupload/", "objects/batch")
        return self.method not in ("GET", "HEAD") and not any(part in self.path for part in asks)


@dataclass
class LocalHub:
    """Repositories by (kind, name), a folder for their LFS objects, and all that was asked."""

    storage: Path
    address: str = ""
    repositories: dict[tuple[str, str], Repository] = field(default_factory=dict)
    log: list[Asked] = field(default_factory=list)
    faults: list[tuple[re.Pattern[str], list[int], Fault]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    users: Mapping[str, tuple[str, str]] = field(
        default_factory=lambda: {WRITER: ("me", "write"), READER: ("me", "read"), STRANGER: ("stranger", "write")}
    )

    @classmethod
    @contextmanager
    def serve(cls, storage: Path) -> Iterator["LocalHub"]:
        """A Hub on a free port, until the block ends."""
        storage.mkdir(parents=True, exist_ok=True)
        hub = cls(storage)
        server = _Server(("127.0.0.1", 0), _Handler)
        server.hub = hub
        hub.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield hub
        finally:
            server.shutdown()
            server.server_close()

    def environment(self, home: Path, token: str | None = WRITER) -> dict[str, str]:
        """For a process that is to talk to this Hub: fresh caches in `home`, no xet (which is a service apart)."""
        found = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        found |= {"HF_ENDPOINT": self.address, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
        return found | ({"HF_TOKEN": token} if token else {})

    def dataset(self, name: str) -> Repository:
        """That data set."""
        return self.repositories["dataset", name]

    def model(self, name: str) -> Repository:
        """That model."""
        return self.repositories["model", name]

    def create(self, kind: str, name: str, *, private: bool = False, folder: Path | None = None) -> Repository:
        """A repository, with a folder's files in its second commit; what ends like data goes to LFS."""
        made = self.repositories[kind, name] = Repository(kind, name, private)
        if folder:
            files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
            kept = {path: self.kept(source.read_bytes(), path) for path, source in files.items()}
            made.branches["main"] = made.add(made.head.oid, {**made.head.files, **kept}, "upload", "", "me").oid
        return made

    def kept(self, data: bytes, path: str) -> File:
        """A file's content, in LFS where its name says so."""
        if not path.endswith(LFS_NAMES):
            return small_file(data)
        digest = hashlib.sha256(data).hexdigest()
        (self.storage / digest).write_bytes(data)
        return lfs_file(self.storage / digest, digest, len(data))

    def fail(self, pattern: str, *faults: Fault, nth: int = 1) -> None:
        """The faults, one after the other, from the nth request on whose "METHOD /path?query" the pattern finds."""
        for number, fault in enumerate(faults):
            self.faults.append((re.compile(pattern), [nth + number], fault))

    def fault_for(self, line: str) -> Fault | None:
        """The fault that is due, if one is."""
        with self.lock:
            due = None
            for pattern, left, fault in self.faults:
                if pattern.search(line):
                    left[0] -= 1
                    due = fault if left[0] == 0 else due
            return due

    def lines(self, *, since: int = 0) -> list[str]:
        """The log as "METHOD /path"."""
        return [f"{asked.method} {asked.path}" for asked in self.log[since:]]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    hub: LocalHub


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # the head and the body of an answer leave together

    def do_GET(self) -> None:
        hub, place = self.server.hub, urlsplit(self.path)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        upload = self._upload(hub) if self.command == "PUT" else None
        body = b"" if self.command == "PUT" else b"".join(self._body())
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(
            self.command, unquote(place.path), place.path, dict(parse_qsl(place.query)), headers, body, upload
        )

        def answering() -> Answer:
            try:
                return answer(hub, request, hub.users.get(token) if token else None, token)
            except Refused as refused:
                return refused.answer

        fault = hub.fault_for(f"{self.command} {self.path}")
        found = fault(answering) if fault else answering()
        if place.path != "/api/agent-harnesses":  # which the client asks for itself, once a day
            hub.log.append(Asked(self.command, self.path, 0 if found.cut else found.status, token))
        if found.cut:
            self.close_connection = True
            self.connection.close()
            return
        try:
            self._send(found)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client was killed

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def _send(self, found: Answer) -> None:
        self.send_response(found.status)
        for name, value in {**found.headers, "Content-Length": str(found.length)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if isinstance(found.body, bytes):
            self.wfile.write(found.body)
            return
        with found.body.open("rb") as file:
            file.seek(found.start)
            left = found.length
            while left:
                chunk = file.read(min(left, _CHUNK))
                self.wfile.write(chunk)
                left -= len(chunk)

    def _body(self) -> Iterator[bytes]:
        """The request's body in pieces, however it is sent."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            chunk = self.rfile.read(min(left, _CHUNK))
            if not chunk:
                raise ConnectionResetError
            left -= len(chunk)
            yield chunk

    def _upload(self, hub: LocalHub) -> Path:
        """The body in a file of its own."""
        path = hub.storage / f"upload-{threading.get_ident()}"
        with path.open("wb") as file:
            for chunk in self._body():
                file.write(chunk)
        return path

    def log_message(self, *args: object) -> None:
        pass
