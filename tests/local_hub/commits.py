"""How files come in: what goes to LFS, where its bytes are put, and the commit that names them all."""

import base64
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.local_hub.answers import Answer, Refused, as_json
from tests.local_hub.repositories import LFS_NAMES, LFS_SIZE, Commit, File, Pull, Repository, lfs_file, small_file

if TYPE_CHECKING:
    from tests.local_hub.api import Request
    from tests.local_hub.server import LocalHub


def preupload(found: Commit, asked: Any) -> Answer:
    """Of each file whether it goes to LFS, and the hash of what stands at its path."""
    told = []
    for file in asked["files"]:
        lfs = file["path"].endswith(LFS_NAMES) or file["size"] > LFS_SIZE
        there = found.files.get(file["path"])
        told.append(
            {"path": file["path"], "uploadMode": "lfs" if lfs else "regular", "shouldIgnore": False,
             "oid": there.etag if there else None}
        )  # fmt: skip
    return as_json({"files": told})


def batch(hub: "LocalHub", asked: Any) -> Answer:
    """Where the objects are to be put; those that are here already have no action."""
    told = []
    for item in asked["objects"]:
        actions = {"upload": {"href": f"{hub.address}/lfs/{item['oid']}"}}
        here = (hub.storage / item["oid"]).exists()
        told.append({"oid": item["oid"], "size": item["size"], **({} if here else {"actions": actions})})
    return as_json({"transfer": "basic", "objects": told})


def store(hub: "LocalHub", request: "Request") -> Answer:
    """The object, if it is what its name says."""
    assert request.upload
    name = request.path.removeprefix("/lfs/")
    with request.upload.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != name:
        raise Refused(400, "", "the content isn't what its hash says")
    request.upload.rename(hub.storage / name)
    return Answer(200)


def commit(
    hub: "LocalHub", repository: Repository, revision: str, body: bytes, author: str, *, pull_request: bool
) -> Answer:
    """All of it or nothing; 412 where another commit came in between, which a pull request doesn't mind."""
    lines = [json.loads(line) for line in body.splitlines()]
    header = lines[0]["value"]
    head = repository.find(revision)
    parent = header.get("parentCommit")
    if parent and pull_request:
        head = repository.find(parent)
    elif parent and parent != head.oid:
        raise Refused(412, "", "A commit has happened since. Please refresh and try again.")
    files = dict(head.files)
    for line in lines[1:]:
        _apply(files, line["key"], line["value"], hub.storage)
    made = repository.add(head.oid, files, header["summary"], header.get("description", ""), author)
    told = {"success": True, "commitOid": made.oid, "commitUrl": f"{hub.address}/{repository.name}/commit/{made.oid}"}
    if pull_request:
        number = len(repository.pulls) + 1
        repository.pulls.append(Pull(number, header["summary"], author, made.oid))
        prefix = "datasets/" if repository.kind == "dataset" else ""
        told["pullRequestUrl"] = f"{hub.address}/{prefix}{repository.name}/discussions/{number}"
    else:
        repository.move(revision, made.oid)
    return as_json(told)


def _apply(files: dict[str, File], key: str, value: Any, storage: Path) -> None:
    path = value["path"]
    if key == "file":
        files[path] = small_file(base64.b64decode(value["content"]))
    elif key == "lfsFile":
        if not (storage / value["oid"]).exists():
            raise Refused(400, "", f"{path}: its LFS object was never uploaded")
        files[path] = lfs_file(storage / value["oid"], value["oid"], (storage / value["oid"]).stat().st_size)
    elif key == "deletedFile":
        if path not in files:
            raise Refused(404, "EntryNotFound", f"A file with this name doesn't exist: {path}")
        del files[path]
    elif key == "deletedFolder":
        for name in [name for name in files if name.startswith(path.rstrip("/") + "/")]:
            del files[name]
    else:
        raise Refused(400, "", f"unknown operation {key}")
