"""One repository's issues: what its plan says is fetched, and made into the records that dumps give."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime

from stscurate.records import Tally
from stscurate.services.github import GitHub
from stscurate.sources.collect import Made
from stscurate.sources.github.making import Maker
from stscurate.sources.github.plan import Counted, Plan
from stscurate.sources.github.queries import (
    COMMENTS,
    MORE_COMMENTS,
    MORE_TIMELINE,
    MOST_ALIASES,
    Node,
    Queries,
    comments_of,
    complete,
    events_of,
    ids_query,
    is_cut,
    marks_of,
    user_of,
)
from stscurate.sources.github.search import Hit, Window, find_issues, spread_issues
from stscurate.sources.lists import OptOut

Place = tuple[str, int]  # a repository's present name and an issue's number


@dataclass
class Fetched:
    """A repository's issues in order, what was left out, and the originals that stand in other repositories."""

    made: list[Made]
    tally: Tally
    elsewhere: set[Place]


@dataclass
class Collector:
    """Fetches issues of one repository, and has them made into rows in `work` meanwhile.

    `moved` maps old names, in lower case, of renamed repositories to new. took: called with how many issues have come.
    """

    github: GitHub
    queries: Queries
    repository: str
    moved: Mapping[str, str]
    opt_out: OptOut
    work: Executor
    took: Callable[[int], object] = lambda issues: None
    tally: Tally = field(default_factory=Tally)
    elsewhere: set[Place] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)  # numbers that are known, or known to be gone
    followed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Nothing is made yet."""
        self._maker = Maker(self.repository, self.moved, self.opt_out, self.work, self.took)

    def run(self, plan: Plan, *, negatives: float, max_issues: int | None) -> Fetched:
        """All that the plan wants, at most `max_issues` beside the originals."""
        if plan.window:
            if plan.way == "sweep":
                self._sweep(plan.window.stop, plan.last, plan.issues if max_issues is None else max_issues)
            else:
                hits = self._candidates(plan.window, plan.searches)[:max_issues]
                self._take({hit.id: hit.updated for hit in hits}, comments=True)
                self.follow()
                self._negatives(plan, hits, negatives, max_issues)
            self.follow()
        return self.fetched()

    def fetched(self) -> Fetched:
        """What is there so far."""
        made = self._maker.made()
        tally = Tally()
        tally.add(self.tally)
        tally.add(self._maker.tally())
        return Fetched([made[number] for number in sorted(made)], tally, self.elsewhere)

    def follow(self) -> None:
        """Fetch the originals of what is there, and theirs, until none is new."""
        made = self._maker.made()
        while new := made.keys() - self.followed:
            self.followed.update(new)
            originals = {
                (link["canonical_repository"], link["canonical"]) for number in new for link in made[number].links
            }
            self.elsewhere |= {place for place in originals if place[0] != self.repository}
            self.take_numbers(number for repository, number in originals if repository == self.repository)
            made = self._maker.made()

    def take_numbers(self, numbers: Iterable[int], *, comments: bool = False, heading: str = "originals") -> None:
        """Fetch issues by number, with comments if told; those that are gone are counted under `heading` by why."""
        due = sorted(set(numbers) - self.asked)
        found = self._look_up(due)
        self.asked.update(due)
        # Originals without comments: what says that one is a duplicate itself, the searches have found by that.
        self._take({node["id"]: node["updatedAt"] for node in found.values()}, comments=comments)
        gone = [number for number in due if number not in found]
        for _ in self._maker.made().keys() & set(due):
            self.tally.count(heading, "fetched")
        for reason in self.github.map(self._why_gone, gone):
            self.tally.count(heading, reason)

    def _candidates(self, window: Window, searches: Iterable[Counted]) -> list[Hit]:
        def find(search: Counted) -> tuple[list[Hit], Tally]:
            tally = Tally()
            words = f"repo:{self.repository} is:issue {search.words}"
            return find_issues(self.github, words, window, search.total, tally), tally

        hits: set[Hit] = set()
        for found, tally in self.github.map(find, list(searches)):
            hits.update(found)
            self.tally.add(tally)
        return sorted(hits)

    def _take(self, updated: Mapping[str, str], *, comments: bool) -> None:
        """Fetch issues by id and last change; with comments, where no event says what they are duplicates of."""
        found = self.github.nodes(self.queries.issues, updated, updated=updated)
        nodes = [node for node in found.values() if node]
        self.tally.drop("gone", len(found) - len(nodes))
        nodes = [node for node in nodes if self._wanted(node)]
        self._complete(nodes, "timelineItems", MORE_TIMELINE)
        said = self._comments([node for node in nodes if comments and not self._is_marked(node)])
        self._maker.add((node, said.get(node["id"], [])) for node in nodes)

    def _comments(self, issues: list[Node]) -> dict[str, list[Node]]:
        updated = {node["id"]: node["updatedAt"] for node in issues}
        answers = self.github.nodes(COMMENTS, updated, updated=updated)
        found = [{"id": node, **value} for node, value in answers.items() if value]
        self._complete(found, "comments", MORE_COMMENTS)
        return {node["id"]: comments_of(node) for node in found}

    def _is_marked(self, node: Node) -> bool:
        return any(mark.standing for mark in marks_of(node, self.moved, Tally()))

    def _sweep(self, newest: datetime, last: int, most: int) -> None:
        """The oldest issues first, up to the one that was the newest (number `last`) when they were counted."""
        owner, name = self.repository.split("/")
        end = (newest, last)
        pages = self.github.pages(self.queries.sweep, {"owner": owner, "name": name}, ("repository", "issues"))
        taken = 0
        for page in pages:
            nodes = [node for node in page["nodes"] or [] if node]
            kept: list[Node] = []
            for node in nodes:
                if taken + len(kept) < most and _age(node) <= end:
                    kept += [node] if self._wanted(node) else []
            self._complete(kept, "timelineItems", MORE_TIMELINE)
            self._complete(kept, "comments", MORE_COMMENTS)
            self._maker.add((node, comments_of(node)) for node in kept)
            taken += len(kept)
            if not nodes or taken >= most or _age(nodes[-1]) >= end:
                return

    def _complete(self, nodes: list[Node], field: str, query: str) -> None:
        cut = [node for node in nodes if is_cut(node, field)]
        list(self.github.map(lambda node: complete(self.github, node, field, query), cut))

    def _negatives(self, plan: Plan, hits: list[Hit], negatives: float, max_issues: int | None) -> None:
        """Issues of the same time that no search has found, as many as negative pairs are wanted."""
        known = self._maker.made()
        duplicates = sum(bool(each.links) for each in known.values())
        most = plan.issues if max_issues is None else min(max_issues, plan.issues)
        wanted = min(-int(-negatives * duplicates // 1), most - len(known))
        if wanted <= 0 or not hits:
            return
        words = f"repo:{self.repository} is:issue"
        asked = min(wanted * plan.issues // (plan.issues - len(known)) + 1, plan.issues)  # some are known
        parts = spread_issues(self.github, self.queries.search, words, [hit.created for hit in hits], asked)
        nodes = [node for part in parts for node in part if node["number"] not in known]
        nodes = [node for node in nodes[:wanted] if self._wanted(node)]
        self._complete(nodes, "timelineItems", MORE_TIMELINE)
        for _ in nodes:
            self.tally.count("fetched", "for_negatives")
        self._maker.add((node, []) for node in nodes)

    def _wanted(self, node: Node) -> bool:
        """Whether an issue is to be kept; what isn't is counted."""
        if "number" not in node:  # an id of something else
            return False
        self.tally.rows_in += 1
        self.asked.add(node["number"])
        login = (user_of(node["author"]) or {}).get("login")
        if self.opt_out.user(login) or self.opt_out.issue(self.repository, node["number"]):
            self.tally.drop("opted_out")
        elif node["repository"]["nameWithOwner"] != self.repository:
            self.tally.drop("transferred")
        elif any(event["__typename"] == "ConvertedToDiscussionEvent" for event in events_of(node)):
            self.tally.drop("converted_to_discussion")
        else:
            return True
        return False

    def _look_up(self, numbers: list[int]) -> dict[int, Node]:
        """Number -> id and last change of those issues that are there."""
        owner, name = self.repository.split("/")
        chunks = [numbers[at : at + MOST_ALIASES] for at in range(0, len(numbers), MOST_ALIASES)]
        answers = self.github.map(
            lambda chunk: self.github.graphql(ids_query(chunk), {"owner": owner, "name": name}), chunks
        )
        return {
            int(alias[1:]): found
            for data in answers
            for alias, found in (data.get("repository") or {}).items()
            if found
        }

    def _why_gone(self, number: int) -> str:
        """Why GraphQL doesn't give an issue, by REST, which says: moved, deleted, a pull request."""
        page = self.github.rest(f"repos/{self.repository}/issues/{number}")
        if page.status == 200:
            return "is_pull_request" if "pull_request" in page.data else "unreadable"
        return {301: "transferred", 410: "deleted", 404: "not_found"}.get(page.status, f"http_{page.status}")


def _age(node: Node) -> tuple[datetime, int]:
    return datetime.fromisoformat(node["createdAt"]), node["number"]
