"""Hours of GH Archive written for the tests, in the shapes of 2012, 2015 and 2026."""

import gzip
import json
from pathlib import Path
from typing import Any
from zlib import crc32

REPOSITORY = "saltmarsh/heron"
WEB = f"https://github.com/{REPOSITORY}"
Event = dict[str, Any]
_TITLES = (
    "Nesting fails when the tide table is empty",
    "Empty tide tables stop the nesting run",
    "Add a map of the reeds",
)
_BODY = "The run stops with an error as soon as the table has no row in it. It ought to say so and go on."


def issue(number: int, **changes: Any) -> Event:
    """An issue as the events of 2015 show it."""
    found = {
        "id": 5_000 + number,
        "url": f"https://api.github.com/repos/{REPOSITORY}/issues/{number}",
        "html_url": f"{WEB}/issues/{number}",
        "number": number,
        "title": _TITLES[number % 3],
        "user": {"login": "wader", "id": 7, "type": "User"},
        "labels": [{"name": "bug", "color": "fff"}],
        "state": "open",
        "author_association": "NONE",
        "created_at": "2015-01-01T10:00:00Z",
        "closed_at": None,
        "body": f"{_BODY} Seen {number} times.",
    }
    return found | changes


def event(
    kind: str, payload: Event, *, at: str = "2015-01-01T15:00:00Z", number: int = 1, actor: str = "wader"
) -> Event:
    """An event as the archive has it since 2015."""
    return {
        "id": str(number),
        "type": kind,
        "actor": {"id": 7, "login": actor, "gravatar_id": "", "url": f"https://api.github.com/users/{actor}"},
        "repo": {"id": 99, "name": REPOSITORY, "url": f"https://api.github.com/repos/{REPOSITORY}"},
        "payload": payload,
        "public": True,
        "created_at": at,
    }


def opened(number: int, *, at: str = "2015-01-01T15:00:00Z", **changes: Any) -> Event:
    return event("IssuesEvent", {"action": "opened", "issue": issue(number, **changes)}, at=at, number=100 + number)


def closed(number: int, *, at: str, by: str = "keeper", **changes: Any) -> Event:
    snapshot = issue(number, **{"state": "closed", "closed_at": at, **changes})
    return event("IssuesEvent", {"action": "closed", "issue": snapshot}, at=at, number=200 + number, actor=by)


def commented(number: int, said: str, *, of: Event | None = None, key: int = 1, **changes: Any) -> Event:
    """A comment; `of` changes the issue that comes with it, the rest the comment and the event."""
    at, by = changes.pop("at", "2015-01-01T16:00:00Z"), changes.pop("by", "keeper")
    action = changes.pop("action", "created")
    comment = {
        "id": key,
        "user": {"login": by, "type": "User"},
        "created_at": at,
        "updated_at": at,
        "author_association": "MEMBER",
        "body": said,
    } | changes
    payload = {"action": action, "issue": issue(number, **(of or {})), "comment": comment}
    number = 300 + crc32(f"{key} {action} {comment['updated_at']}".encode())
    return event("IssueCommentEvent", payload, at=comment["updated_at"], number=number, actor=by)


def trimmed(found: Event) -> Event:
    """The event with what it has since October 2025."""
    payload = json.loads(json.dumps(found["payload"]))
    for part in ("issue", "comment"):
        for name in ("author_association", "updated_at"):
            payload.get(part, {}).pop(name, None)
    return found | {"payload": payload}


def of_2012(kind: str, payload: Event, *, url: str, at: str = "2012/03/11 07:01:03 -0800") -> Event:
    """An event of the timeline, which the archive recorded until 2014."""
    owner, name = REPOSITORY.split("/")
    return {
        "repository": {"owner": owner, "name": name, "url": WEB, "has_issues": True},
        "actor_attributes": {"login": "keeper", "type": "User"},
        "created_at": at,
        "public": True,
        "actor": "keeper",
        "payload": payload,
        "url": url,
        "type": kind,
    }


def line(found: Event) -> bytes:
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()


def write(path: Path, *events: Event | bytes, end: bytes = b"\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [found if isinstance(found, bytes) else line(found) for found in events]
    path.write_bytes(gzip.compress(b"\n".join(lines) + (end if lines else b""), mtime=0))
    return path


def hours(folder: Path) -> Path:
    """Three hours of one repository, and one of another where nobody speaks of duplicates."""
    elsewhere = opened(9) | {"repo": {"id": 5, "name": "quiet/place"}}
    write(folder / "2015-01-01-15.json.gz", opened(1), opened(2), elsewhere, opened(3))
    write(
        folder / "2015-01-01-16.json.gz",
        commented(2, "Duplicate of #1", at="2015-01-01T16:10:00Z"),
        commented(3, "Thanks, I see.", key=2, of={"title": "Add a map of the sea"}),
        commented(4, "A dup of #77, I believe.", key=3, at="2015-01-01T16:20:00Z"),
    )
    write(
        folder / "2015-01-01-17.json.gz",
        closed(2, at="2015-01-01T17:00:00Z", labels=[{"name": "duplicate"}]),
        commented(3, "dupe: #1", key=2, at="2015-01-01T16:00:00Z", updated_at="2015-01-01T17:30:00Z", action="edited"),
    )
    return folder
