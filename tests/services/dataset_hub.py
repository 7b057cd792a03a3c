"""A Hub on loopback that has one data set: the files of a folder."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

COMMIT = "b" * 40


@contextmanager
def dataset_hub(name: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Its address, and the paths that were asked for."""
    asked: list[str] = []
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            asked.append(path)
            if path.startswith(f"/api/datasets/{name}/tree/"):
                files = [
                    {"type": "file", "path": file, "size": (folder / file).stat().st_size, "oid": "1"} for file in names
                ]
                self.answer(200, json.dumps(files).encode(), {})
            elif path.startswith(f"/api/datasets/{name}/"):
                siblings = [{"rfilename": file} for file in names]
                self.answer(200, json.dumps({"id": name, "sha": COMMIT, "siblings": siblings}).encode(), {})
            elif path.startswith(f"/datasets/{name}/resolve/{COMMIT}/"):
                file = path.removeprefix(f"/datasets/{name}/resolve/{COMMIT}/")
                self.answer(200, (folder / file).read_bytes(), {"ETag": f'"{file}"', "X-Repo-Commit": COMMIT})
            else:
                self.answer(404, b'{"error": "Repository not found"}', {"X-Error-Code": "RepoNotFound"})

        do_HEAD = do_GET

        def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for header, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(header, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the server class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
