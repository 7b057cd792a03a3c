"""What the Hub keeps: repositories, their commits as whole trees, the names of commits, and pull requests."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.local_hub.answers import Refused

GITATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
LFS_NAMES = (".parquet", ".safetensors", ".bin", ".arrow", ".zip")
LFS_SIZE = 10 * 2**20  # bytes; larger files go to LFS whatever their name
_DATE = "2026-01-01T00:00:{:02}.000Z"


@dataclass(frozen=True)
class File:
    """A file of a commit: its bytes, or where they lie. sha256 is set for files in LFS alone, as on the Hub."""

    data: bytes | Path
    size: int
    blob_id: str
    sha256: str | None = None

    @property
    def pointer_size(self) -> int:
        """Bytes of the pointer that stands for an LFS file in git."""
        return len(pointer(self.sha256 or "", self.size))

    @property
    def etag(self) -> str:
        """What the Hub names a file's content by."""
        return self.sha256 or self.blob_id

    def read(self) -> bytes:
        """The whole content."""
        return self.data if isinstance(self.data, bytes) else self.data.read_bytes()


def small_file(data: bytes) -> File:
    """A file that stands in git itself."""
    return File(data, len(data), git_blob(data))


def lfs_file(path: Path, sha256: str, size: int) -> File:
    """A file that stands in LFS."""
    return File(path, size, git_blob(pointer(sha256, size)), sha256)


def pointer(sha256: str, size: int) -> bytes:
    """The text that git keeps for an LFS file."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def git_blob(data: bytes) -> str:
    """The hash by which git knows a content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Commit:
    """One state of a repository."""

    oid: str
    parent: str | None
    files: Mapping[str, File]
    title: str
    message: str
    author: str
    date: str


@dataclass
class Pull:
    """A pull request: its commits stand at refs/pr/NUMBER."""

    number: int
    title: str
    author: str
    head: str
    status: str = "open"


@dataclass
class Repository:
    """A model or a data set ("model", "dataset"); `main` begins with a .gitattributes, as on the Hub."""

    kind: str
    name: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pulls: list[Pull] = field(default_factory=list)

    def __post_init__(self) -> None:
        first = self.add(None, {".gitattributes": small_file(GITATTRIBUTES)}, "initial commit", "", "system")
        self.branches["main"] = first.oid

    @property
    def head(self) -> Commit:
        """The newest commit of `main`."""
        return self.commits[self.branches["main"]]

    def add(self, parent: str | None, files: Mapping[str, File], title: str, message: str, author: str) -> Commit:
        """A commit that no name points at yet; its hash comes from what is in it and how many there are."""
        told = [parent, title, author, len(self.commits), sorted((path, file.etag) for path, file in files.items())]
        oid = hashlib.sha1(json.dumps([self.kind, self.name, told]).encode(), usedforsecurity=False).hexdigest()
        date = _DATE.format(len(self.commits) % 60)
        self.commits[oid] = Commit(oid, parent, dict(files), title, message, author, date)
        return self.commits[oid]

    def find(self, revision: str) -> Commit:
        """The commit of a branch, tag, pull request or hash; RevisionNotFound otherwise."""
        oid = (
            self.branches.get(revision) or self.tags.get(revision) or self.branches.get(revision[len("refs/heads/") :])
        )
        if oid is None and revision.startswith("refs/pr/"):
            oid = next((pull.head for pull in self.pulls if revision == f"refs/pr/{pull.number}"), None)
        if oid is None and len(revision) >= 7:
            oid = next((oid for oid in self.commits if oid.startswith(revision)), None)
        if oid is None:
            raise Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return self.commits[oid]

    def move(self, revision: str, oid: str) -> None:
        """Let a branch or an open pull request name another commit."""
        for pull in self.pulls:
            if revision == f"refs/pr/{pull.number}":
                pull.head = oid
                return
        if revision not in self.branches:
            raise Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        self.branches[revision] = oid

    def merge(self, number: int) -> Commit:
        """What a person does on the website: `main` becomes as the pull request has it."""
        pull = next(pull for pull in self.pulls if pull.number == number)
        theirs = self.commits[pull.head]
        merged = self.add(self.head.oid, theirs.files, f"{pull.title} (#{number})", "", pull.author)
        self.branches["main"] = merged.oid
        pull.status = "merged"
        return merged

    def history(self, revision: str = "main") -> list[Commit]:
        """Commits from the newest to the first."""
        found = [self.find(revision)]
        while found[-1].parent:
            found.append(self.commits[found[-1].parent])
        return found

    def put(self, files: Mapping[str, bytes | None], title: str = "by hand", author: str = "somebody") -> Commit:
        """What somebody else does: small files added or changed on `main`, those that are None removed."""
        kept = {path: file for path, file in self.head.files.items() if path not in files}
        kept |= {path: small_file(data) for path, data in files.items() if data is not None}
        commit = self.add(self.head.oid, kept, title, "", author)
        self.branches["main"] = commit.oid
        return commit
