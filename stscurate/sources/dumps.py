"""Issues out of dumps: JSON lines, or folders with one JSON file an issue, as metadata-backup tools write them.

Three shapes of a row are read, all with GitHub's REST field names: an issue whose `comments` are a list; an issue
with its comments under `comment_data` (python-github-backup); {"issue": ..., "events": [...], "comments": [...]},
the comments among the events or beside them (github-metadata-backup). Any field may be missing or null, but the
number, the title and the repository.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from stscurate.errors import InputError
from stscurate.files import json_lines, reading
from stscurate.methods.references import known_as
from stscurate.records import Tally

_LINES = (".jsonl", ".ndjson")
_PACKED = (".gz", ".xz", ".bz2")
_PLACEHOLDER = re.compile(r"user-[0-9a-f]{10}")
_REPOSITORY = re.compile(r"(?:https?://[^/]+/(?:api/v3/)?(?:repos/)?)?([^/\s]+/[^/\s]+)(?:/.*)?")
_UNSTORABLE = re.compile("[\ud800-\udfff\0]")
# Bots whose login doesn't end in "[bot]".
_BOTS = {"bors", "rustbot", "rust-highfive", "k8s-ci-robot", "k8s-triage-robot", "fejta-bot", "vscodebot", "msftbot"}
_BOTS |= {"googlebot", "facebook-github-bot", "pytorchmergebot", "drahtbot", "nodejs-github-bot", "stale-bot"}


@dataclass(frozen=True)
class Comment:
    """A comment of an issue; `author` is a placeholder."""

    author: str
    is_bot: bool
    association: str | None
    at: datetime | None
    body: str


class Mark(NamedTuple):
    """GitHub's own word that an issue is a duplicate of `repository`#`number`; not `standing` once taken back."""

    repository: str
    number: int
    evidence: str  # event, state_reason
    at: datetime | None
    standing: bool = True


@dataclass(frozen=True)
class Issue:
    """An issue with its comments; `closings` are (who, when), who being None where the dump doesn't say."""

    repository: str
    number: int
    title: str
    body: str
    state: str
    state_reason: str | None
    labels: list[str]
    author: str
    association: str | None
    created_at: datetime | None
    closed_at: datetime | None
    url: str | None
    comments: list[Comment]
    closings: list[tuple[str | None, datetime]]
    marks: Sequence[Mark] = ()


def read_issues(
    path: Path, *, size: int, moved: Mapping[str, str] | None = None
) -> Iterator[tuple[list[Issue], Tally]]:
    """Batches of `size` issues of a file or folder, in its order, each with what was read and dropped on the way.

    Pull requests, and files of a folder that are no issues, are dropped; of an issue that stands twice the first
    is kept, and of a repository's name in capitals and small letters the first spelling. moved: old name in lower case
    -> new name of repositories that were renamed.
    InputError names the file and line of broken JSON and of a row that isn't an issue.
    """
    if not path.exists():
        raise InputError(f"{path} doesn't exist: check the path.")
    issues: list[Issue] = []
    tally = Tally()
    seen: set[tuple[str, int]] = set()
    names: dict[str, str] = {}
    for place, row in _rows(path, tally):
        tally.rows_in += 1
        reason = _other_kind(row, in_folder=path.is_dir())
        if reason:
            tally.drop(reason)
            continue
        issue = issue_of(row, place, moved, tally)
        key = (issue.repository.lower(), issue.number)
        if key in seen:
            tally.drop("repeated_issue")
            continue
        seen.add(key)
        name = names.setdefault(key[0], issue.repository)
        issues.append(issue if name == issue.repository else replace(issue, repository=name))
        if len(issues) == size:
            yield issues, tally
            issues, tally = [], Tally()
    if not seen:
        raise InputError(f"{path} has no issue in it (dropped: {dict(tally.dropped) or 'nothing'}): check the path.")
    yield issues, tally  # the last may be empty: what was dropped after the last issue is counted


def read_bodies(path: Path, *, moved: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """(repository, body) of each issue that `read_issues` gives, read in a fraction of its time.

    A row that isn't an issue is passed by: `read_issues` says what is wrong with it.
    """
    seen: set[tuple[str, int]] = set()
    names: dict[str, str] = {}
    for place, row in _rows(path, Tally()):
        issue = row.get("issue", row) if isinstance(row, dict) else row
        if not isinstance(issue, dict) or _other_kind(row, in_folder=path.is_dir()):
            continue
        repository, number, body = known_as(_repository(issue, place), moved), issue.get("number"), issue.get("body")
        key = (repository.lower(), number if isinstance(number, int) else 0)
        if key not in seen:
            seen.add(key)
            yield names.setdefault(key[0], repository), body if isinstance(body, str) else ""


@lru_cache(maxsize=65_536)
def placeholder(login: str | None) -> str:
    """A stable name that isn't the login; "ghost" for nobody, and a placeholder for itself."""
    if not login:
        return "ghost"
    if _PLACEHOLDER.fullmatch(login):
        return login
    return f"user-{hashlib.sha256(login.encode('utf-8', 'replace')).hexdigest()[:10]}"


def is_bot(user: Any) -> bool:
    """Whether an account, as GitHub's APIs give it, is a program's."""
    login = (_login(user) or "").lower()
    return login.endswith("[bot]") or login in _BOTS or (isinstance(user, dict) and user.get("type") == "Bot")


def _rows(path: Path, tally: Tally) -> Iterator[tuple[str, Any]]:
    """(place, value) of each row of a file, or of each JSON file of a folder."""
    if path.is_file():
        yield from ((f"{path}, line {number}", row) for number, row in json_lines(path))
        return
    for file in sorted(path.rglob("*")):
        if not file.is_file() or any(part.startswith(".") for part in file.relative_to(path).parts):
            continue
        if file.suffix == ".json":
            yield str(file), _read_json(file)
        elif file.suffix in _LINES or (file.suffix in _PACKED and Path(file.stem).suffix in _LINES):
            yield from ((f"{file}, line {number}", row) for number, row in json_lines(file))
        else:
            tally.rows_in += 1
            tally.drop("other_file")


def _read_json(path: Path) -> Any:
    with reading(path):
        try:
            return json.loads(path.read_bytes())
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path}, line {error.lineno} isn't valid JSON ({error.msg}, character {error.colno}): "
                "mend the file or remove it."
            ) from None


def _other_kind(row: Any, *, in_folder: bool) -> str | None:
    """Why a row is none of our issues; None if it is one, or ought to be.

    Backups keep labels, milestones and their own state in the same folder: there, such files are no mistake.
    """
    issue = row.get("issue", row) if isinstance(row, dict) else row
    if isinstance(row, dict) and "pull" in row:
        return "pull_request"
    if isinstance(issue, dict) and (issue.get("pull_request") or ("head" in issue and "base" in issue)):
        return "pull_request"
    is_issue = isinstance(issue, dict) and {"number", "title"} <= issue.keys() and "open_issues" not in issue
    return "not_an_issue" if in_folder and not is_issue else None


def issue_of(
    row: Any, place: str, moved: Mapping[str, str] | None, tally: Tally, *, marks: Sequence[Mark] = ()
) -> Issue:
    """The issue of a row in one of the three shapes; what had to be mended is counted.

    place: where the row stands, for messages. marks: dumps have none. InputError where it isn't an issue.
    """
    if not isinstance(row, dict):
        raise InputError(f"{place} holds a {type(row).__name__}: each row is one issue as a JSON object.")
    issue = row["issue"] if isinstance(row.get("issue"), dict) else row
    number, title = issue.get("number"), issue.get("title")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**53:
        raise InputError(f"{place} isn't an issue: its number is {number!r:.40}. Remove the row.")
    if not isinstance(title, str):
        raise InputError(f"{place} isn't an issue: its title is {title!r:.40}. Remove the row.")
    events = [event for event in _list(row.get("events") or row.get("event_data")) if isinstance(event, dict)]
    closed_at = _time(issue.get("closed_at"), tally)
    closings = [(_login(event.get("actor")), _time(event.get("created_at"), tally)) for event in _of("closed", events)]
    if not closings:
        closings = [(_login(issue.get("closed_by")), closed_at)]
    return Issue(
        repository=known_as(_repository(issue, place), moved),
        number=number,
        title=_text(title, tally),
        body=_text(issue.get("body"), tally),
        state=_text(issue.get("state"), tally) or ("closed" if closed_at else "open"),
        state_reason=_text(issue.get("state_reason"), tally) or None,
        labels=[_text(_named(label), tally) for label in _list(issue.get("labels"))],
        author=placeholder(_login(issue.get("user"))),
        association=_text(issue.get("author_association"), tally) or None,
        created_at=_time(issue.get("created_at"), tally),
        closed_at=closed_at,
        url=_text(issue.get("html_url"), tally) or None,
        comments=_comments(row, issue, events, tally),
        closings=[(placeholder(who) if who else None, when) for who, when in closings if when],
        marks=marks,
    )


def _repository(issue: Mapping[str, Any], place: str) -> str:
    for name in ("repository", "repository_url", "html_url", "url"):
        value = issue.get(name)
        if isinstance(value, dict):  # some API answers nest the repository
            value = value.get("full_name")
        match = _REPOSITORY.fullmatch(value) if isinstance(value, str) else None
        if match:
            return _UNSTORABLE.sub("\ufffd", match[1])
    raise InputError(
        f"{place} doesn't say of which repository it is: add a field repository, for example "
        '"repository": "owner/name".'
    )


def _comments(row: Mapping[str, Any], issue: Mapping[str, Any], events: list[Any], tally: Tally) -> list[Comment]:
    for found in (issue.get("comments"), row.get("comments"), row.get("comment_data"), _of("commented", events)):
        if isinstance(found, list) and found:  # `comments` is their number in most answers of the API
            return [_comment(comment, tally) for comment in found if isinstance(comment, dict)]
    return []


def _comment(row: Mapping[str, Any], tally: Tally) -> Comment:
    user = row.get("user") or row.get("actor")
    return Comment(
        author=placeholder(_login(user)),
        is_bot=is_bot(user),
        association=_text(row.get("author_association"), tally) or None,
        at=_time(row.get("created_at"), tally),
        body=_text(row.get("body"), tally),
    )


def _of(kind: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event.get("event") == kind]


def _login(user: Any) -> str | None:
    login = user.get("login") if isinstance(user, dict) else user
    return login if isinstance(login, str) else None


def _named(label: Any) -> Any:
    return label.get("name") if isinstance(label, dict) else label


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any, tally: Tally) -> str:
    """The text without what no table can hold; "" for anything else."""
    if not isinstance(value, str):
        return ""
    if value.isascii() and "\0" not in value:  # most are, and a look at that is free
        return value
    mended, times = _UNSTORABLE.subn("\ufffd", value)
    if times:
        tally.count("mended", "texts_with_unstorable_characters")
    return mended


def _time(value: Any, tally: Tally) -> datetime | None:
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
        if time.microsecond or not time.tzinfo:
            time = time.replace(tzinfo=time.tzinfo or UTC, microsecond=0)
        return time
    except (TypeError, ValueError):
        tally.count("mended", "unreadable_time")
        return None
