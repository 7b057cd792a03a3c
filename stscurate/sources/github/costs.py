"""What a way of collecting costs, before anything is collected: from counts, and a sample of what the searches find.

Points are GitHub's: each connection in a query takes one request for every thing it hangs on, their sum divided by
100 and rounded, one at the least.
"""

from collections.abc import Sequence
from math import ceil, exp, sqrt
from typing import NamedTuple

from stscurate.records import Tally
from stscurate.sources.comments import duplicate_links
from stscurate.sources.dumps import issue_of
from stscurate.sources.github.queries import Node, comments_of, marks_of, row_of
from stscurate.sources.github.search import SHOWN

# How many requests stand behind one issue, in a query for many: labels and timeline; with comments, one more.
_ISSUE, _COMMENTS = 2, 1
_SURE = 2.0  # standard deviations to each side
_FEWER = 0.6  # for the lower bound: of the originals, where some have many duplicates


class Counted(NamedTuple):
    """A search and how many issues it finds."""

    words: str
    total: int


class Shares(NamedTuple):
    """Of `total` issues: how many of a sample of `size` are duplicates, and how many have a mark that says of what."""

    total: int
    size: int
    duplicates: int
    marked: int

    def of(self, number: int, shift: float) -> float:
        """So many of all as `number` are of the sample; shift: standard deviations above it."""
        size = max(self.size, 1)
        share = number / size
        # With a sample of ten without any, one in ten may well be: half an issue is added on each side.
        guarded = (number + 0.5) / (size + 1)
        whole = self.total > self.size
        error = shift * sqrt(guarded * (1 - guarded) / size) * whole
        return self.total * min(max(share + error, 0.0), 1.0)


class Cost(NamedTuple):
    """Of a collection: what is likely, and the bounds that it stays within unless the sample misleads."""

    points: int
    requests: int
    least: int  # points
    most: int


def sweep_cost(issues: int) -> Cost:
    """Of reading so many issues."""
    pages = ceil(issues / 100)
    points = pages * _points(100, _ISSUE + _COMMENTS)
    return Cost(points, pages, points, points)


def search_cost(
    issues: int, candidates: int, searches: Sequence[Counted], shares: Sequence[Shares], negatives: float, most: int
) -> Cost:
    """Of searching first, where `candidates` are found and parted into `shares`; most: issues that are wanted."""

    def cost(duplicates: float, marked: float, shift: float) -> tuple[int, int]:
        taken = min(candidates, most)
        part = taken / candidates if candidates else 0.0
        found = round(min(duplicates, candidates) * part)
        # Duplicates of the same issue share it, and some originals have been found themselves.
        likely = issues * (1 - exp(-found / issues)) * (1 - taken / issues) if issues else 0.0
        originals = round(likely if not shift else likely * _FEWER if shift < 0 else found)
        known = taken + originals
        wanted = min(ceil(negatives * found), max(min(most, issues) - known, 0))
        asked = min(wanted * issues // max(issues - known, 1) + 1, issues) if wanted else 0
        unmarked = round(candidates * part - min(marked, candidates) * part)
        swept = ceil(asked / 100)
        searched = sum(_search_pages(search.total) for search in searches)
        # Among the issues for negatives may be duplicates that no search sees, whose originals are then fetched too.
        late = 1 if swept and shift > 0 else 0
        groups = [
            (late, 0),
            (late, _ISSUE),
            (taken, _ISSUE),
            (unmarked, _COMMENTS),
            (originals, 0),
            (originals, _ISSUE),
        ]
        points = searched + sum(_in_chunks(number, each) for number, each in groups) + swept * _points(100, _ISSUE)
        return points, searched + sum(ceil(number / 100) for number, _ in groups) + swept

    def sums(shift: float) -> tuple[float, float]:
        # More duplicates cost more, and so do fewer marks.
        return sum(s.of(s.duplicates, shift) for s in shares), sum(s.of(s.marked, -shift) for s in shares)

    points, requests = cost(*sums(0), 0)
    least, most = (cost(*sums(shift), shift)[0] for shift in (-_SURE, _SURE))
    return Cost(points, requests, min(least, points), max(most, points))


def shares_of(total: int, sample: Sequence[Node]) -> Shares:
    """What some of the issues that a search finds are; its `total` is that of all."""
    marked = duplicates = 0
    for node in sample:
        marks = marks_of(node, {}, Tally())
        row = row_of({**node, "title": "", "body": "", "labels": None}, comments_of(node))
        issue = issue_of(row, f"#{node['number']}", None, Tally(), marks=marks)
        marked += any(mark.standing for mark in marks)
        duplicates += bool(duplicate_links(issue, Tally()))
    return Shares(total, len(sample), duplicates, marked)


def _search_pages(count: int) -> int:
    """One a hundred, and where windows are cut, half a page more for each."""
    windows = ceil(count / (SHOWN * 4 // 5)) if count > SHOWN else 0
    return ceil(count / 100) + ceil(windows * 1.5)


def _in_chunks(number: int, each: int) -> int:
    """Points for so many nodes, 100 at a time."""
    whole, rest = divmod(number, 100)
    return whole * _points(100, each) + (_points(rest, each) if rest else 0)


def _points(number: int, each: int) -> int:
    return max(1, int(number * each / 100 + 0.5))
