"""GitHub's issue search, as far as the collector asks it: qualifiers, phrases and where they are looked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, partial

from tests.local_github.pages import ApiError, Rows
from tests.local_github.store import Store
from tests.local_github.things import Issue, stamp

SHOWN = 1_000  # results that can be paged through, however many there are
LONGEST = 256  # characters of a query, qualifiers aside

Test = Callable[[Issue], bool]


def search_issues(store: Store, query: str) -> Rows:
    """All that match, sorted as asked (newest first without `sort:`)."""
    tests: list[Test] = []
    wanted: list[str] = []
    fields: set[str] = set()
    repositories: list[str] = []
    field, descending = "created", True
    for word in _words(query):
        name, colon, value = word.partition(":")
        value = value.strip('"')
        if word in ("AND", "OR", "NOT") or word.startswith(("(", '-"')):
            raise ApiError("INVALID", f"The local GitHub doesn't know {word} in a search")
        if word.startswith('"') or not colon:
            wanted.append(_normal(word))
        elif name == "in":
            fields.update(value.split(","))
        elif name == "repo":
            repositories.append(value)
        elif name == "sort":
            field, _, direction = value.partition("-")
            descending = direction != "asc"
        else:
            tests.append(_test(name, value))
    homes = [home for name in repositories if (home := store.repository(name))]
    if repositories and not homes:
        raise ApiError(
            "INVALID", "The listed users and repositories cannot be searched either because the resources do not exist."
        )
    if sum(map(len, wanted)) > LONGEST:
        raise ApiError("INVALID", "The search is longer than 256 characters.")
    tests.append(partial(_says, wanted, fields or {"title", "body", "comments"}))
    among = homes if repositories else store.repositories.values()
    found = [issue for home in among for issue in home.issues.values() if all(test(issue) for test in tests)]
    return Rows(found, _KEYS[field], descending=descending)


_KEYS: dict[str, Callable[[Issue], tuple[str | int, ...]]] = {
    "created": lambda issue: (stamp(issue.created_at), issue.id),
    "updated": lambda issue: (stamp(issue.updated_at), issue.id),
    "comments": lambda issue: (len(issue.comments), issue.id),
}


def _words(query: str) -> list[str]:
    """Words, quoted phrases and qualifiers; the quotes stay."""
    return re.findall(r'-?\w+:"[^"]*"|-?"[^"]*"|\S+', query)


def _test(name: str, value: str) -> Test:
    if name.startswith("-"):
        test = _test(name[1:], value)
        return lambda issue: not test(issue)
    match name:
        case "is" | "type" | "state":
            if value in _KINDS:
                return _KINDS[value]
        case "label":
            labels = {label.lower() for label in value.split(",")}
            return lambda issue: any(label.lower() in labels for label in issue.labels)
        case "reason":
            return lambda issue: issue.state == "closed" and issue.reason == value.replace(" ", "_")
        case "author":
            return lambda issue: (issue.author or "ghost").lower() == value.lower()
        case "created" | "updated" | "closed":
            return partial(_within, f"{name}_at", *_range(value))
    raise ApiError("INVALID", f"The local GitHub doesn't know the search qualifier {name}:{value}")


_KINDS: dict[str, Test] = {
    "issue": lambda issue: not issue.pull_request,
    "pr": lambda issue: issue.pull_request,
    "open": lambda issue: issue.state == "open",
    "closed": lambda issue: issue.state == "closed",
    "locked": lambda issue: issue.locked,
    "public": lambda issue: True,
}


def _within(field: str, start: datetime, stop: datetime, issue: Issue) -> bool:
    time: datetime | None = getattr(issue, field)
    return time is not None and start <= time < stop


def _range(value: str) -> tuple[datetime, datetime]:
    """From (inclusive) and until (exclusive) of "A..B", ">A", ">=A", "<A", "<=A" and "A"; a day is all its hours."""
    match = re.fullmatch(r"(>=|<=|>|<)?([^.]*?)(?:\.\.(.*))?", value)
    if not match:
        raise ApiError("INVALID", f"{value} isn't a range of dates.")
    sign, left, right = match.groups()
    if right is not None:
        return (_span(left)[0] if left != "*" else _FIRST), (_span(right)[1] if right != "*" else _LAST)
    start, stop = _span(left)
    match sign:
        case ">":
            return stop, _LAST
        case ">=":
            return start, _LAST
        case "<":
            return _FIRST, start
        case "<=":
            return _FIRST, stop
    return start, stop


_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def _span(text: str) -> tuple[datetime, datetime]:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ApiError("INVALID", f"{text} isn't a date.") from None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return time, time + (timedelta(days=1) if len(text) == 10 else timedelta(seconds=1))


def _says(wanted: list[str], fields: set[str], issue: Issue) -> bool:
    """Whether each word or phrase stands in one of the fields."""
    if not wanted:
        return True
    texts = [_normal(getattr(issue, field) or "") for field in ("title", "body") if field in fields]
    if "comments" in fields:
        texts += [_normal(comment.body or "") for comment in issue.comments]
    return all(any(phrase in text for text in texts) for phrase in wanted)


@cache
def _normal(text: str) -> str:
    """Lower-case words with a space on each side, so that phrases match whole words, whatever stands between them."""
    words = re.findall(r"[^\W_]+", text.lower())
    return f" {' '.join(words)} "
