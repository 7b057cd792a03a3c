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
_TIMELINE = f"""
{_PAGE} nodes {{
  __typename
  ... on ClosedEvent {{ createdAt actor {{ __typename login }} }}
  ... on ConvertedToDiscussionEvent {{ createdAt }}
  ... on MarkedAsDuplicateEvent {{ createdAt canonical {{ {_TARGET} }} duplicate {{ ... on Issue {{ id }} }} }}
  ... on UnmarkedAsDuplicateEvent {{ createdAt canonical {{ {_TARGET} }} duplicate {{ ... on Issue {{ id }} }} }}
}}"""
_KINDS = (
    "itemTypes: [CLOSED_EVENT, CONVERTED_TO_DISCUSSION_EVENT, MARKED_AS_DUPLICATE_EVENT, UNMARKED_AS_DUPLICATE_EVENT]"
)
_COMMENTS = f"{_PAGE} nodes {{ author {{ __typename login }} authorAssociation createdAt body }}"

SCHEMA = f'query {{ {_LIMIT} __type(name: "Issue") {{ fields {{ name }} }} }}'
MORE_TIMELINE = f"""query ($id: ID!, $first: Int!, $after: String) {{ {_LIMIT}
  node(id: $id) {{ ... on Issue {{ timelineItems(first: $first, after: $after, {_KINDS}) {{ {_TIMELINE} }} }} }}
}}"""
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

    def __init__(self, *, duplicate_of: bool):
        target = f"duplicateOf {{ {_TARGET} }}" if duplicate_of else ""
        issue = f"""
          id number updatedAt title body url state stateReason(enableDuplicate: true) locked createdAt closedAt
          author {{ __typename login }} authorAssociation repository {{ nameWithOwner }} {target}
          labels(first: 100) {{ nodes {{ name }} }}
          timelineItems(first: 100, {_KINDS}) {{ {_TIMELINE} }}"""
        self.issues = f"query ($ids: [ID!]!) {{ {_LIMIT} nodes(ids: $ids) {{ ... on Issue {{ {issue} }} }} }}"
        self.search = f"""query ($query: String!, $first: Int!, $after: String) {{ {_LIMIT}
          search(query: $query, type: ISSUE, first: $first, after: $after) {{ {_PAGE} nodes {{ ... on Issue {{ {issue}
          }} }} }}
        }}"""
        self.sweep = f"""query ($owner: String!, $name: String!, $first: Int!, $after: String) {{ {_LIMIT}
          repository(owner: $owner, name: $name) {{
            issues(first: $first, after: $after, orderBy: {{field: CREATED_AT, direction: ASC}}) {{
              {_PAGE} nodes {{ {issue} comments(first: 100) {{ {_COMMENTS} }} }}
            }}
          }}
        }}"""


def queries_of(github: GitHub) -> Queries:
    """The queries for a server, which is asked what it knows: published schemas lag behind GitHub's own."""
    described = github.graphql(SCHEMA)["__type"]["fields"]
    return Queries(duplicate_of=any(entry["name"] == "duplicateOf" for entry in described))


def ids_query(numbers: Iterable[int]) -> str:
    """A query for the ids and states of a repository's issues by their numbers, each under an alias "i7"."""
    asked = " ".join(f"i{number}: issue(number: {number}) {{ id updatedAt }}" for number in numbers)
    return f"""query ($owner: String!, $name: String!) {{ {_LIMIT}
      repository(owner: $owner, name: $name) {{ {asked} }}
    }}"""


def is_cut(node: Node, field: str) -> bool:
    """Whether an issue's `field` has more entries than came with it."""
    return bool(node[field] and node[field]["pageInfo"]["hasNextPage"])


def complete(github: GitHub, node: Node, field: str, query: str) -> None:
    """Fetch the pages of an issue's `field` that its first 100 entries left out."""
    if is_cut(node, field):
        connection = node[field]
        after = connection["pageInfo"]["endCursor"]
        for page in github.pages(query, {"id": node["id"]}, ("node", field), after=after):
            connection["nodes"] += page["nodes"]


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
    """The duplicate events of an issue replayed in time order, then `duplicateOf`; what says nothing is counted."""
    marks: dict[tuple[str, int], Mark] = {}
    for event in sorted(events_of(node), key=lambda event: str(event["createdAt"])):
        kind = event["__typename"]
        if kind not in ("MarkedAsDuplicateEvent", "UnmarkedAsDuplicateEvent"):
            continue
        canonical = event["canonical"]
        if (event["duplicate"] or {}).get("id") != node["id"]:
            tally.count("events", "of_another_issue")  # it stands in the timelines of both
        elif not canonical:
            tally.count("events", "canonical_gone")
        elif canonical["__typename"] != "Issue":
            tally.count("events", "canonical_is_no_issue")
        else:
            mark = _mark(canonical, "event", event["createdAt"], moved)
            standing = kind == "MarkedAsDuplicateEvent"
            marks[mark.repository, mark.number] = mark._replace(standing=standing)
            tally.count("events", "marked" if standing else "unmarked")
    original = node.get("duplicateOf")
    if original and original["__typename"] == "Issue":
        mark = _mark(original, "state_reason", node["closedAt"], moved)
        marks.setdefault((mark.repository, mark.number), mark)
    return list(marks.values())


def events_of(node: Node) -> list[Node]:
    """The events of an issue that could be read."""
    return [event for event in _there(node["timelineItems"]) if event["__typename"]]


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
