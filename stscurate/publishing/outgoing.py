"""What leaves: the files that were written to be published and no other, and how they differ from what is there."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.publishing.checksums import CARD, CHECKSUMS, read_checksums
from stscurate.services.hub import Head, RemoteFile


@dataclass(frozen=True)
class OutgoingFile:
    """A file by its path in the repository: where it lies here or its bytes, its size in bytes and SHA-256."""

    path: str
    source: Path | bytes
    size: int
    sha256: str

    @classmethod
    def of_bytes(cls, path: str, data: bytes) -> "OutgoingFile":
        """A file that is only in memory."""
        return cls(path, data, len(data), hashlib.sha256(data).hexdigest())

    @cached_property
    def blob_id(self) -> str:
        """The hash by which git knows a file that isn't in LFS (they are small: it is read whole)."""
        data = self.source if isinstance(self.source, bytes) else self.source.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def is_there(self, remote: RemoteFile | None) -> bool:
        """Whether that is the same content."""
        if remote is None or remote.size != self.size:
            return False
        return remote.sha256 == self.sha256 if remote.sha256 else remote.blob_id == self.blob_id


@dataclass(frozen=True)
class Outgoing:
    """A whole push: the files by path, SHA256SUMS among them, and the card as it is made (people may edit theirs)."""

    files: Mapping[str, OutgoingFile]
    card: str

    @property
    def card_file(self) -> OutgoingFile:
        """The card as it is made."""
        return OutgoingFile.of_bytes(CARD, self.card.encode())

    @cached_property
    def content(self) -> str:
        """A hash of all of it, by which a pull request is found again."""
        told = [f"{file.sha256}  {path}\n" for path, file in sorted(self.files.items())]
        return hashlib.sha256("".join([*told, self.card]).encode()).hexdigest()


@dataclass(frozen=True)
class Difference:
    """What a commit has to do: files that are new, that are others than there, and paths of ours to delete.

    schema: sentences on columns and classes that are others than the card there tells.
    """

    added: Sequence[OutgoingFile]
    changed: Sequence[OutgoingFile]
    removed: Sequence[str]
    schema: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.added or self.changed or self.removed)

    @property
    def additions(self) -> dict[str, Path | bytes]:
        """path -> source of all that is to be sent."""
        return {file.path: file.source for file in (*self.added, *self.changed)}


def read_folder(folder: Path) -> Outgoing:
    """What `publish_folder` wrote there: the card, and what SHA256SUMS names; nothing else of the folder leaves.

    InputError where a file is missing or isn't as it was written.
    """
    mend = "Publish again with --yes, which makes the folder anew."
    if not (folder / CHECKSUMS).is_file():
        raise InputError(f"{folder} has no {CHECKSUMS}: an earlier version made it. {mend}")
    sums = (folder / CHECKSUMS).read_bytes()
    files = {CHECKSUMS: OutgoingFile.of_bytes(CHECKSUMS, sums)}
    for path, sha256 in read_checksums(sums).items():
        place = folder / path
        if not place.is_file() or fingerprint(place) != sha256:
            raise InputError(f"{place} isn't as it was written. {mend}")
        files[path] = OutgoingFile(path, place, place.stat().st_size, sha256)
    return Outgoing(files, (folder / CARD).read_bytes().decode("utf-8"))


def difference(outgoing: Outgoing, card: OutgoingFile, head: Head, ours: Sequence[str]) -> Difference:
    """What has to happen to the revision. card: as it is to stand there; ours: paths that an earlier push put there."""
    wanted = {**outgoing.files, CARD: card}
    differing = [file for path, file in sorted(wanted.items()) if not file.is_there(head.files.get(path))]
    return Difference(
        [file for file in differing if file.path not in head.files],
        [file for file in differing if file.path in head.files],
        sorted(path for path in ours if path in head.files and path not in wanted),
    )
