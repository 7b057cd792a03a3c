"""Fields that take more than a look into the store: connections, look-ups, timelines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from graphql import FieldNode, FragmentSpreadNode, GraphQLResolveInfo

from tests.local_github.costs import Cost
from tests.local_github.limits import Bucket
from tests.local_github.pages import ApiError, Kept, Page, Rows, check_bounds
from tests.local_github.searching import SHOWN, search_issues
from tests.local_github.store import Store
from tests.local_github.things import Comment, Event, Issue, Repository, stamp, when

MOST_IDS = 100
WEB = "https://github.com"


@dataclass(frozen=True)
class Context:
    store: Store
    cost: Cost
    bucket: Bucket
    reset: float  # as the server tells it: its clock may be wrong
    kept: Kept


Info = GraphQLResolveInfo[Context]


@dataclass(frozen=True)
class Actor:
    login: str

    @property
    def kind(self) -> str:
        return "Bot" if self.login.endswith("[bot]") else "User"


@dataclass(frozen=True)
class Label:
    repository: Repository
    name: str
    kind = "Label"


@dataclass(frozen=True)
class License:
    spdx: str
    kind = "License"


@dataclass(frozen=True)
class Edge:
    cursor: str
    node: Any


# -- connections


def connection(info: Info, arguments: dict[str, Any], rows: Rows, **more: Any) -> Page:
    bounds = {name: arguments.get(name) for name in ("first", "last", "after", "before")}
    if bounds["first"] is None and bounds["last"] is None and not _selects_items(info.field_nodes, info):
        return rows.page(first=0)  # only counted
    check_bounds(info.field_name, bounds["first"], bounds["last"])
    return rows.page(**bounds, **more)


def _selects_items(nodes: Iterable[Any], info: Info) -> bool:
    for node in nodes:
        for selection in node.selection_set.selections:
            if isinstance(selection, FieldNode) and selection.name.value in ("nodes", "edges"):
                return True
            if isinstance(selection, FragmentSpreadNode):
                selection = info.fragments[selection.name.value]
            if not isinstance(selection, FieldNode) and _selects_items([selection], info):
                return True
    return False


# -- the query


def find_repository(_: None, arguments: dict[str, Any], info: Info) -> Repository:
    name = f"{arguments['owner']}/{arguments['name']}"
    found = info.context.store.repository(name)
    if found is None:
        raise ApiError("NOT_FOUND", f"Could not resolve to a Repository with the name '{name}'.")
    return found


def find_by_search(_: None, arguments: dict[str, Any], info: Info) -> Page:
    if arguments["type"] != "ISSUE":
        raise NotImplementedError("the local GitHub searches issues only")
    store, query = info.context.store, arguments["query"]
    rows = info.context.kept.rows(store.revision, ("search", query), lambda: search_issues(store, query))
    return connection(info, arguments, rows, at_most=SHOWN)


def find_node(_: None, arguments: dict[str, Any], info: Info) -> Any:
    found = info.context.store.nodes.get(arguments["id"])
    if found is None:
        raise ApiError("NOT_FOUND", f"Could not resolve to a node with the global id of '{arguments['id']}'")
    return found


def find_nodes(_: None, arguments: dict[str, Any], info: Info) -> list[Any]:
    ids = arguments["ids"]
    if len(ids) > MOST_IDS:
        raise ApiError("ARGUMENT_LIMIT", f"You may not provide more than 100 node ids; you provided {len(ids)}.")
    missing = "Could not resolve to a node with the global id of '{}'"
    store = info.context.store
    return [store.nodes.get(one) or ApiError("NOT_FOUND", missing.format(one)) for one in ids]


# -- repositories


def issues_of(home: Repository, arguments: dict[str, Any], info: Info) -> Page:
    chosen = {"states": arguments.get("states"), "labels": arguments.get("labels"), **(arguments.get("filterBy") or {})}
    chosen = {name: value for name, value in chosen.items() if value is not False}  # the schema's own defaults
    if unknown := chosen.keys() - {"states", "labels", "since"}:
        raise NotImplementedError(f"the local GitHub has no filter by {unknown}")
    order = arguments.get("orderBy") or {"field": "CREATED_AT", "direction": "ASC"}
    key = (home.id, repr(chosen), order["field"], order["direction"])
    make = partial(_sorted_issues, home, chosen, order)
    return connection(info, arguments, info.context.kept.rows(info.context.store.revision, key, make))


def _sorted_issues(home: Repository, chosen: dict[str, Any], order: dict[str, str]) -> Rows:
    since = when(chosen["since"]) if chosen.get("since") else None
    labels = {label.lower() for label in chosen.get("labels") or ()}
    found = [
        issue
        for issue in home.issues.values()
        if not issue.pull_request
        and (not chosen.get("states") or issue.state.upper() in chosen["states"])
        and (not labels or any(label.lower() in labels for label in issue.labels))
        and (since is None or issue.updated_at >= since)
    ]
    return Rows(found, _ISSUE_KEYS[order["field"]], descending=order["direction"] == "DESC")


_ISSUE_KEYS: dict[str, Callable[[Issue], tuple[str | int, ...]]] = {
    "CREATED_AT": lambda issue: (stamp(issue.created_at), issue.id),
    "UPDATED_AT": lambda issue: (stamp(issue.updated_at), issue.id),
    "COMMENTS": lambda issue: (len(issue.comments), issue.id),
}


def find_issue(home: Repository, arguments: dict[str, Any], info: Info) -> Issue:
    found = home.issues.get(arguments["number"])
    if found is None or (info.field_name == "issue" and found.pull_request):
        what = "an Issue" if info.field_name == "issue" else "an issue or pull request"
        raise ApiError("NOT_FOUND", f"Could not resolve to {what} with the number of {arguments['number']}.")
    return found


def labels_of_issue(issue: Issue, arguments: dict[str, Any], info: Info) -> Page:
    return _labels(issue.labels, issue.repository, arguments, info)


def labels_of_repository(home: Repository, arguments: dict[str, Any], info: Info) -> Page:
    names = {name for issue in home.issues.values() for name in issue.labels}
    query = (arguments.get("query") or "").lower()
    return _labels([name for name in names if query in name.lower()], home, arguments, info)


def _labels(names: Sequence[str], home: Repository, arguments: dict[str, Any], info: Info) -> Page:
    return connection(info, arguments, Rows([Label(home, name) for name in names], lambda label: (label.name,)))


# -- issues


def constant_reason(reason: str | None, *, with_duplicate: bool = True) -> str | None:
    if reason == "duplicate" and not with_duplicate:
        reason = "not_planned"
    return reason.upper() if reason else None


def timeline_of(issue: Issue, arguments: dict[str, Any], info: Info) -> Page:
    wanted = arguments.get("itemTypes")
    since = when(arguments["since"]) if arguments.get("since") else None
    items: list[Event | Comment] = [*issue.events, *issue.comments]
    found = [
        item
        for item in items
        if (wanted is None or _constant(item.kind) in wanted) and (since is None or item.at >= since)
    ]
    return connection(info, arguments, Rows(found, lambda item: (stamp(item.at), item.id)))


def _constant(kind: str) -> str:
    """ClosedEvent -> CLOSED_EVENT."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in kind).lstrip("_").upper()


def comments_of(issue: Issue, arguments: dict[str, Any], info: Info) -> Page:
    return connection(info, arguments, Rows(issue.comments, lambda comment: (stamp(comment.at), comment.id)))


def there(issue: Issue | None) -> Issue | None:
    """An issue that is gone leaves a null behind."""
    return None if issue is None or issue.lost else issue


def duplicate_at_closing(event: Event) -> Issue | None:
    if event.reason != "duplicate":
        return None
    return there(event.canonical) if event.canonical else event.issue.duplicate_of


def crosses(event: Event) -> bool:
    return event.canonical is not None and event.canonical.repository is not event.issue.repository
