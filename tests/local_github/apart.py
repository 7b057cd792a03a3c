"""A local GitHub in a process of its own, for measuring: it shares no interpreter lock with the client."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from tests.local_github.answers import Asked
from tests.local_github.server import LocalGitHub


class Apart:
    """The other process: its `url`, and what it noted."""

    def __init__(self, pipe: Connection[Any, Any]) -> None:
        self._pipe = pipe
        self.url: str = pipe.recv()

    def take_log(self) -> list[Asked]:
        """The requests since the last call."""
        self._pipe.send(True)
        log: list[Asked] = self._pipe.recv()
        return log


@contextmanager
def hub_apart(build: Callable[[], LocalGitHub]) -> Iterator[Apart]:
    """build: makes and seeds the hub over there; a function of a module, or a `functools.partial` of one."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(build, there), daemon=True)
    process.start()
    there.close()
    try:
        yield Apart(here)
    finally:
        here.close()  # the other side ends then
        process.join(10)
        process.kill()


def _serve(build: Callable[[], LocalGitHub], pipe: Connection[Any, Any]) -> None:
    with build() as hub:
        pipe.send(hub.url)
        try:
            while pipe.recv():
                pipe.send(hub.log)
                hub.log = []
        except EOFError:
            pass
