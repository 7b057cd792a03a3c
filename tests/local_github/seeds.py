"""Fillings of the local GitHub: written issues (or any dump with REST's names), and whole made-up repositories."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from tests.local_github.store import Store
from tests.local_github.things import Place, when

RUST = Path(__file__).parent.parent.parent.parent / "shared" / "data" / "issues" / "rust-issues.jsonl.xz"


def read_dump(path: Path, at_most: int | None = None) -> Iterator[dict[str, Any]]:
    """The issues of a JSON-lines file, packed by xz or not."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open(encoding="utf-8") as lines:
        for line in islice(lines, at_most):
            yield json.loads(line)


def fill(store: Store, issues: Iterable[Mapping[str, Any]], marks: Mapping[Place, Place] | None = None) -> None:
    """Put issues with REST's field names into the store, and mark duplicates by events just before their closing.

    marks: duplicate -> canonical, both (repository, number).
    """
    for row in issues:
        _insert(store, row)
    for place, canonical in (marks or {}).items():
        issue = store.issue(place)
        at = (issue.closed_at or issue.updated_at) - timedelta(seconds=1)
        store.mark_duplicate(place, canonical, at=at, actor=issue.closed_by or "keeper")


def _insert(store: Store, row: Mapping[str, Any]) -> None:
    created = when(row["created_at"])
    closed = when(row["closed_at"]) if row.get("closed_at") else None
    comments = row["comments"] if isinstance(row.get("comments"), list) else []
    last = max([created, closed or created, *(when(comment["created_at"]) for comment in comments)])
    issue = store.insert(
        _repository(row),
        row["number"],
        title=row["title"],
        body=row.get("body"),
        author=_login(row.get("user")),
        association=row.get("author_association") or "NONE",
        created_at=created,
        updated_at=when(row["updated_at"]) if row.get("updated_at") else last,
        state=row.get("state") or "open",
        reason=row.get("state_reason"),
        closed_at=closed,
        closed_by=_login(row.get("closed_by")) or (_closer(comments, closed) if closed else None),
        labels=[label["name"] if isinstance(label, dict) else label for label in row.get("labels") or []],
        locked=bool(row.get("locked")),
        pull_request=bool(row.get("pull_request")),
    )
    place = (issue.repository.name, issue.number)
    for comment in comments:
        who = {
            "author": _login(comment.get("user")),
            "association": comment.get("author_association") or "NONE",
        }
        store.comment(place, comment.get("body"), at=when(comment["created_at"]), **who)
    if closed:
        store.event(place, "ClosedEvent", at=closed, actor=issue.closed_by, reason=issue.reason)


def _closer(comments: list[Mapping[str, Any]], closed: datetime) -> str:
    """A dump that doesn't say who closed: whoever spoke last within the ten minutes before, else a maintainer."""
    just_before = [c for c in comments if timedelta(0) <= closed - when(c["created_at"]) <= timedelta(minutes=10)]
    people = [c for c in comments if c.get("author_association") in {"OWNER", "MEMBER", "COLLABORATOR"}]
    return next((login for c in reversed(people[:1] + just_before) if (login := _login(c.get("user")))), "keeper")


def _login(user: Any) -> str | None:
    return user.get("login") if isinstance(user, dict) else user


def _repository(row: Mapping[str, Any]) -> str:
    name = row.get("repository") or "/".join((row.get("html_url") or row["url"]).split("/")[-4:-2])
    return name["full_name"] if isinstance(name, dict) else name
