"""What a collection will ask of each repository, and what that costs, told by one counting query each.

Points are GitHub's: each connection in a query takes one request for every thing it hangs on, their sum divided by
100 and rounded, one at the least; 5,000 points an hour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from math import ceil
from typing import Literal, NamedTuple

from stscurate.errors import InputError
from stscurate.services.github import GitHub
from stscurate.sources.github.search import SHOWN, Window
from stscurate.sources.lists import Listed, OptOut

POINTS_AN_HOUR = 5_000
# How many requests stand behind one issue, in a query for many: labels and timeline; with comments, one more.
_ISSUE, _COMMENTS = 2, 1
# For the estimate alone. Of all issues, those that a search finds though they are no duplicates ("Is this a duplicate
# of ...?"); of duplicates, those whose event names the original, and originals that the searches haven't found too.
_ASKED, _WITH_EVENT, _ORIGINALS = 0.02, 0.5, 0.85


class Counted(NamedTuple):
    """A search and how many issues it finds."""

    words: str
    total: int


@dataclass(frozen=True)
class Plan:
    """How one repository is collected. `search`: what the searches find, the originals, and negatives; `sweep`: all.

    points and requests are estimates.
    """

    repository: str  # as GitHub names it today
    listed: tuple[str, ...]  # as the list names it
    labels: tuple[str, ...]
    way: Literal["search", "sweep"]
    issues: int
    candidates: int  # that at least one of the searches finds
    searches: tuple[Counted, ...]
    window: Window | None  # from the oldest issue to the newest; None without any
    last: int  # number of the newest issue
    latest: str  # the last change of any issue, by GitHub's clock
    points: int
    requests: int

    @property
    def hours(self) -> float:
        """Hours at 5,000 points each."""
        return self.points / POINTS_AN_HOUR


def make_plans(
    github: GitHub,
    repositories: Sequence[Listed],
    *,
    negatives: float,
    max_issues: int | None = None,
    opt_out: OptOut = OptOut(),  # noqa: B008 - it can't be changed
) -> list[Plan]:
    """A plan for each repository, each once by its present name; those that opted out are left out.

    negatives: negative pairs wanted per duplicate. max_issues: of one repository, at most.
    InputError names a repository that GitHub doesn't have.
    """
    asked = [listed for listed in repositories if not opt_out.repository(listed.name)]
    plans = github.map(lambda listed: _plan(github, listed, negatives, max_issues), asked)
    found: dict[str, Plan] = {}
    for plan in plans:
        if not opt_out.repository(plan.repository):
            first = found.setdefault(plan.repository.lower(), plan)
            found[plan.repository.lower()] = replace(first, listed=tuple(dict.fromkeys(first.listed + plan.listed)))
    return list(found.values())


def duplicates_among(issues: int, candidates: int) -> float:
    """How many of a repository's `candidates`, which the searches find, are duplicates: an estimate."""
    return max(candidates - _ASKED * issues, candidates / 2)


def estimate(
    way: str, issues: int, candidates: int, searches: Sequence[Counted], negatives: float, most: int | None
) -> tuple[int, int]:
    """(points, requests) of a way."""
    most = issues if most is None else min(issues, most)
    if way == "sweep":
        pages = ceil(most / 100)
        return pages * _points(100, _ISSUE + _COMMENTS), pages
    candidates = min(candidates, most)
    duplicates = duplicates_among(issues, candidates)
    originals = round(duplicates * _ORIGINALS)
    without_event = round(candidates - duplicates * _WITH_EVENT)
    swept = min(ceil(negatives * duplicates), max(most - candidates - originals, 0))
    searched = sum(_search_pages(search.total) for search in searches)
    groups = [(candidates, _ISSUE), (without_event, _COMMENTS), (originals, 0), (originals, _ISSUE)]
    points = searched + sum(_in_chunks(number, each) for number, each in groups) + ceil(swept / 100) * 2
    return points, searched + sum(ceil(number / 100) for number, _ in groups) + ceil(swept / 100)


def _plan(github: GitHub, listed: Listed, negatives: float, max_issues: int | None) -> Plan:
    searches = _searches(listed)
    groups = [names for size in range(1, len(searches) + 1) for names in combinations(searches, size)]
    query, variables = _counting(listed, {f"s{at}": " ".join(names) for at, names in enumerate(groups)})
    data = github.graphql(query, variables)
    repository = data.get("repository")
    if not repository:
        raise InputError(f"GitHub has no repository {listed.name} that this token may see: mend or remove its line.")
    present = repository["nameWithOwner"]
    if present.lower() != listed.name.lower():  # renamed: search doesn't know the old name
        plan = _plan(github, Listed(present, listed.labels), negatives, max_issues)
        return replace(plan, listed=(listed.name, *plan.listed))
    counts = {names: data[f"s{at}"]["issueCount"] for at, names in enumerate(groups)}
    # One search or another finds them: by inclusion and exclusion, since search knows no "or".
    candidates = sum((-1) ** (len(names) + 1) * count for names, count in counts.items())
    candidates = max(candidates, *(counts[words,] for words in searches))
    found = tuple(Counted(words, counts[words,]) for words in searches if counts[words,])
    issues = repository["issues"]["totalCount"]
    ends = [node for end in ("oldest", "newest") for node in repository[end]["nodes"]]
    times = [datetime.fromisoformat(node["createdAt"]) for node in ends]
    costs = {way: estimate(way, issues, candidates, found, negatives, max_issues) for way in ("search", "sweep")}
    way: Literal["search", "sweep"] = "search" if costs["search"] < costs["sweep"] else "sweep"
    return Plan(
        repository=present,
        listed=(listed.name,),
        labels=listed.labels,
        way=way,
        issues=issues,
        candidates=candidates,
        searches=found,
        window=Window(times[0], times[-1]) if times else None,
        last=ends[-1]["number"] if ends else 0,
        latest=next((node["updatedAt"] for node in repository["latest"]["nodes"]), ""),
        points=costs[way][0],
        requests=costs[way][1],
    )


def _searches(listed: Listed) -> list[str]:
    labels = ",".join(f'"{label}"' for label in listed.labels)
    return ['"duplicate of" in:comments', "reason:duplicate"] + ([f"label:{labels}"] if labels else [])


def _counting(listed: Listed, searches: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """One query: the repository's name, its number of issues, the oldest and newest, and the counts of searches."""
    owner, name = listed.name.split("/")
    end = "issues(first: 1, orderBy: {field: CREATED_AT, direction: %s}) { nodes { number createdAt } }"
    latest = "issues(first: 1, orderBy: {field: UPDATED_AT, direction: DESC}) { nodes { updatedAt } }"
    asked = "\n".join(f"{alias}: search(query: ${alias}, type: ISSUE, first: 1) {{ issueCount }}" for alias in searches)
    query = f"""query ($owner: String!, $name: String!, {", ".join(f"${alias}: String!" for alias in searches)}) {{
      rateLimit {{ cost remaining resetAt }}
      repository(owner: $owner, name: $name) {{
        nameWithOwner issues {{ totalCount }} oldest: {end % "ASC"} newest: {end % "DESC"}
        latest: {latest}
      }}
      {asked}
    }}"""
    words = {alias: f"repo:{listed.name} is:issue {text}" for alias, text in searches.items()}
    return query, {"owner": owner, "name": name, **words}


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
