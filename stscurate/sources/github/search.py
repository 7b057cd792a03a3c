"""GitHub's search, which shows 1,000 results at most: asked by windows of creation time small enough to be whole."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import NamedTuple

from stscurate.records import Tally
from stscurate.services.github import LARGEST_PAGE, GitHub
from stscurate.sources.github.queries import SEARCH_IDS, Node

SHOWN = 1_000  # results that can be paged through
_SECOND = timedelta(seconds=1)


class Hit(NamedTuple):
    """An issue that a search found; sorts by creation."""

    created: datetime
    number: int
    id: str
    updated: str


class Window(NamedTuple):
    """Creation times from `start` to `stop`, both included, in whole seconds."""

    start: datetime
    stop: datetime

    def halves(self) -> list["Window"]:
        """Two windows, or this one alone where it is a single second."""
        middle = self.start + timedelta(seconds=(self.stop - self.start) // _SECOND // 2)
        return [Window(self.start, middle), Window(middle + _SECOND, self.stop)] if self.start < self.stop else [self]

    def __str__(self) -> str:
        """As a search takes it."""
        return f"created:{_stamp(self.start)}..{_stamp(self.stop)}"


def find_issues(github: GitHub, words: str, window: Window, count: int, tally: Tally) -> list[Hit]:
    """What a search finds in a window where it is expected to find `count`, by creation.

    A window with more than GitHub shows is halved. So is one that shows fewer than it counts, once; what is missing
    then is counted under "search".
    """
    due = _cut(window, count)
    hits: dict[str, Hit] = {}
    halved: set[Window] = set()
    while due:
        again = []
        answers = github.map(lambda part: (part, *_one_window(github, words, part)), due)
        for part, found, counted in answers:
            hits |= {hit.id: hit for hit in found}
            halves = part.halves()
            if len(halves) > 1 and counted > SHOWN:
                again += halves
            elif len(halves) > 1 and len(found) < counted and part not in halved:
                again += halves
                halved.update(halves)
            elif len(found) < counted:
                tally.count("search", "incomplete", counted - len(found))
        due = again
    return sorted(hits.values())


def spread_issues(
    github: GitHub, query: str, words: str, times: list[datetime], wanted: int, *, apart: str | None = None
) -> Iterator[list[Node]]:
    """Issues created in the same time as `times` (sorted), in as many even parts as `wanted` needs; lazily, by page.

    The parts come from windows of equal numbers of `times`, so that what is found is as old or as new. apart: as
    `GitHub.pages` has it.
    """
    parts = min(-(-wanted // LARGEST_PAGE), len(times))
    starts = [times[at * len(times) // parts] for at in range(parts)]
    stops = [start - _SECOND for start in starts[1:]] + [times[-1]]
    windows = [Window(start, stop) for start, stop in zip(starts, stops, strict=True) if start <= stop]
    return github.map(lambda window: list(_some(github, query, f"{words} {window}", apart)), windows)


def _some(github: GitHub, query: str, words: str, apart: str | None) -> Iterator[Node]:
    """As many as one page holds, also where they come in smaller ones."""
    pages = github.pages(query, {"query": f"{words} sort:created-asc"}, ("search",), apart=apart)
    yield from islice((node for page in pages for node in page["nodes"] if node), LARGEST_PAGE)


def _one_window(github: GitHub, words: str, window: Window) -> tuple[list[Hit], int]:
    """What a window shows, and how many it counts; only the count where that is more than can be shown."""
    hits: list[Hit] = []
    count = 0
    for page in github.pages(SEARCH_IDS, {"query": f"{words} {window} sort:created-asc"}, ("search",)):
        count = page["issueCount"]
        if count > SHOWN and window.start < window.stop:
            break
        found = [node for node in page["nodes"] or [] if node]
        hits += [
            Hit(datetime.fromisoformat(node["createdAt"]), node["number"], node["id"], node["updatedAt"])
            for node in found
        ]
    return hits, count


def _cut(window: Window, count: int) -> list[Window]:
    """Windows of equal length, as many as would do if issues came evenly."""
    parts = -(-count // (SHOWN * 4 // 5)) if count > SHOWN else 1
    step = (window.stop - window.start) / parts
    starts = [(window.start + step * at).replace(microsecond=0) for at in range(parts)] + [window.stop + _SECOND]
    return [Window(start, following - _SECOND) for start, following in pairwise(starts) if start < following]


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
