"""What a collection will ask of each repository, and what that costs, told by one counting query each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from typing import Literal

from stscurate.errors import InputError
from stscurate.services.github import GitHub
from stscurate.sources.github.costs import Counted, search_cost, shares_of, sweep_cost
from stscurate.sources.github.queries import SAMPLED
from stscurate.sources.github.search import Window
from stscurate.sources.github.tombstones import redacted
from stscurate.sources.lists import Listed, OptOut

POINTS_AN_HOUR = 5_000
# Issues that a search finds, looked at with the counting: newest and oldest of those by a comment, newest of others.
# With the counts, so many cost one point.
_OF_COMMENTS, _OF_OTHERS = 22, 10
# A sweep finds what no search sees, duplicates that only an event tells of: it is taken where it costs no more than so
# many times as much. An issue read for a negative costs two thirds of one read in a sweep, so a search that would read
# nearly all issues for its negatives never passes.
_WORTH_A_SWEEP = 1.5


@dataclass(frozen=True)
class Plan:
    """How one repository is collected. `search`: what the searches find, the originals, and negatives; `sweep`: all.

    duplicates, points and requests are estimates from a sample; the points will be within least and most.
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
    duplicates: int  # of the candidates
    points: int
    requests: int
    least: int
    most: int

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
    if opt_out:
        github.mend = lambda data: redacted(data, opt_out)
    asked = [listed for listed in repositories if not opt_out.repository(listed.name)]
    plans = github.map(lambda listed: _plan(github, listed, negatives, max_issues), asked)
    found: dict[str, Plan] = {}
    for plan in plans:
        if not opt_out.repository(plan.repository):
            first = found.setdefault(plan.repository.lower(), plan)
            found[plan.repository.lower()] = replace(first, listed=tuple(dict.fromkeys(first.listed + plan.listed)))
    return list(found.values())


def _plan(github: GitHub, listed: Listed, negatives: float, max_issues: int | None) -> Plan:
    searches = _searches(listed)
    groups = [names for size in range(1, len(searches) + 1) for names in combinations(searches, size)]
    samples = {"c0": (searches[0], _OF_COMMENTS, "asc"), "c1": (searches[0], _OF_COMMENTS, "desc")}
    samples |= {f"o{at}": (words, _OF_OTHERS, "desc") for at, words in enumerate(searches[1:])}
    query, variables = _counting(listed, {f"s{at}": " ".join(names) for at, names in enumerate(groups)}, samples)
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
    read = {
        alias: [node for node in data[alias]["nodes"] if node and "state" in node]  # not those that were left out
        for alias in samples
    }
    by_comments, others = (
        {node["id"]: node for alias in read if alias[0] == kind for node in read[alias]} for kind in "co"
    )
    said = counts[searches[0],]
    shares = (
        shares_of(said, list(by_comments.values())),
        shares_of(candidates - said, list(others.values())),
    )
    most = issues if max_issues is None else min(issues, max_issues)
    swept, searched = sweep_cost(most), search_cost(issues, candidates, found, shares, negatives, most)
    worth = _WORTH_A_SWEEP if most == issues else 1.0  # cut short, a sweep finds the oldest issues' duplicates alone
    way: Literal["search", "sweep"] = "search" if searched.points * worth < swept.points else "sweep"
    cost = searched if way == "search" else swept
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
        duplicates=min(round(sum(share.of(share.duplicates, 0) for share in shares)), candidates),
        points=cost.points,
        requests=cost.requests,
        least=cost.least,
        most=cost.most,
    )


def _searches(listed: Listed) -> list[str]:
    labels = ",".join(f'"{label}"' for label in listed.labels)
    return ['"duplicate of" in:comments', "reason:duplicate"] + ([f"label:{labels}"] if labels else [])


def _counting(
    listed: Listed, searches: Mapping[str, str], samples: Mapping[str, tuple[str, int, str]]
) -> tuple[str, dict[str, str]]:
    """One query: the repository's name, its number of issues, the oldest and newest, the counts of searches, and some
    of what they find: alias -> (words, how many, the order of their creation)."""
    owner, name = listed.name.split("/")
    end = "issues(first: 1, orderBy: {field: CREATED_AT, direction: %s}) { nodes { number createdAt } }"
    latest = "issues(first: 1, orderBy: {field: UPDATED_AT, direction: DESC}) { nodes { updatedAt } }"
    asked = "\n".join(f"{alias}: search(query: ${alias}, type: ISSUE, first: 1) {{ issueCount }}" for alias in searches)
    looked_at = "\n".join(
        f"{alias}: search(query: ${alias}, type: ISSUE, first: {size}) {{ nodes {{ ... on Issue {{ {SAMPLED} }} }} }}"
        for alias, (_, size, _) in samples.items()
    )
    given = ", ".join(f"${alias}: String!" for alias in (*searches, *samples))
    query = f"""query ($owner: String!, $name: String!, {given}) {{
      rateLimit {{ cost remaining resetAt }}
      repository(owner: $owner, name: $name) {{
        nameWithOwner issues {{ totalCount }} oldest: {end % "ASC"} newest: {end % "DESC"}
        latest: {latest}
      }}
      {asked}
      {looked_at}
    }}"""
    within = f"repo:{listed.name} is:issue"
    words = {alias: f"{within} {text}" for alias, text in searches.items()}
    words |= {alias: f"{within} {text} sort:created-{order}" for alias, (text, _, order) in samples.items()}
    return query, {"owner": owner, "name": name, **words}
