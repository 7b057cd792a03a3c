"""All that the local GitHub knows, in memory, and what may happen to it while a client reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tests.local_github.things import Comment, Event, Issue, Item, Place, Repository, node_id

_Item = TypeVar("_Item", Repository, Issue, Comment, Event)


class Store:
    """All repositories; `lock` is held while a request is answered or a change is made, so each sees a whole state.

    now: gives the time that changes are stamped with.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.lock = threading.RLock()
        self.now = now
        self.repositories: dict[str, Repository] = {}  # by name in lower case
        self.nodes: dict[str, Item] = {}
        self.renamed: dict[str, str] = {}
        self.revision = 0  # grows with every change
        self._last_id = 1_000_000

    # -- looking up

    def repository(self, name: str) -> Repository | None:
        name = name.lower()
        return self.repositories.get(self.renamed.get(name, name))

    def issue(self, place: Place) -> Issue:
        """KeyError if there is none."""
        return self.repositories[place[0].lower()].issues[place[1]]

    # -- filling

    def add_repository(
        self, name: str, *, licence: str | None = "Apache-2.0", archived: bool = False, has_issues: bool = True
    ) -> Repository:
        known = self.repositories.get(name.lower())
        if known is None:
            known = self._register(Repository(self._next_id(), name, licence, archived, has_issues))
            self.repositories[name.lower()] = known
        return known

    def insert(self, repository: str, number: int | None = None, **values: Any) -> Issue:
        """A new issue; what isn't given is plain. number: the next one unless given."""
        with self.lock:
            home = self.add_repository(repository)
            number = number or max((*home.issues, *home.gone), default=0) + 1
            if number in home.issues:
                raise ValueError(f"{repository}#{number} stands there already")
            at = values.setdefault("created_at", self.now())
            values.setdefault("updated_at", at)
            given: dict[str, Any] = {"title": "", "body": "", "author": "somebody", "association": "NONE", **values}
            issue = self._register(Issue(self._next_id(), home, number, **given))
            home.issues[number] = issue
            return issue

    def comment(self, place: Place, body: str | None, **values: Any) -> Comment:
        with self.lock:
            issue = self.issue(place)
            at = values.pop("at", None) or self._touch(issue)
            given: dict[str, Any] = {"author": "somebody", "association": "NONE", **values}
            comment = self._register(Comment(self._next_id(), issue, at=at, body=body, **given))
            issue.comments.append(comment)
            return comment

    def event(self, place: Place, kind: str, **values: Any) -> Event:
        """kind: the name of the event's GraphQL type."""
        with self.lock:
            issue = self.issue(place)
            at = values.pop("at", None) or self._touch(issue)
            event = self._register(Event(self._next_id(), kind, issue, at=at, **{"actor": "somebody", **values}))
            issue.events.append(event)
            return event

    # -- what happens to issues while a client reads

    def edit(self, place: Place, **values: Any) -> None:
        with self.lock:
            issue = self.issue(place)
            for name, value in values.items():
                if not hasattr(issue, name):
                    raise TypeError(f"an issue has no {name}")
                setattr(issue, name, value)
            self._touch(issue)

    def close(
        self, place: Place, *, reason: str = "completed", actor: str = "somebody", canonical: Place | None = None
    ) -> None:
        """canonical: what the closing as a duplicate names."""
        with self.lock:
            target = self.issue(canonical) if canonical else None
            event = self.event(place, "ClosedEvent", reason=reason, actor=actor, canonical=target)
            issue = self.issue(place)
            issue.state, issue.reason, issue.closed_at, issue.closed_by = "closed", reason, event.at, actor

    def reopen(self, place: Place, *, actor: str = "somebody") -> None:
        with self.lock:
            self.event(place, "ReopenedEvent", actor=actor)
            issue = self.issue(place)
            issue.state, issue.reason, issue.closed_at, issue.closed_by = "open", "reopened", None, None

    def mark_duplicate(self, place: Place, canonical: Place, *, at: datetime | None = None, **values: Any) -> None:
        """The event stands on the duplicate, and on the canonical issue too, as GitHub shows it on both."""
        with self.lock:
            self._mark("MarkedAsDuplicateEvent", place, canonical, at, values)

    def unmark_duplicate(self, place: Place, canonical: Place, *, at: datetime | None = None, **values: Any) -> None:
        with self.lock:
            self._mark("UnmarkedAsDuplicateEvent", place, canonical, at, values)

    def delete(self, place: Place) -> None:
        with self.lock:
            self._lose(place, None)

    def transfer(self, place: Place, repository: str) -> Place:
        """Move an issue: there it gets a new number and a new id, here its number leads there."""
        with self.lock:
            old = self.issue(place)
            new = self.insert(repository, **{name: getattr(old, name) for name in _CARRIED.split()})
            for comment in old.comments:
                values = {"author": comment.author, "association": comment.association, "at": comment.at}
                self.comment((new.repository.name, new.number), comment.body, **values)
            there = (new.repository.name, new.number)
            self.event(there, "TransferredEvent", origin=old.repository)
            self._lose(place, there)
            return there

    def rename(self, old: str, new: str) -> None:
        with self.lock:
            repository = self.repositories.pop(old.lower())
            repository.name = new
            self.repositories[new.lower()] = repository
            self.renamed[old.lower()] = new.lower()

    def convert_to_discussion(self, place: Place, *, actor: str = "somebody") -> None:
        """The issue stays, closed and locked, with an event that says where its talk goes on."""
        with self.lock:
            self.close(place, actor=actor)
            self.event(place, "ConvertedToDiscussionEvent", actor=actor)
            self.issue(place).locked = True

    # -- within

    def _mark(self, kind: str, place: Place, canonical: Place, at: datetime | None, values: Mapping[str, Any]) -> None:
        issue, target = self.issue(place), self.issue(canonical)
        at = at or self._touch(issue)
        event = self.event(place, kind, canonical=target, at=at, **values)
        target.events.append(event)

    def _lose(self, place: Place, there: Place | None) -> None:
        issue = self.repositories[place[0].lower()].issues.pop(place[1])
        issue.lost = True
        issue.repository.gone[place[1]] = there
        lost: list[Item] = [issue, *issue.comments]
        for item in lost:
            del self.nodes[node_id(item)]
        self.revision += 1

    def _touch(self, issue: Issue) -> datetime:
        issue.updated_at = max(self.now(), issue.updated_at + timedelta(seconds=1))
        self.revision += 1
        return issue.updated_at

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _register(self, item: _Item) -> _Item:
        self.nodes[node_id(item)] = item
        self.revision += 1
        return item


_CARRIED = """title body author association created_at updated_at state reason closed_at closed_by labels locked"""
