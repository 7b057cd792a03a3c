"""Pushes to the local Hub from this process, and sets small enough to push often."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from huggingface_hub import constants
from huggingface_hub.utils._http import default_client_factory, set_client_factory

from stscurate.publishing.checksums import CARD, CHECKSUMS, checksum_lines
from stscurate.publishing.delivery import Delivered, deliver
from stscurate.publishing.outgoing import Outgoing, OutgoingFile
from stscurate.publishing.push import Options
from stscurate.services.hub import HubRepository
from tests.local_hub import WRITER, LocalHub

# The client hands a file to its HTTP library in a way that the library calls old; nothing of ours is in it.
UPLOADS_WARN = pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload raw bytes:DeprecationWarning")


@contextmanager
def serving(storage: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """A local Hub that this process may talk to."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    with LocalHub.serve(storage) as hub:
        yield hub


def repository(hub: LocalHub, name: str = "me/set", kind: str = "dataset", token: str = WRITER) -> HubRepository:
    """As the command line makes it, but for where the Hub is and who pushes."""
    return HubRepository(name, kind, endpoint=hub.address, token=token)


def made_of(files: Mapping[str, bytes], card: str = "---\nlicense: mit\n---\n") -> Outgoing:
    """A push of these files, with their SHA256SUMS."""
    sums = checksum_lines({path: hashlib.sha256(data).hexdigest() for path, data in files.items()})
    return Outgoing(
        {path: OutgoingFile.of_bytes(path, data) for path, data in {**files, CHECKSUMS: sums}.items()}, card
    )


class Readback:
    """In place of another process with `datasets`: what the Hub holds in that commit, byte by byte."""

    def __init__(self, hub: LocalHub):
        self.hub = hub
        self.commits: list[str] = []

    def __call__(self, repository: HubRepository, commit: str, outgoing: Outgoing, folder: Path) -> int:
        there = self.hub.repositories[repository.kind, repository.name].commits[commit].files
        for path, file in outgoing.files.items():
            assert hashlib.sha256(there[path].read()).hexdigest() == file.sha256
        self.commits.append(commit)
        return len(outgoing.files)


def pushed(hub: LocalHub, outgoing: Outgoing, folder: Path, **given: Any) -> Delivered:
    """`deliver` with waits that are noted, not waited, and a quick look at what arrived."""
    folder.mkdir(parents=True, exist_ok=True)
    flags = {name: given.pop(name, False) for name in ("direct", "public", "schema")}
    options = Options("Publish it", **flags)
    given = {"reload": Readback(hub), "wait": lambda seconds: None, **given}
    return deliver(given.pop("to", None) or repository(hub), outgoing, folder, options, **given)


def contents(hub: LocalHub, commit: str | None = None, name: str = "me/set") -> dict[str, bytes]:
    """path -> bytes of a commit of the data set, but for what the Hub itself put there."""
    found = hub.dataset(name)
    files = (found.commits[commit] if commit else found.head).files
    return {path: file.read() for path, file in files.items() if path != ".gitattributes"}


def as_pushed(outgoing: Outgoing) -> dict[str, bytes]:
    """What `contents` must be where nobody else has put anything."""
    sources = {path: file.source for path, file in outgoing.files.items()}
    files = {path: source if isinstance(source, bytes) else source.read_bytes() for path, source in sources.items()}
    return {**files, CARD: outgoing.card.encode()}


class Killed(BaseException):
    """What ends a process in the middle of everything: nothing of ours catches it."""


class DeadlyTransport(httpx2.HTTPTransport):
    """What carries this process's requests, until `Killed` ends it at one of them."""

    def __init__(self) -> None:
        super().__init__(verify=False)
        self.left: float = float("inf")
        self.answered = False

    def strike(self, number: float, *, answered: bool = False) -> None:
        """End it at the request of that number from now: before it is sent, or once it is done. Infinite: never."""
        self.left, self.answered = number, answered

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.left -= 1
        if self.left <= 0 and not self.answered:
            raise Killed
        response = super().handle_request(request)
        if self.left <= 0:
            raise Killed
        return response


@contextmanager
def deadly_transport() -> Iterator[DeadlyTransport]:
    """The client's transport in the block."""
    transport = DeadlyTransport()
    client = httpx2.Client(transport=transport, follow_redirects=True, timeout=None)
    set_client_factory(lambda: client)
    try:
        yield transport
    finally:
        set_client_factory(default_client_factory)
