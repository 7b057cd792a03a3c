"""What each field of the schema answers. A field that nobody has needed yet fails by its name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.local_github import resolvers as make
from tests.local_github.resolvers import WEB, Actor, Context, Edge, Info, Label, License
from tests.local_github.things import Issue, node_id, stamp

Field = Callable[[Any, dict[str, Any], Info], Any]


def resolve(source: Any, info: Info, **arguments: Any) -> Any:
    """The resolver of every field."""
    name, field = info.parent_type.name, info.field_name
    family = next((family for family in ("Connection", "Edge", "Event") if name.endswith(family)), name)
    found = FIELDS.get(name, {}).get(field) or FIELDS.get(family, {}).get(field)
    if found is None:
        raise NotImplementedError(f"the local GitHub has no {name}.{field} yet")
    return found(source, arguments, info)


def resolve_type(value: Any, *_: Any) -> str:
    return str(value.kind)


def plain(get: Callable[[Any], Any]) -> Field:
    """A field that takes no arguments."""
    return lambda source, arguments, info: get(source)


def actor(login: str | None) -> Actor | None:
    return Actor(login) if login else None


def issue_path(issue: Issue) -> str:
    return f"/{issue.repository.name}/{'pull' if issue.pull_request else 'issues'}/{issue.number}"


def time_or_null(time: datetime | None) -> str | None:
    return stamp(time) if time else None


def rate_limit(_: Any, arguments: dict[str, Any], info: Info) -> Context:
    return info.context


NODE: dict[str, Field] = {"id": plain(node_id), "databaseId": plain(lambda item: item.id)}
NODE["fullDatabaseId"] = plain(lambda item: str(item.id))

QUERY: dict[str, Field] = {
    "repository": make.find_repository,
    "search": make.find_by_search,
    "node": make.find_node,
    "nodes": make.find_nodes,
    "rateLimit": rate_limit,
    "viewer": plain(lambda _: Actor("tester")),
}

RATE_LIMIT: dict[str, Field] = {
    "cost": plain(lambda context: context.cost.points),
    "nodeCount": plain(lambda context: context.cost.nodes),
    "limit": plain(lambda context: context.bucket.limit or 5_000),
    "used": plain(lambda context: context.bucket.used),
    "remaining": plain(lambda context: context.bucket.remaining),
    "resetAt": plain(lambda context: stamp(datetime.fromtimestamp(context.reset, UTC))),
}

REPOSITORY: dict[str, Field] = {
    **NODE,
    "nameWithOwner": plain(lambda home: home.name),
    "name": plain(lambda home: home.name.split("/")[1]),
    "owner": plain(lambda home: Actor(home.name.split("/")[0])),
    "isArchived": plain(lambda home: home.archived),
    "isPrivate": plain(lambda home: False),
    "isFork": plain(lambda home: False),
    "isDisabled": plain(lambda home: False),
    "hasIssuesEnabled": plain(lambda home: home.has_issues),
    "url": plain(lambda home: f"{WEB}/{home.name}"),
    "licenseInfo": plain(lambda home: License(home.licence) if home.licence else None),
    "issues": make.issues_of,
    "issue": make.find_issue,
    "issueOrPullRequest": make.find_issue,
    "labels": make.labels_of_repository,
}

ISSUE: dict[str, Field] = {
    **NODE,
    "number": plain(lambda issue: issue.number),
    "title": plain(lambda issue: issue.title),
    "body": plain(lambda issue: issue.body or ""),
    "bodyText": plain(lambda issue: issue.body or ""),
    "author": plain(lambda issue: actor(issue.author)),
    "authorAssociation": plain(lambda issue: issue.association),
    "createdAt": plain(lambda issue: stamp(issue.created_at)),
    "updatedAt": plain(lambda issue: stamp(issue.updated_at)),
    "closedAt": plain(lambda issue: time_or_null(issue.closed_at)),
    "closed": plain(lambda issue: issue.state == "closed"),
    "state": plain(lambda issue: issue.state.upper()),
    "stateReason": lambda issue, arguments, info: make.constant_reason(
        issue.reason, with_duplicate=bool(arguments.get("enableDuplicate"))
    ),
    "labels": make.labels_of_issue,
    "comments": make.comments_of,
    "timelineItems": make.timeline_of,
    "url": plain(lambda issue: WEB + issue_path(issue)),
    "resourcePath": plain(issue_path),
    "repository": plain(lambda issue: issue.repository),
    "locked": plain(lambda issue: issue.locked),
    "activeLockReason": plain(lambda issue: None),
    "isPinned": plain(lambda issue: issue.pinned),
    "duplicateOf": plain(lambda issue: issue.duplicate_of),
}

COMMENT: dict[str, Field] = {
    **NODE,
    "author": plain(lambda comment: actor(comment.author)),
    "authorAssociation": plain(lambda comment: comment.association),
    "body": plain(lambda comment: comment.body or ""),
    "bodyText": plain(lambda comment: comment.body or ""),
    "createdAt": plain(lambda comment: stamp(comment.at)),
    "updatedAt": plain(lambda comment: stamp(comment.at)),
    "issue": plain(lambda comment: comment.issue),
    "isMinimized": plain(lambda comment: comment.minimized is not None),
    "minimizedReason": plain(lambda comment: comment.minimized),
    "url": plain(lambda comment: f"{WEB}{issue_path(comment.issue)}#issuecomment-{comment.id}"),
}

EVENT: dict[str, Field] = {
    "id": plain(node_id),
    "actor": plain(lambda event: actor(event.actor)),
    "createdAt": plain(lambda event: stamp(event.at)),
    "canonical": plain(lambda event: make.there(event.canonical)),
    "duplicate": plain(lambda event: make.there(event.issue)),
    "isCrossRepository": plain(make.crosses),
    "stateReason": plain(lambda event: make.constant_reason(event.reason)),
    "discussion": plain(lambda event: None),
    "closable": plain(lambda event: event.issue),
    "closer": plain(lambda event: None),
    "duplicateOf": plain(make.duplicate_at_closing),
    "issue": plain(lambda event: event.issue),
    "fromRepository": plain(lambda event: event.origin),
    "label": plain(lambda event: Label(event.issue.repository, event.label)),
}

FIELDS: dict[str, dict[str, Field]] = {
    "Query": QUERY,
    "RateLimit": RATE_LIMIT,
    "Repository": REPOSITORY,
    "Issue": ISSUE,
    "PullRequest": ISSUE,
    "IssueComment": COMMENT,
    "Event": EVENT,
    "License": {
        "spdxId": plain(lambda licence: licence.spdx),
        "key": plain(lambda licence: licence.spdx.lower()),
        "name": plain(lambda licence: licence.spdx),
    },
    "Label": {"id": plain(lambda label: f"LA_{label.name}"), "name": plain(lambda label: label.name)},
    "PageInfo": {
        "hasNextPage": plain(lambda page: page.has_next),
        "hasPreviousPage": plain(lambda page: page.has_previous),
        "endCursor": plain(lambda page: page.cursors[-1] if page.cursors else None),
        "startCursor": plain(lambda page: page.cursors[0] if page.cursors else None),
    },
    "Connection": {
        "nodes": plain(lambda page: page.items),
        "edges": plain(lambda page: [Edge(*pair) for pair in zip(page.cursors, page.items, strict=True)]),
        "pageInfo": plain(lambda page: page),
        **dict.fromkeys(("totalCount", "issueCount"), plain(lambda page: page.total)),
        "pageCount": plain(lambda page: len(page.items)),
    },
    "Edge": {"cursor": plain(lambda edge: edge.cursor), "node": plain(lambda edge: edge.node)},
}
for name in ("User", "Bot", "Organization", "Actor"):
    FIELDS[name] = {
        # GraphQL leaves off the "[bot]" that REST gives
        "login": plain(lambda actor: actor.login.removesuffix("[bot]")),
        "url": plain(lambda actor: f"{WEB}/{actor.login}"),
        "id": plain(lambda actor: f"U_{actor.login}"),
    }
