"""A repository collected before: what has changed since is asked for, and the rest is what was kept.

All times are GitHub's own: what changed "since" is asked from the last change of any issue when the collection before
was counted, less OVERLAP, since a change shows in lists and in the search's index only some time after the moment it
is stamped with; what changed within that hour is fetched anew, also where its second is the same. Marks are checked
again in all issues that have any, whatever their last change: taking one back, or losing its original, doesn't always
move that. What is gone shows by its id, or because issues are fewer than they should be; then all ids are listed.
Only an issue that goes while another comes back with an old date of change can hide so, until something else changes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from stscurate.records import Tally
from stscurate.services.github import GitHub
from stscurate.sources.github.costs import Counted
from stscurate.sources.github.plan import Plan
from stscurate.sources.github.queries import Node, Queries, complete, tells_of_duplicates
from stscurate.sources.github.search import Hit

OVERLAP = timedelta(hours=1)
_FINAL = ("deleted", "is_pull_request")
_CHUNK = 100


@dataclass
class Seen:
    """What the next collection of a repository has to know of this one.

    newest: the last change of any issue when they were counted. whole: `issues` are all. issues: id -> [creation,
    number, last change]. marked: ids of issues with marks. searches: words -> ids found. gone: number -> why.
    """

    way: str = ""
    newest: str = ""
    whole: bool = False
    issues: dict[str, list[Any]] = field(default_factory=dict)
    marked: list[str] = field(default_factory=list)
    searches: dict[str, list[str]] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)

    def see(self, node: Node, updated: str | None = None) -> None:
        """Note an issue, with the last change that its answer is kept under."""
        self.issues[node["id"]] = [node["createdAt"], node["number"], updated or node["updatedAt"]]


class Before:
    """What an earlier collection of a repository left, and what has become of its marks."""

    def __init__(self, github: GitHub, queries: Queries, repository: str):
        self.seen = Seen()  # by this collection
        self._github = github
        self._queries = queries
        self._repository = repository
        found = github.kept.recall(_name(repository))
        self._last = Seen(**found) if found else None
        self._checked: dict[str, Node | None] = {}
        newest = self._last.newest if self._last else ""
        self._since = _stamp(datetime.fromisoformat(newest) - OVERLAP) if newest else ""

    def is_known(self, way: str) -> bool:
        """Whether the repository was collected in this way before."""
        return bool(self._since and self._last and self._last.way == way)

    @property
    def gone(self) -> dict[int, str]:
        """Numbers of issues that won't come back, and why."""
        found = self._last.gone if self._last else {}
        return {int(number): why for number, why in found.items() if why in _FINAL}

    def keep(self, plan: Plan) -> None:
        """Note what this collection has seen."""
        self.seen.way, self.seen.newest = plan.way, plan.latest
        self.seen.whole = len(self.seen.issues) == plan.issues
        self._github.kept.note(_name(self._repository), asdict(self.seen))

    def is_old(self, updated: str) -> bool:
        """Whether what was kept of an issue that changed last then can be used again."""
        return updated < self._since or not self._since

    def nodes(self, query: str, updated: Mapping[str, str]) -> list[Node | None]:
        """Issues by id and last change, in order; None for what is gone."""
        fresh = {node for node, at in updated.items() if not self.is_old(at)}
        found = self._github.nodes(query, updated, updated=updated, anew=fresh)
        return list(found.values())

    def with_marks(self, nodes: Iterable[Node]) -> list[Node]:
        """Kept issues with the marks that they have now, without those that are gone."""
        nodes = list(nodes)
        if not self._since:
            return nodes
        self._check(node["id"] for node in nodes if self.is_old(node["updatedAt"]) and tells_of_duplicates(node))
        now = [(node, self._checked.get(node["id"], {})) for node in nodes]
        return [node | _marks(found) for node, found in now if found is not None]

    def by_number(self) -> dict[int, Node]:
        """The ids and states of issues that were just checked."""
        return {node["number"]: node for node in self._checked.values() if node}

    def sweep(self, plan: Plan) -> Iterator[list[Node]]:
        """What reading the whole repository would give, in that order."""
        last = self._last or Seen()
        owner, name = self._repository.split("/")
        place, path = {"owner": owner, "name": name}, ("repository", "issues")
        issues, changed = dict(last.issues), set()
        if last.whole:
            since = {**place, "since": self._since}
            for page in self._github.pages(self._queries.changed, since, path):
                for node in filter(None, page["nodes"] or []):
                    issues[node["id"]] = [node["createdAt"], node["number"], node["updatedAt"]]
                    changed.add(node["id"])
        self._check(node for node in last.marked if node not in changed)
        end = (plan.window.stop, plan.last) if plan.window else None
        if last.whole and end and sum(age_of(*row[:2]) <= end for row in issues.values()) == plan.issues:
            rows = sorted(issues.items(), key=lambda item: age_of(*item[1][:2]))
            parts = (rows[at : at + _CHUNK] for at in range(0, len(rows), _CHUNK))
            lists: Iterator[dict[str, str]] = ({node: row[2] for node, row in part} for part in parts)
        else:
            pages = self._github.pages(self._queries.listing, place, path)
            lists = ({node["id"]: node["updatedAt"] for node in filter(None, page["nodes"] or [])} for page in pages)
        for updated in lists:
            yield self.with_marks(filter(None, self.nodes(self._queries.whole, updated)))

    def candidates(self, plan: Plan, find: Callable[[Counted, str, Tally], list[Hit]]) -> tuple[list[Hit], Tally]:
        """What the searches find now, asked only for what has changed. find: searches for (search, more words)."""
        last = self._last or Seen()
        self._check([*last.issues, *last.marked])
        same = {
            node: Hit(datetime.fromisoformat(row[0]), row[1], node, row[2])
            for node, row in last.issues.items()
            if (self._checked[node] or {}).get("updatedAt") == row[2]
        }
        hits: dict[str, Hit] = {}
        tally = Tally()
        for search in plan.searches:
            changed = find(search, f"updated:>={self._since}", Tally())
            found = {node: same[node] for node in last.searches.get(search.words, ()) if node in same}
            found |= {hit.id: hit for hit in changed}
            if len(found) != search.total:
                found = {hit.id: hit for hit in find(search, "", tally)}
            self.seen.searches[search.words] = list(found)
            hits |= found
        return sorted(hits.values()), tally

    def _check(self, ids: Iterable[str]) -> None:
        due = [node for node in dict.fromkeys(ids) if node not in self._checked]
        found = self._github.nodes(self._queries.marks, due)
        for node in found.values():
            if node:
                complete(self._github, node, "timelineItems", self._queries.more_timeline)
        self._checked |= found


def age_of(created: str, number: int) -> tuple[datetime, int]:
    """Sorts issues as GitHub lists them."""
    return datetime.fromisoformat(created), number


def _marks(found: Node) -> Node:
    return {name: found[name] for name in ("timelineItems", "duplicateOf") if name in found}


def _name(repository: str) -> str:
    return f"seen {repository.lower()}"


def _stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
