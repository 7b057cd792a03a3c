"""Fetched issues made into rows, beside the requests: while one page is worked on, the next one is under way."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from stscurate.records import Tally
from stscurate.sources.collect import Made, rows_of
from stscurate.sources.dumps import issue_of
from stscurate.sources.github.queries import Node, marks_of, row_of, user_of
from stscurate.sources.lists import OptOut

Read = tuple[Node, list[Node]]  # an issue and its comments, as GitHub gives them


@dataclass
class Maker:
    """Makes the rows of one repository's issues in `work`, a batch at a time. `moved` and `took` as in `Collector`.

    A batch that is added waits for the one before it, so that at most one is in memory beside the rows.
    """

    repository: str
    moved: Mapping[str, str]
    opt_out: OptOut
    work: Executor
    took: Callable[[int], object]
    _made: dict[int, Made] = field(default_factory=dict)
    _tally: Tally = field(default_factory=Tally)
    _under_way: "Future[tuple[list[Made], Tally]] | None" = None

    def add(self, batch: Iterable[Read]) -> None:
        """Begin with a batch."""
        self._settle()
        read = list(batch)
        self.took(len(read))
        self._under_way = self.work.submit(_rows, self.repository, self.moved, self.opt_out, read)

    def made(self) -> dict[int, Made]:
        """Number -> rows of all issues that were added."""
        self._settle()
        return self._made

    def tally(self) -> Tally:
        """What happened to them."""
        self._settle()
        return self._tally

    def _settle(self) -> None:
        if self._under_way:
            made, tally = self._under_way.result()
            self._under_way = None
            self._made |= {each.issue["number"]: each for each in made}
            self._tally.add(tally)


def _rows(repository: str, moved: Mapping[str, str], opt_out: OptOut, batch: list[Read]) -> tuple[list[Made], Tally]:
    tally = Tally()
    made: list[Made] = []
    for node, comments in batch:
        kept = [comment for comment in comments if not opt_out.user((user_of(comment["author"]) or {}).get("login"))]
        if len(kept) < len(comments):
            tally.count("comments", "opted_out", len(comments) - len(kept))
        if node["locked"]:
            tally.count("issues", "locked")
        marks = marks_of(node, moved, tally)
        issue = issue_of(row_of(node, kept), f"{repository}#{node['number']}", moved, tally, marks=marks)
        made.append(rows_of(issue, "github", moved, tally))
    return made, tally
