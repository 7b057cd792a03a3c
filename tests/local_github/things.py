"""What a GitHub is made of: repositories, issues, comments and events, each with its node id."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime

Place = tuple[str, int]  # an issue's repository ("owner/name") and number


def when(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def stamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Repository:
    id: int
    name: str  # "owner/name"
    licence: str | None = "Apache-2.0"
    archived: bool = False
    has_issues: bool = True
    issues: dict[int, Issue] = field(default_factory=dict)
    gone: dict[int, Place | None] = field(default_factory=dict)  # number -> where it was moved to, None if deleted

    kind = "Repository"


@dataclass
class Comment:
    id: int
    issue: Issue
    author: str | None
    association: str
    at: datetime
    body: str | None
    minimized: str | None = None

    kind = "IssueComment"


@dataclass
class Event:
    """`kind` is the name of its GraphQL type; `canonical` is where the mark pointed when it was made."""

    id: int
    kind: str
    issue: Issue
    actor: str | None
    at: datetime
    canonical: Issue | None = None
    reason: str | None = None
    label: str | None = None
    origin: Repository | None = None


@dataclass
class Issue:
    id: int
    repository: Repository
    number: int
    title: str
    body: str | None
    author: str | None
    association: str
    created_at: datetime
    updated_at: datetime
    state: str = "open"
    reason: str | None = None
    closed_at: datetime | None = None
    closed_by: str | None = None
    labels: list[str] = field(default_factory=list)
    locked: bool = False
    pinned: bool = False
    pull_request: bool = False
    comments: list[Comment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    lost: bool = False  # deleted or moved away: nothing leads here any more

    @property
    def kind(self) -> str:
        return "PullRequest" if self.pull_request else "Issue"

    @property
    def duplicate_of(self) -> Issue | None:
        """The canonical issue of the last mark that wasn't taken back, while the issue is closed as a duplicate."""
        marks: list[Issue | None] = []
        for event in (event for event in self.events if event.issue is self):
            if event.kind == "MarkedAsDuplicateEvent":
                marks.append(event.canonical)
            elif event.kind == "UnmarkedAsDuplicateEvent":
                marks = [mark for mark in marks if mark is not event.canonical]
        alive = [mark for mark in marks if mark and not mark.lost]
        return alive[-1] if alive and self.state == "closed" else None


Item = Repository | Issue | Comment | Event

PREFIXES = {"Repository": "R_", "Issue": "I_", "PullRequest": "PR_", "IssueComment": "IC_"}


def node_id(item: Item) -> str:
    packed = base64.urlsafe_b64encode(struct.pack(">BQ", 0x92, item.id)).decode().rstrip("=")
    return f"{PREFIXES.get(item.kind, 'EV_')}kw{packed}"
