"""The part of `collect-issues` that asks GitHub: its token, its plan, its answers kept in the run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from stscurate.cli.console import Console
from stscurate.store import Run
from stscurate.wording import counted


def from_github(
    console: Console,
    run: Run,
    repos: Path,
    *,
    negatives: float,
    max_issues: int | None,
    opt_out: Path | None,
    moved: Mapping[str, str],
    dry_run: bool,
    refresh: bool,
) -> bool:
    """Collect from the repositories of a file and note their licences; with dry_run, say what that costs: then False.

    refresh: a finished collection is followed by the next one, which asks GitHub again.
    """
    from stscurate.services.answers import Answers
    from stscurate.services.github import GitHub
    from stscurate.services.github_http import github_token
    from stscurate.sources import note_licences
    from stscurate.sources.github import collect_from_github, describe, make_plans
    from stscurate.sources.github.plan import POINTS_AN_HOUR
    from stscurate.sources.github.repositories import licence_queries
    from stscurate.sources.lists import OptOut, read_opt_out, read_repositories

    listed = read_repositories(repos)
    left_out = read_opt_out(opt_out) if opt_out else OptOut()
    done = run.entries.get("issues")
    last = last_collection(run)
    collection, previous = (str(last + 1), str(last)) if done and refresh else (str(last), None)
    finished = done and "repositories" in run.entries  # it is found without a token
    asking = dry_run or refresh or run.replace or not finished
    with (
        Answers(run.folder / "answers.sqlite", synced=False) as answers,
        GitHub(github_token() if asking else "", answers=answers, collection=collection, previous=previous) as github,
    ):
        if not dry_run:
            entry = collect_from_github(
                run,
                listed,
                github,
                negatives=negatives,
                max_issues=max_issues,
                opt_out=left_out,
                moved=moved,
                progress=console.progress,
            )
            console.stage(entry)

            def ask(names: Sequence[str]) -> dict[str, str | None]:
                return {name: found.licence if found else None for name, found in describe(github, names).items()}

            console.stage(note_licences(run, listed=listed, ask=ask))
            return True
        plans = make_plans(github, listed, negatives=negatives, max_issues=max_issues, opt_out=left_out)
        rows = [
            {
                "repository": plan.repository,
                "plan": plan.way,
                "issues": plan.issues,
                "candidates": plan.candidates,
                "points": plan.points,
                "least": plan.least,
                "most": plan.most,
                "requests": plan.requests,
                "hours": plan.hours,
            }
            for plan in plans
        ]
        names = ("issues", "points", "least", "most", "requests")
        total: dict[str, float] = {name: sum(getattr(plan, name) for plan in plans) for name in names}
        # What the schema has, and the licences that the list doesn't know, cost a point a query.
        others = 1 + licence_queries(sum(not row.licence for row in listed))
        total |= {name: total[name] + others for name in ("points", "least", "most", "requests")}
        total["hours"] = total["points"] / POINTS_AN_HOUR
        sure = total["least"] == total["most"]
        bounds = "" if sure else f" ({total['least']:,} to {total['most']:,}, by a sample)"
        headers = {"points": "points, about", "least": "points at least", "most": "points at most"}
        console.table("asks", rows, headers=headers)
        console.keep(total=total)
        points, requests = counted(int(total["points"]), "point"), counted(int(total["requests"]), "request")
        console.say(
            f"In all about {points}{bounds} and {requests}, "
            f"{total['hours']:.2f} hours at 5,000 points each; {github.points_left or 0:,} are left now."
        )
        return False


def last_collection(run: Run) -> int:
    """The number of the finished collection, or of one that was killed while its tables took their place."""
    done = run.entries.get("issues")
    begun = run.folder / ".partial" / "issues" / "key.json"
    key = done.key if done else json.loads(begun.read_text("utf-8")) if begun.exists() else {}
    return int(key.get("settings", {}).get("collection") or 0)
