"""An event of GH Archive as a row of the table `events`: what it shows of an issue and of a comment, without logins.

Three shapes are read: the Events API's (2015 to October 2025), the same with fewer fields (since then), and the
timeline's (2011 to 2014), whose payloads name issues by number and hold no texts: of those, the closings are kept.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from stscurate.records import Tally
from stscurate.sources.dumps import is_bot, placeholder
from stscurate.sources.lists import LEFT_OUT, OptOut

_OF_ISSUE = ("title", "body", "state", "state_reason", "author_association", "created_at", "closed_at", "html_url")
_OF_COMMENT = ("id", "body", "author_association", "created_at", "updated_at")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_NUMBER_IN_URL = re.compile(r"/(?:issues|pull)/(\d{1,15})(?!\d)")
_PULL_URL = re.compile(r"/pull/\d+(?:#|$)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder()

Event = dict[str, Any]
_NOBODY = OptOut()
_named = lru_cache(1 << 14)(placeholder)  # the same people come again and again


def parse(line: bytes) -> list[Any] | None:
    """The values of a line, which is one but in files of 2011 and 2012; None where it isn't JSON."""
    try:
        return [orjson.loads(line)]
    except (
        orjson.JSONDecodeError
    ):  # half a surrogate pair, a number too long, several values; or nothing that can be read
        pass
    try:
        text = line.decode("utf-8", "replace").strip()
        found = []
        at = 0
        while at < len(text):
            value, at = _DECODER.raw_decode(text, at)
            found.append(value)
            while text[at : at + 1].isspace():
                at += 1
    except (ValueError, RecursionError):
        return None
    return found


def row_of(event: Any, opt_out: OptOut, repositories: frozenset[str] | None, tally: Tally) -> Event | None:
    """The event's row of the table `events`; None where it has none, which is counted by reason.

    repositories: names in lower case; all where it is None.
    """
    reason, row = _read(event, opt_out, repositories, tally)
    if reason:
        tally.drop(reason)
        return None
    return row


def _read(event: Any, opt_out: OptOut, repositories: frozenset[str] | None, tally: Tally) -> tuple[str, Event]:
    """(why it is left out, its row): one of them is empty."""
    kind = event.get("type") if isinstance(event, dict) else None
    if kind not in ("IssuesEvent", "IssueCommentEvent"):
        return ("other_event" if isinstance(kind, str) else "broken_line"), {}
    payload = _dict(event.get("payload"))
    issue = _dict(payload.get("issue"))
    repository, number = _repository(event), _number(event, payload, issue)
    if not repository or not number:
        return "without_place", {}
    if repositories is not None and repository.lower() not in repositories:
        return "not_listed", {}
    if _is_pull(event, payload, issue):
        return "pull_request", {}
    author = _login(issue.get("user"))
    if opt_out != _NOBODY and (opt_out.issue(repository, number) or opt_out.user(author)):
        return "opted_out", {}
    snapshot = _snapshot(number, author, issue) if isinstance(issue.get("title"), str) else None
    comment = _comment(_dict(payload.get("comment")), opt_out, tally) if kind == "IssueCommentEvent" else None
    action, actor = payload.get("action"), _login(event.get("actor"))
    closes = kind == "IssuesEvent" and action in ("closed", "reopened", "transferred", "deleted")
    if not (snapshot or comment or closes):
        return "without_texts", {}
    return "", {
        "repository": repository,
        "number": number,
        "at": _time(event.get("created_at")),
        "event": str(event.get("id") or ""),
        "action": f"{'comment' if kind == 'IssueCommentEvent' else 'issue'}_{_kind(_text(action))}",
        "actor": _named(LEFT_OUT if opt_out.user(actor) else actor),
        "issue": _json(snapshot) if snapshot else None,
        "comment": _json(comment) if comment else None,
    }


def _snapshot(number: int, author: str | None, issue: Event) -> Event:
    kept = {name: issue[name] for name in _OF_ISSUE if name in issue}
    if isinstance(labels := issue.get("labels"), list):
        kept["labels"] = [label.get("name") if isinstance(label, dict) else label for label in labels]
    if "user" in issue:
        kept["user"] = {"login": _named(author)}
    return {"number": number, **kept}


def _comment(comment: Event, opt_out: OptOut, tally: Tally) -> Event | None:
    """What the archive has of a comment; None without its text, and for those who opted out."""
    if not isinstance(comment.get("body"), str):
        return None
    user = comment.get("user")
    login = _login(user)
    if opt_out.user(login):
        tally.count("comments", "opted_out")
        return None
    kept = {name: comment[name] for name in _OF_COMMENT if name in comment}
    return kept | {"user": {"login": _named(login), "type": "Bot" if is_bot(user) else "User"}}


def _repository(event: Event) -> str | None:
    """ "owner/name", of any of the shapes."""
    new, old = _dict(event.get("repo")), _dict(event.get("repository"))
    name = new.get("name") or old.get("full_name") or f"{old.get('owner')}/{old.get('name')}"
    return name if isinstance(name, str) and _REPOSITORY.fullmatch(name) else None


def _number(event: Event, payload: Event, issue: Event) -> int | None:
    for value in (issue.get("number"), payload.get("number")):
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53:
            return value
    found = _NUMBER_IN_URL.search(_text(event.get("url")))
    return int(found[1]) if found else None


def _is_pull(event: Event, payload: Event, issue: Event) -> bool:
    """Until 2014 issues had a `pull_request` too, with nothing in it."""
    pull = issue.get("pull_request")
    if isinstance(pull, dict) and not any(pull.values()):
        pull = None
    url = _text(issue.get("html_url")) or _text(event.get("url"))
    return bool(pull) or "pull_request" in payload or bool("/pull/" in url and (_PULL_URL.search(url)))


def _time(value: Any) -> datetime | None:
    """The time of an event; of old ones too ("2012/03/11 07:01:03 -0800")."""
    for read in (datetime.fromisoformat, _slashed):
        try:
            time = read(value)
        except (TypeError, ValueError):
            continue
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    return None


def _slashed(value: str) -> datetime:
    return datetime.strptime(value, "%Y/%m/%d %H:%M:%S %z")


def _json(value: Event) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # half a surrogate pair, or a number too long
        return _SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


def _login(user: Any) -> str | None:
    login = user.get("login") if isinstance(user, dict) else user
    return login if isinstance(login, str) else None


@lru_cache(64)
def _kind(value: str) -> str:
    return value if re.fullmatch(r"[a-z_]{1,30}", value) else "unknown"


def _dict(value: Any) -> Event:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def rows_of(line: bytes, opt_out: OptOut, repositories: frozenset[str] | None, tally: Tally) -> Iterator[Event]:
    """The rows of a line; what it holds otherwise is counted."""
    values = parse(line)
    if values is None:
        tally.drop("broken_line")
        return
    tally.rows_in += len(values) - 1
    for value in values:
        row = row_of(value, opt_out, repositories, tally)
        if row:
            yield row
