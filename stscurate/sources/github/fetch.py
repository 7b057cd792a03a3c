"""One repository's issues: what its plan says is fetched, and made into the records that dumps give."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from stscurate.records import Tally
from stscurate.services.github import GitHub
from stscurate.sources.comments import Link, duplicate_links
from stscurate.sources.dumps import Issue, issue_of
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
    marks_of,
    row_of,
    user_of,
)
from stscurate.sources.github.search import Hit, Window, find_issues, spread_issues
from stscurate.sources.lists import OptOut

Place = tuple[str, int]  # a repository's present name and an issue's number


@dataclass
class Fetched:
    """A repository's issues by number, what was left out, and the originals that stand in other repositories."""

    issues: list[Issue]
    tally: Tally
    elsewhere: set[Place]


@dataclass
class Collector:
    """Fetches issues of one repository. `moved` maps old names, in lower case, of renamed repositories to new."""

    github: GitHub
    queries: Queries
    repository: str
    moved: Mapping[str, str]
    opt_out: OptOut
    issues: dict[int, Issue] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    elsewhere: set[Place] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)  # numbers that are known, or known to be gone
    followed: set[int] = field(default_factory=set)

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
        return Fetched([self.issues[number] for number in sorted(self.issues)], self.tally, self.elsewhere)

    def follow(self) -> None:
        """Fetch the originals of what is there, and theirs, until none is new."""
        while new := sorted(self.issues.keys() - self.followed):
            self.followed.update(new)
            links = [link for number in new for link in self._links(self.issues[number])]
            self.elsewhere |= {(link.repository, link.number) for link in links if link.repository != self.repository}
            self.take_numbers(link.number for link in links if link.repository == self.repository)

    def take_numbers(self, numbers: Iterable[int]) -> None:
        """Fetch issues by number; those that are gone are counted under "originals" by why."""
        due = sorted(set(numbers) - self.asked)
        found = self._look_up(due)
        self.asked.update(due)
        # Without comments: what says that an original is a duplicate itself, the searches have found by that.
        self._take({node["id"]: node["updatedAt"] for node in found.values()}, comments=False)
        gone = [number for number in due if number not in found]
        for number in due:
            if number in self.issues:
                self.tally.count("originals", "fetched")
        for reason in self.github.map(self._why_gone, gone):
            self.tally.count("originals", reason)

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
        list(self.github.map(lambda node: complete(self.github, node, "timelineItems", MORE_TIMELINE), nodes))
        said = self._comments([node for node in nodes if comments and not self._is_marked(node)])
        for node in nodes:
            self._add(node, said.get(node["id"], []))

    def _comments(self, issues: list[Node]) -> dict[str, list[Node]]:
        updated = {node["id"]: node["updatedAt"] for node in issues}
        answers = self.github.nodes(COMMENTS, updated, updated=updated)
        found = [{"id": node, **value} for node, value in answers.items() if value]
        list(self.github.map(lambda node: complete(self.github, node, "comments", MORE_COMMENTS), found))
        return {node["id"]: comments_of(node) for node in found}

    def _is_marked(self, node: Node) -> bool:
        return any(mark.standing for mark in marks_of(node, self.moved, Tally()))

    def _links(self, issue: Issue) -> list[Link]:
        return duplicate_links(issue, Tally(), moved=self.moved)

    def _sweep(self, newest: datetime, last: int, most: int) -> None:
        """The oldest issues first, up to the one that was the newest (number `last`) when they were counted."""
        owner, name = self.repository.split("/")
        end = (newest, last)
        pages = self.github.pages(self.queries.sweep, {"owner": owner, "name": name}, ("repository", "issues"))
        for page in pages:
            nodes = [node for node in page["nodes"] or [] if node]
            kept: list[Node] = []
            for node in nodes:
                if len(self.issues) + len(kept) < most and _age(node) <= end:
                    kept += [node] if self._wanted(node) else []
            list(self.github.map(self._complete, kept))
            for node in kept:
                self._add(node, comments_of(node))
            if not nodes or len(self.issues) >= most or _age(nodes[-1]) >= end:
                return

    def _complete(self, node: Node) -> None:
        complete(self.github, node, "timelineItems", MORE_TIMELINE)
        complete(self.github, node, "comments", MORE_COMMENTS)

    def _negatives(self, plan: Plan, hits: list[Hit], negatives: float, max_issues: int | None) -> None:
        """Issues of the same time that no search has found, as many as negative pairs are wanted."""
        duplicates = sum(bool(self._links(issue)) for issue in self.issues.values())
        most = plan.issues if max_issues is None else min(max_issues, plan.issues)
        wanted = min(-int(-negatives * duplicates // 1), most - len(self.issues))
        if wanted <= 0 or not hits:
            return
        words = f"repo:{self.repository} is:issue"
        asked = min(wanted * plan.issues // (plan.issues - len(self.issues)) + 1, plan.issues)  # some are known
        parts = spread_issues(self.github, self.queries.search, words, [hit.created for hit in hits], asked)
        nodes = [node for part in parts for node in part if node["number"] not in self.issues]
        for node in nodes[:wanted]:
            if self._wanted(node):
                complete(self.github, node, "timelineItems", MORE_TIMELINE)
                self.tally.count("fetched", "for_negatives")
                self._add(node, [])

    def _add(self, node: Node, comments: list[Node]) -> None:
        kept = [
            comment for comment in comments if not self.opt_out.user((user_of(comment["author"]) or {}).get("login"))
        ]
        if len(kept) < len(comments):
            self.tally.count("comments", "opted_out", len(comments) - len(kept))
        issue = issue_of(row_of(node, kept), f"{self.repository}#{node['number']}", self.moved, self.tally)
        if node["locked"]:
            self.tally.count("issues", "locked")
        self.issues[issue.number] = replace(issue, marks=marks_of(node, self.moved, self.tally))
        self.asked.add(issue.number)

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
