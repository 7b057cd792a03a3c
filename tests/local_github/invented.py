"""Made-up repositories of any size whose duplicates are known, for figures: seeded, the same every time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.local_github.things import Place, stamp

_START = datetime(2019, 1, 1, tzinfo=UTC)
_WORDS = """build fails after update cannot open window crash when saving large file slow start memory leak in parser
wrong colour theme missing option config ignored on restart network timeout proxy login error token expired cache
stale index search empty result scroll jumps keyboard shortcut broken font size zoom print export import unicode path
symlink windows linux package install version mismatch dependency loop thread deadlock log noise panic stack trace
regression since release button hidden menu focus lost terminal prompt colour escape plugin api breaking change docs
typo example request feature support dark mode drag drop clipboard copy paste undo redo history tab close reload
""".split()  # noqa: SIM905 - more lines than text otherwise
_KEEPERS = ("keeper-one", "keeper-two", "keeper-three")


@dataclass
class Made:
    """`issues` in REST's names and `marks` as `LocalGitHub.seed` takes them; `duplicates` is the truth: duplicate ->
    canonical; `shown_by` says by what each can be found: "all", "reason", "event", "label" or "comment"."""

    issues: list[dict[str, Any]] = field(default_factory=list)
    marks: dict[Place, Place] = field(default_factory=dict)
    duplicates: dict[Place, Place] = field(default_factory=dict)
    shown_by: dict[Place, str] = field(default_factory=dict)


def make_repository(
    name: str,
    *,
    issues: int,
    duplicate_rate: float,
    with_event_only: float = 0.1,
    label_only: float = 0.1,
    comment_only: float = 0.3,
    reason_only: float = 0.2,
    noise: float = 0.03,
    seed: int = 0,
) -> Made:
    """A repository of `issues` issues, of which a share are duplicates, and of those the shares told have only

    - an event (closed with another reason, no comment: search can't see it),
    - the label, and a comment without the words "duplicate of" ("Dupe: #1"),
    - a comment "Duplicate of #1" without an event, as before GitHub knew marks,
    - the closing reason, and its event, as GitHub's own button leaves them;

    the rest have the comment and the event it made. noise: the share of others where somebody asks whether it's a
    duplicate of something.
    """
    rng = random.Random(seed)
    made = Made()
    kinds = ("event", "label", "comment", "reason", "all")
    shares = (with_event_only, label_only, comment_only, reason_only)
    weights = (*shares, 1 - sum(shares))
    originals: list[int] = []
    for number, at in enumerate(_times(rng, issues), start=1):
        place = (name, number)
        row = _issue(rng, name, number, at)
        if originals and rng.random() < duplicate_rate:
            canonical = rng.choice(originals)
            kind = rng.choices(kinds, weights)[0]
            _close_as_duplicate(rng, row, canonical, kind)
            made.duplicates[place], made.shown_by[place] = (name, canonical), kind
            if kind in ("event", "reason", "all"):
                made.marks[place] = (name, canonical)
        else:
            if originals and rng.random() < noise:
                _say(row, rng, f"Is this a duplicate of #{rng.choice(originals)}?", "NONE")
            originals.append(number)
        made.issues.append(row)
    return made


def _times(rng: random.Random, count: int) -> Iterator[datetime]:
    at = _START
    for _ in range(count):
        at += timedelta(seconds=rng.randint(600, 20_000))
        yield at


def _issue(rng: random.Random, name: str, number: int, at: datetime) -> dict[str, Any]:
    row: dict[str, Any] = {
        "repository": name,
        "number": number,
        "title": _text(rng, rng.randint(4, 9)).capitalize(),
        "body": _text(rng, int(rng.lognormvariate(4, 1)) + 5),
        "state": "open",
        "state_reason": None,
        "labels": rng.sample(["bug", "feature", "docs", "question", "regression"], rng.choice((0, 1, 1, 2))),
        "user": f"user-{rng.randint(1, 400)}",
        "author_association": "NONE",
        "created_at": stamp(at),
        "updated_at": stamp(at),
        "closed_at": None,
        "closed_by": None,
        "comments": [],
    }
    for _ in range(rng.choice((0, 0, 1, 2, 3, 6))):
        _say(row, rng, _text(rng, rng.randint(5, 60)), "NONE")
    if rng.random() < 0.7:
        _close(row, rng, "completed")
    return row


def _close_as_duplicate(rng: random.Random, row: dict[str, Any], canonical: int, kind: str) -> None:
    if kind == "label":
        row["labels"].append("duplicate")
        _say(row, rng, f"Dupe: #{canonical}", "MEMBER")
    elif kind in ("comment", "all"):
        _say(row, rng, f"Duplicate of #{canonical}", "MEMBER")
    _close(row, rng, "duplicate" if kind == "reason" else "not_planned")


def _close(row: dict[str, Any], rng: random.Random, reason: str) -> None:
    at = _later(row, rng.randint(1, 200))
    row.update(state="closed", state_reason=reason, closed_at=at, updated_at=at, closed_by=rng.choice(_KEEPERS))


def _say(row: dict[str, Any], rng: random.Random, body: str, association: str) -> None:
    who = rng.choice(_KEEPERS) if association == "MEMBER" else f"user-{rng.randint(1, 400)}"
    at = _later(row, rng.randint(60, 90_000))
    row["comments"].append({"user": who, "author_association": association, "created_at": at, "body": body})
    row["updated_at"] = at


def _later(row: dict[str, Any], seconds: int) -> str:
    return stamp(datetime.fromisoformat(row["updated_at"]) + timedelta(seconds=seconds))


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words))
