"""The HTTP side: what comes in is handed over, what goes out may be slow, or a reset."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.local_github.answers import Response

Handle = Callable[[str, str, Mapping[str, str], bytes], Response]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    handle_request_with: Handle
    now: Callable[[], float]


def listen(handle: Handle, now: Callable[[], float]) -> ThreadingHTTPServer:
    """On a free port of loopback. handle: (method, target, headers in lower case, body); now: for the Date header."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.handle_request_with, server.now = handle, now
    return server


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # the head and the body of an answer leave together

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _serve(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        response = self.server.handle_request_with(self.command, self.path, headers, body)
        try:
            self._send(response)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client was killed, or didn't wait

    def _send(self, response: Response) -> None:
        if response.cut == "before":
            self._reset()
            return
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status != 304:
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        half = len(response.body) // 2
        self.wfile.write(response.body[:half])
        if response.pause or response.cut:
            self.wfile.flush()
            time.sleep(response.pause)
        if response.cut:
            self._reset()
            return
        self.wfile.write(response.body[half:])

    def _reset(self) -> None:
        """Closed with this option, a socket sends a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())
        self.close_connection = True

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(self.server.now(), usegmt=True)

    def log_message(self, *args: Any) -> None:
        pass
