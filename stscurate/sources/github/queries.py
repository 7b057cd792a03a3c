"""What GitHub is asked in GraphQL, and its answers in the shape of rows that dumps have."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from stscurate.methods.references import known_as
from stscurate.records import Tally
from stscurate.services.github import GitHub
from stscurate.sources.dumps import Mark

Node = dict[str, Any]

MOST_ALIASES = 100  # issues looked up by number in one query
_LIMIT = "rateLimit { cost remaining resetAt }"
_PAGE = "pageInfo { hasNextPage endCursor }"
_TARGET = "__typename ... on Issue { id number repository { nameWithOwner } }"
_CLOSING = "... on ClosedEvent {"  # where a field goes that not every server has
_TIMELINE = f"""
{_PAGE} nodes {{
  __typename
  {_CLOSING} createdAt actor {{ __typename login }} }}
  ... on ConvertedToDiscussionEvent {{ createdAt }}
  ... on MarkedAsDuplicateEvent {{ createdAt canonical {{ {_TARGET} }} duplicate {{ ... on Issue {{ id }} }} }}
  ... on UnmarkedAsDuplicateEvent {{ createdAt canonical {{ {_TARGET} }} duplicate {{ ... on Issue {{ id }} }} }}
}}"""
_KINDS = (
    "itemTypes: [CLOSED_EVENT, CONVERTED_TO_DISCUSSION_EVENT, MARKED_AS_DUPLICATE_EVENT, UNMARKED_AS_DUPLICATE_EVENT]"
)
_BY_CREATION = "orderBy: {field: CREATED_AT, direction: ASC}"
# Whatever changes meanwhile comes to the end, and again.
_SINCE = "filterBy: {since: $since}, orderBy: {field: UPDATED_AT, direction: ASC}"
_COMMENTS = f"{_PAGE} nodes {{ author {{ __typename login }} authorAssociation createdAt body }}"

# What tells whether an issue is a duplicate, of what, and by what.
SAMPLED = f"""
  id number title url state stateReason(enableDuplicate: true) createdAt closedAt updatedAt
  author {{ __typename login }} authorAssociation repository {{ nameWithOwner }}
  timelineItems(first: 50, {_KINDS}) {{ {_TIMELINE} }} comments(first: 50) {{ {_COMMENTS} }}"""
SCHEMA = f"""query {{ {_LIMIT}
  issue: __type(name: "Issue") {{ fields {{ name }} }} closing: __type(name: "ClosedEvent") {{ fields {{ name }} }}
}}"""
_TYPES = ("issue", "closing")
MORE_COMMENTS = f"""query ($id: ID!, $first: Int!, $after: String) {{ {_LIMIT}
  node(id: $id) {{ ... on Issue {{ comments(first: $first, after: $after) {{ {_COMMENTS} }} }} }}
}}"""
COMMENTS = f"""query ($ids: [ID!]!) {{ {_LIMIT}
  nodes(ids: $ids) {{ ... on Issue {{ comments(first: 100) {{ {_COMMENTS} }} }} }}
}}"""
SEARCH_IDS = f"""query ($query: String!, $first: Int!, $after: String) {{ {_LIMIT}
  search(query: $query, type: ISSUE, first: $first, after: $after) {{
    issueCount {_PAGE} nodes {{ ... on Issue {{ id number createdAt updatedAt }} }}
  }}
}}"""


class Queries:
    """The queries that ask for whole issues, by what this server's schema has."""

    def __init__(self, *, duplicate_of: bool, closing: bool):
        named = f"duplicateOf {{ {_TARGET} }}"
        target = named if duplicate_of else ""
        timeline = _TIMELINE.replace(_CLOSING, f"{_CLOSING} {named}") if closing else _TIMELINE
        issue = f"""
          id number updatedAt title body url state stateReason(enableDuplicate: true) locked createdAt closedAt
          author {{ __typename login }} authorAssociation repository {{ nameWithOwner }} {target}
          labels(first: 100) {{ nodes {{ name }} }}
          timelineItems(first: 100, {_KINDS}) {{ {timeline} }}"""
        comments = f"comments(first: 100) {{ {_COMMENTS} }}"
        self.issues = f"query ($ids: [ID!]!) {{ {_LIMIT} nodes(ids: $ids) {{ ... on Issue {{ {issue} }} }} }}"
        self.search = f"""query ($query: String!, $first: Int!, $after: String) {{ {_LIMIT}
          search(query: $query, type: ISSUE, first: $first, after: $after) {{ {_PAGE} nodes {{ ... on Issue {{ {issue}
          }} }} }}
        }}"""
        self.whole = f"query ($ids: [ID!]!) {{ {_LIMIT} nodes(ids: $ids) {{ ... on Issue {{ {issue} {comments} }} }} }}"
        self.sweep = _sweep("$after: String", _BY_CREATION, f"{issue} {comments}")
        self.changed = _sweep("$after: String, $since: DateTime!", _SINCE, "id number createdAt updatedAt")
        self.listing = _sweep("$after: String", _BY_CREATION, "id number createdAt updatedAt")
        self.marks = f"""query ($ids: [ID!]!) {{ {_LIMIT} nodes(ids: $ids) {{ ... on Issue {{
          id number createdAt updatedAt {target} timelineItems(first: 100, {_KINDS}) {{ {timeline} }}
        }} }} }}"""
        self.more_timeline = f"""query ($id: ID!, $first: Int!, $after: String) {{ {_LIMIT}
          node(id: $id) {{ ... on Issue {{
            timelineItems(first: $first, after: $after, {_KINDS}) {{ {timeline} }}
          }} }}
        }}"""


def _sweep(variables: str, chosen: str, asked: str) -> str:
    return f"""query ($owner: String!, $name: String!, $first: Int!, {variables}) {{ {_LIMIT}
      repository(owner: $owner, name: $name) {{
        issues(first: $first, after: $after, {chosen}) {{ {_PAGE} nodes {{ {asked} }} }}
      }}
    }}"""


def queries_of(github: GitHub) -> Queries:
    """The queries for a server, which is asked what it knows: published schemas lag behind GitHub's own."""
    described = github.graphql(SCHEMA)
    has = {kind: any(field["name"] == "duplicateOf" for field in described[kind]["fields"]) for kind in _TYPES}
    return Queries(duplicate_of=has["issue"], closing=has["closing"])


def ids_query(numbers: Iterable[int]) -> str:
    """A query for the ids and states of a repository's issues by their numbers, each under an alias "i7"."""
    asked = " ".join(f"i{number}: issue(number: {number}) {{ id updatedAt }}" for number in numbers)
    return f"""query ($owner: String!, $name: String!) {{ {_LIMIT}
      repository(owner: $owner, name: $name) {{ {asked} }}
    }}"""


def is_cut(node: Node, field: str) -> bool:
    """Whether an issue's `field` has more entries than came with it."""
    return bool(node[field] and node[field]["pageInfo"]["hasNextPage"])


def complete(github: GitHub, node: Node, field: str, query: str, *, updated: str | None = None) -> None:
    """Fetch the pages of an issue's `field` that its first 100 entries left out; updated: as `GitHub.pages` has it."""
    if is_cut(node, field):
        connection = node[field]
        after = connection["pageInfo"]["endCursor"]
        for page in github.pages(query, {"id": node["id"]}, ("node", field), after=after, updated=updated):
            connection["nodes"] += page["nodes"]
        connection["pageInfo"] = {"hasNextPage": False, "endCursor": None}


def row_of(node: Node, comments: list[Node]) -> dict[str, Any]:
    """An issue with some comments in REST's names, as `dumps.issue_of` reads them."""
    closed = [event for event in events_of(node) if event["__typename"] == "ClosedEvent"]
    issue = {
        "repository": node["repository"]["nameWithOwner"],
        "number": node["number"],
        "title": node["title"] or "",
        "body": node["body"],
        "html_url": node["url"],
        "state": node["state"].lower(),
        "state_reason": (node["stateReason"] or "").lower() or None,
        "labels": [label["name"] for label in _there(node["labels"])],
        "user": user_of(node["author"]),
        "author_association": node["authorAssociation"],
        "created_at": node["createdAt"],
        "closed_at": node["closedAt"],
    }
    events = [
        {"event": "closed", "actor": user_of(event["actor"]), "created_at": event["createdAt"]} for event in closed
    ]
    return {"issue": issue, "events": events, "comments": [_comment(comment) for comment in comments]}


def marks_of(node: Node, moved: Mapping[str, str], tally: Tally) -> list[Mark]:
    """The duplicate events of an issue replayed in time order; then `duplicateOf` of the issue, and of the closing
    that still holds. What says nothing is counted."""
    marks: dict[tuple[str, int], Mark] = {}
    for event in sorted(events_of(node), key=lambda event: str(event["createdAt"])):
        kind = event["__typename"]
        if kind not in ("MarkedAsDuplicateEvent", "UnmarkedAsDuplicateEvent"):
            continue
        canonical = event["canonical"]
        if (event["duplicate"] or {}).get("id") != node["id"]:
            continue  # it stands in the timelines of both
        if not canonical:
            tally.count("events", "canonical_gone")
        elif canonical["__typename"] != "Issue":
            tally.count("events", "canonical_is_no_issue")
        else:
            mark = _mark(canonical, "event", event["createdAt"], moved)
            standing = kind == "MarkedAsDuplicateEvent"
            marks[mark.repository, mark.number] = mark._replace(standing=standing)
            tally.count("events", "marked" if standing else "unmarked")
    closings = [event for event in events_of(node) if event["__typename"] == "ClosedEvent"]
    closing = max(closings, key=lambda event: str(event["createdAt"]), default={}) if node["state"] == "CLOSED" else {}
    for original, at in (
        (node.get("duplicateOf"), node["closedAt"]),
        (closing.get("duplicateOf"), closing.get("createdAt")),
    ):
        if original and original["__typename"] == "Issue":
            mark = _mark(original, "state_reason", at, moved)
            marks.setdefault((mark.repository, mark.number), mark)
    return list(marks.values())


def tells_of_duplicates(node: Node) -> bool:
    """Whether GitHub itself says anything of duplicates there, for this issue or for another."""
    said = any("Duplicate" in event["__typename"] or event.get("duplicateOf") for event in events_of(node))
    return said or bool(node.get("duplicateOf")) or node.get("stateReason") == "DUPLICATE"


def events_of(node: Node) -> list[Node]:
    """The events of an issue that could be read."""
    return [event for event in _there(node.get("timelineItems")) if event["__typename"]]


def comments_of(node: Node) -> list[Node]:
    """The comments of an issue that could be read."""
    return _there(node["comments"])


def user_of(actor: Node | None) -> dict[str, str] | None:
    """An account by REST's name, in which bots end in "[bot]"; None for a deleted one."""
    if not actor:
        return None
    is_bot = actor["__typename"] == "Bot"
    login = actor["login"] + ("[bot]" if is_bot and not actor["login"].endswith("[bot]") else "")
    return {"login": login, "type": "Bot" if is_bot else "User"}


def _mark(target: Node, evidence: str, at: str | None, moved: Mapping[str, str]) -> Mark:
    repository = known_as(target["repository"]["nameWithOwner"], moved)
    return Mark(repository, target["number"], evidence, datetime.fromisoformat(at) if at else None)


def _comment(comment: Node) -> dict[str, Any]:
    return {
        "user": user_of(comment["author"]),
        "author_association": comment["authorAssociation"],
        "created_at": comment["createdAt"],
        "body": comment["body"],
    }


def _there(connection: Node | None) -> list[Node]:
    return [entry for entry in (connection or {}).get("nodes") or [] if entry]
