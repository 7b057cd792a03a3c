"""One repository's issues: what its plan says is fetched, and made into the records that dumps give."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime

from stscurate.records import Tally
from stscurate.services.github import GitHub
from stscurate.sources.collect import Made
from stscurate.sources.github.again import Before, age_of
from stscurate.sources.github.costs import Counted
from stscurate.sources.github.making import Maker, Read
from stscurate.sources.github.plan import Plan
from stscurate.sources.github.queries import (
    COMMENTS,
    MORE_COMMENTS,
    MOST_ALIASES,
    SEARCH_IDS,
    Node,
    Queries,
    comments_of,
    complete,
    events_of,
    ids_query,
    is_cut,
    marks_of,
    tells_of_duplicates,
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
    buried: Mapping[int, str] = field(default_factory=dict)  # numbers of issues that are gone for good
    tally: Tally = field(default_factory=Tally)
    elsewhere: set[Place] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)  # numbers that are known, or known to be gone
    followed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Nothing is made yet; what was collected before is looked up."""
        self.before = Before(self.github, self.queries, self.repository)
        self._maker = Maker(self.repository, self.moved, self.opt_out, self.work, self.took)

    def run(self, plan: Plan, *, negatives: float, max_issues: int | None) -> Fetched:
        """All that the plan wants, at most `max_issues` beside the originals."""
        if plan.window:
            if plan.way == "sweep":
                self._sweep(plan, plan.window, plan.issues if max_issues is None else max_issues)
            else:
                hits = self._candidates(plan, plan.window)[:max_issues]
                self._take({hit.id: hit.updated for hit in hits}, comments=True)
                self.follow()
                self._negatives(plan, hits, negatives, max_issues)
            self.follow()
            self.before.keep(plan)
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
        checked, lost = self.before.by_number(), {**self.before.gone, **self.buried}
        found = {number: checked[number] for number in due if number in checked}
        found |= self._look_up([number for number in due if number not in {**checked, **lost}])
        self.asked.update(due)
        # Originals without comments: what says that one is a duplicate itself, the searches have found by that.
        self._take({node["id"]: node["updatedAt"] for node in found.values()}, comments=comments)
        gone = [number for number in due if number not in found]
        for _ in self._maker.made().keys() & set(due):
            self.tally.count(heading, "fetched")
        reasons = self.github.map(lambda number: lost.get(number) or self._why_gone(number), gone)
        for number, reason in zip(gone, reasons, strict=True):
            self.tally.count(heading, reason)
            self.before.seen.gone[str(number)] = reason

    def why_missing(self, numbers: list[int]) -> dict[int, str]:
        """Those of the issues that GitHub doesn't have any more, and why."""
        found = self._look_up([number for number in numbers if number not in self.buried])
        gone = [number for number in numbers if number not in found and number not in self.buried]
        return dict(zip(gone, self.github.map(self._why_gone, gone), strict=True))

    def _candidates(self, plan: Plan, window: Window) -> list[Hit]:
        def find(search: Counted, more: str, tally: Tally) -> list[Hit]:
            words = f"repo:{self.repository} is:issue {search.words} {more}".strip()
            return find_issues(self.github, words, window, 0 if more else search.total, tally)

        def find_all(search: Counted) -> tuple[list[Hit], Tally]:
            tally = Tally()
            return find(search, "", tally), tally

        if self.before.is_known("search"):
            known, tally = self.before.candidates(plan, find)
            self.tally.add(tally)
            return known
        hits: set[Hit] = set()
        for search, (found, tally) in zip(plan.searches, self.github.map(find_all, plan.searches), strict=True):
            self.before.seen.searches[search.words] = [hit.id for hit in found]
            hits.update(found)
            self.tally.add(tally)
        return sorted(hits)

    def _take(self, updated: Mapping[str, str], *, comments: bool) -> None:
        """Fetch issues by id and last change; with comments, where no event says what they are duplicates of."""
        found = self.before.nodes(self.queries.issues, updated)
        nodes = [node for node in found if node]
        self.tally.drop("gone", len(found) - len(nodes))
        for node in nodes:
            if "number" in node:
                self.before.seen.see(node, updated[node["id"]])
        nodes = self.before.with_marks(node for node in nodes if self._wanted(node))
        self._complete(nodes, "timelineItems")
        said = self._comments([node for node in nodes if comments and not self._is_marked(node)])
        self._make((node, said.get(node["id"], [])) for node in nodes)

    def _comments(self, issues: list[Node]) -> dict[str, list[Node]]:
        updated = {node["id"]: node["updatedAt"] for node in issues}
        answers = zip(updated.items(), self.before.nodes(COMMENTS, updated), strict=True)
        found = [{"id": node, "updatedAt": at, **value} for (node, at), value in answers if value]
        self._complete(found, "comments")
        return {node["id"]: comments_of(node) for node in found}

    def _is_marked(self, node: Node) -> bool:
        return any(mark.standing for mark in marks_of(node, self.moved, Tally()))

    def _sweep(self, plan: Plan, window: Window, most: int) -> None:
        """The oldest issues first, up to the one that was the newest when they were counted."""
        end = (window.stop, plan.last)
        taken = 0
        for nodes in self.before.sweep(plan) if self.before.is_known("sweep") else self._pages():
            kept: list[Node] = []
            for node in nodes:
                if taken + len(kept) < most and _age(node) <= end:
                    self.before.seen.see(node)
                    kept += [node] if self._wanted(node) else []
            self._complete(kept, "timelineItems")
            self._complete(kept, "comments")
            self._make((node, comments_of(node)) for node in kept)
            taken += len(kept)
            if not nodes or taken >= most or _age(nodes[-1]) >= end:
                return

    def _pages(self) -> Iterator[list[Node]]:
        owner, name = self.repository.split("/")
        place = {"owner": owner, "name": name}
        for page in self.github.pages(self.queries.sweep, place, ("repository", "issues"), apart=self.queries.whole):
            yield [node for node in page["nodes"] or [] if node]

    def _make(self, read: Iterable[Read]) -> None:
        batch = list(read)
        self.before.seen.marked += [node["id"] for node, _ in batch if tells_of_duplicates(node)]
        self._maker.add(batch)

    def _complete(self, nodes: list[Node], field: str) -> None:
        def more(node: Node) -> None:
            if field == "timelineItems":  # marks come and go without a change
                complete(self.github, node, field, self.queries.more_timeline)
            else:
                updated = node["updatedAt"] if self.before.is_old(node["updatedAt"]) else None
                complete(self.github, node, field, MORE_COMMENTS, updated=updated)

        list(self.github.map(more, [node for node in nodes if is_cut(node, field)]))

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
        # Those that an earlier collection has fetched needn't come along.
        again = self.before.is_known("search")
        query, apart = (SEARCH_IDS, None) if again else (self.queries.search, self.queries.issues)
        parts = spread_issues(self.github, query, words, [hit.created for hit in hits], asked, apart=apart)
        nodes = [node for part in parts for node in part if node["number"] not in known][:wanted]
        if again:
            updated = {node["id"]: node["updatedAt"] for node in nodes}
            nodes = self.before.with_marks(filter(None, self.before.nodes(self.queries.issues, updated)))
        nodes = [node for node in nodes if self._wanted(node)]
        self._complete(nodes, "timelineItems")
        for _ in nodes:
            self.tally.count("fetched", "for_negatives")
        self._make((node, []) for node in nodes)

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
    return age_of(node["createdAt"], node["number"])
