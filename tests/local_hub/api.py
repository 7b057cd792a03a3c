"""The Hub's endpoints, as the clients of version 2 ask them: repositories, files, commits, names, pull requests."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import yaml

from tests.local_hub.answers import Answer, Refused, as_json
from tests.local_hub.commits import batch, commit, preupload, store
from tests.local_hub.repositories import Commit, File, Repository

if TYPE_CHECKING:
    from tests.local_hub.server import LocalHub

PAGE = 1000  # entries of a tree in one answer


@dataclass(frozen=True)
class Request:
    """What was asked: the path decoded and as sent, the query, headers in lower case, and the body."""

    method: str
    path: str
    raw_path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    upload: Path | None = None  # where the body of a PUT lies

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body or b"null")


User = tuple[str, str]  # name, and "read" or "write"
_REPOSITORY = re.compile(
    r"/api/(?P<kind>model|dataset)s/(?P<name>[^/]+/[^/]+)(?:/(?P<what>[a-z-]+)(?:/(?P<rest>.*))?)?"
)
_FILE = re.compile(r"/(?P<kind>datasets/)?(?P<name>[^/]+/[^/]+)/resolve/(?P<rev>[^/]+)/(?P<file>.*)")
_BATCH = re.compile(r"/(?P<kind>datasets/)?(?P<name>[^/]+/[^/]+)\.git/info/lfs/objects/batch")


def answer(hub: "LocalHub", request: Request, user: User | None, token: str | None) -> Answer:
    """The answer to any request; Refused where it is refused."""
    if token and not user and not request.path.startswith("/lfs/"):
        raise Refused(401, "", "Invalid credentials in Authorization header")
    if request.method == "PUT" and request.path.startswith("/lfs/"):
        return store(hub, request)
    with hub.lock:
        if request.path in _SIMPLE:
            return _SIMPLE[request.path](hub, request, user)
        return _of_repository(hub, request, user)


def _of_repository(hub: "LocalHub", request: Request, user: User | None) -> Answer:
    for pattern, endpoint in ((_BATCH, _batch), (_FILE, _file), (_REPOSITORY, _api)):
        if found := pattern.fullmatch(request.raw_path):
            kind = "model" if (found["kind"] or "model") == "model" else "dataset"
            return endpoint(hub, _repository(hub, kind, found["name"], user), found, request, user)
    raise Refused(404, "", f"no such endpoint: {request.method} {request.path}")


def _whoami(hub: "LocalHub", request: Request, user: User | None) -> Answer:
    if user is None:
        raise Refused(401, "", "Invalid username or password.")
    return as_json({"type": "user", "name": user[0], "orgs": [], "auth": {"accessToken": {"role": user[1]}}})


def _named(asked: Mapping[str, Any]) -> tuple[str, str]:
    return asked.get("type") or "model", f"{asked['organization']}/{asked['name']}"


def _create(hub: "LocalHub", request: Request, user: User | None) -> Answer:
    asked = request.json
    kind, name = _named(asked)
    if user is None:
        raise Refused(401, "", "Invalid username or password.")
    if user != (asked["organization"], "write"):
        raise Refused(403, "", f"You don't have the rights to create a {kind} under the namespace {name}")
    if (kind, name) in hub.repositories:
        raise Refused(409, "", f"You already created this {kind} repo")
    private = asked.get("visibility") == "private" or bool(asked.get("private"))
    hub.create(kind, name, private=private)
    return as_json({"url": f"{hub.address}/{'datasets/' if kind == 'dataset' else ''}{name}"})


def _delete(hub: "LocalHub", request: Request, user: User | None) -> Answer:
    del hub.repositories[_named(request.json)]
    return as_json({})


def _validate(hub: "LocalHub", request: Request, user: User | None) -> Answer:
    found = re.match(r"---\n(.*?\n)---\n", request.json["content"], re.DOTALL)
    try:
        errors = [] if found and isinstance(yaml.safe_load(found[1]), dict) else ["no YAML"]
    except yaml.YAMLError as error:
        errors = [str(error)]
    told = [{"message": error} for error in errors]
    return as_json({"errors": told, "warnings": []}, 400 if errors else 200)


def _repository(hub: "LocalHub", kind: str, name: str, user: User | None) -> Repository:
    """RepoNotFound where there is none, or it is private and not the user's: the Hub doesn't tell which."""
    found = hub.repositories.get((kind, name))
    if found is None or (found.private and (user is None or user[0] != name.partition("/")[0])):
        raise Refused(404 if user else 401, "RepoNotFound", "Repository not found")
    return found


def _may_write(repository: Repository, user: User | None, *, pull_request: bool = False) -> None:
    """Whoever has a token may open a pull request where he can read; only the owner writes."""
    if user is None:
        raise Refused(401, "", "Invalid username or password.")
    if user[1] != "write" or (user[0] != repository.name.partition("/")[0] and not pull_request):
        raise Refused(403, "", f"Forbidden: you must use a write token to upload to {repository.name}.")


def _info(hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None) -> Answer:
    found = repository.find("/".join(rest) if rest != [""] else "main")
    blobs = request.query.get("blobs", "").lower() in ("true", "1")
    siblings = [_sibling(path, file, blobs) for path, file in sorted(found.files.items())]
    told = {"_id": "0" * 24, "id": repository.name, "sha": found.oid, "private": repository.private}
    return as_json({**told, "lastModified": found.date, "tags": [], "siblings": siblings})


def _sibling(path: str, file: File, blobs: bool) -> dict[str, Any]:
    if not blobs:
        return {"rfilename": path}
    told: dict[str, Any] = {"rfilename": path, "size": file.size, "blobId": file.blob_id}
    lfs = {"sha256": file.sha256, "size": file.size, "pointerSize": file.pointer_size}
    return told | ({"lfs": lfs} if file.sha256 else {})


def _tree(hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None) -> Answer:
    found = repository.find(rest[0])
    under = "/".join(part for part in rest[1:] if part)
    entries = _entries(found, under, recursive=request.query.get("recursive", "").lower() in ("true", "1"))
    if under and not entries:
        raise Refused(404, "EntryNotFound", f"{under} does not exist on {rest[0]!r}")
    start = int(request.query.get("cursor", 0))
    headers = {}
    if start + PAGE < len(entries):
        query = "&".join(f"{name}={value}" for name, value in {**request.query, "cursor": start + PAGE}.items())
        headers["Link"] = f'<{hub.address}{request.raw_path}?{query}>; rel="next"'
    return as_json(entries[start : start + PAGE], headers=headers)


def _entries(found: Commit, under: str, *, recursive: bool) -> list[dict[str, Any]]:
    prefix = f"{under}/" if under else ""
    entries, folders = [], set()
    for path, file in sorted(found.files.items()):
        if path.startswith(prefix):
            parts = path.removeprefix(prefix).split("/")
            folders |= {prefix + "/".join(parts[:depth]) for depth in range(1, len(parts))[: None if recursive else 1]}
            if recursive or len(parts) == 1:
                entries.append(_entry(path, file))
    made = [{"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in sorted(folders)]
    return made + entries


def _entry(path: str, file: File) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "file", "path": path, "size": file.size, "oid": file.blob_id}
    lfs = {"oid": file.sha256, "size": file.size, "pointerSize": file.pointer_size}
    return told | ({"lfs": lfs} if file.sha256 else {})


def _paths(hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None) -> Answer:
    found = repository.find("/".join(rest))
    entries = []
    if "json" in request.headers.get("content-type", ""):
        paths = request.json["paths"]
    else:
        paths = parse_qs(request.body.decode())["paths"]
    for path in paths:
        if path in found.files:
            entries.append(_entry(path, found.files[path]))
        elif any(name.startswith(f"{path}/") for name in found.files):
            entries.append({"type": "directory", "path": path, "oid": "0" * 40, "size": 0})
    return as_json(entries)


def _refs(hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None) -> Answer:
    def told(kind: str, names: Mapping[str, str]) -> list[dict[str, str]]:
        return [{"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": oid} for name, oid in names.items()]

    pulls = told("pr", {str(pull.number): pull.head for pull in repository.pulls})
    wanted = {"pullRequests": pulls} if request.query.get("include_prs") else {}
    branches, tags = told("heads", repository.branches), told("tags", repository.tags)
    return as_json({"branches": branches, "tags": tags, "converts": [], **wanted})


def _commits(hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None) -> Answer:
    return as_json(
        [
            {"id": found.oid, "title": found.title, "message": found.message, "date": found.date, "authors": [
                {"user": found.author}
            ]}
            for found in repository.history("/".join(rest))
        ]
    )  # fmt: skip


def _branch(hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None) -> Answer:
    _may_write(repository, user)
    if "/".join(rest) in repository.branches:
        raise Refused(409, "", "Reference already exists")
    start = (request.json or {}).get("startingPoint") or "main"
    repository.branches["/".join(rest)] = repository.find(start).oid
    return as_json({})


def _tag(hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None) -> Answer:
    _may_write(repository, user)
    if request.method == "DELETE":
        del repository.tags["/".join(rest)]
        return as_json({})
    name = request.json["tag"]
    if name in repository.tags:
        raise Refused(409, "", f"Tag reference exists already: {name}")
    repository.tags[name] = repository.find("/".join(rest)).oid
    return as_json({})


def _discussions(
    hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None
) -> Answer:
    if request.method == "POST":  # /discussions/NUMBER/merge
        _may_write(repository, user)
        repository.merge(int(rest[0]))
        return as_json({})
    wanted = request.query.get("status")
    found = [pull for pull in repository.pulls if wanted in (None, "all", pull.status)]
    told = [
        {"title": pull.title, "num": pull.number, "author": {"name": pull.author}, "status": pull.status,
         "createdAt": repository.commits[pull.head].date, "isPullRequest": True,
         "repo": {"name": repository.name, "type": repository.kind}}
        for pull in found
    ]  # fmt: skip
    return as_json({"count": len(told), "start": 0, "discussions": told})


def _preupload(hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None) -> Answer:
    _may_write(repository, user, pull_request="create_pr" in request.query)
    return preupload(repository.find("/".join(rest)), request.json)


def _commit(hub: "LocalHub", repository: Repository, rest: list[str], request: Request, user: User | None) -> Answer:
    pull_request = "create_pr" in request.query
    _may_write(repository, user, pull_request=pull_request)
    assert user is not None
    return commit(hub, repository, "/".join(rest), request.body, user[0], pull_request=pull_request)


def _batch(
    hub: "LocalHub", repository: Repository, named: re.Match[str], request: Request, user: User | None
) -> Answer:
    _may_write(repository, user, pull_request=True)
    return batch(hub, request.json)


def _api(hub: "LocalHub", repository: Repository, named: re.Match[str], request: Request, user: User | None) -> Answer:
    rest = [unquote(part) for part in (named["rest"] or "").split("/")]
    return _ENDPOINTS[named["what"] or "info"](hub, repository, rest, request, user)


def _file(hub: "LocalHub", repository: Repository, named: re.Match[str], request: Request, user: User | None) -> Answer:
    path = unquote(named["file"])
    found = repository.find(unquote(named["rev"]))
    headers = {"X-Repo-Commit": found.oid}
    if path not in found.files:
        refused = Refused(404, "EntryNotFound", "Entry not found")
        refused.answer.headers |= headers
        raise refused
    file = found.files[path]
    if not file.sha256:
        answer = _bytes(file.read(), request)
        answer.headers |= {**headers, "ETag": f'"{file.etag}"'}
        return answer
    answer = _bytes(file.data, request)  # huggingface.co sends the client to a store of its own, which is no other file
    linked = {"X-Linked-Etag": f'"{file.sha256}"', "X-Linked-Size": str(file.size)}
    answer.headers |= {**headers, **linked, "ETag": f'"{file.sha256}"'}
    return answer


def _bytes(data: bytes | Path, request: Request) -> Answer:
    """The bytes, or the part of them that Range names."""
    size = len(data) if isinstance(data, bytes) else data.stat().st_size
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
    start = int(found[1]) if found else 0
    stop = min(int(found[2]) + 1, size) if found and found[2] else size
    headers = {"Accept-Ranges": "bytes"}
    if found:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    status = 206 if found else 200
    if isinstance(data, bytes):
        return Answer(status, data[start:stop], headers)
    return Answer(status, data, {**headers, "ETag": f'"{data.name}"'}, start, stop - start)


_ENDPOINTS: dict[str, Callable[["LocalHub", Repository, list[str], Request, User | None], Answer]] = {
    "info": _info,
    "revision": _info,
    "tree": _tree,
    "paths-info": _paths,
    "refs": _refs,
    "commits": _commits,
    "branch": _branch,
    "tag": _tag,
    "discussions": _discussions,
    "preupload": _preupload,
    "commit": _commit,
}

_SIMPLE: dict[str, Callable[["LocalHub", Request, User | None], Answer]] = {
    "/api/whoami-v2": _whoami,
    "/api/repos/create": _create,
    "/api/repos/delete": _delete,
    "/api/validate-yaml": _validate,
}
