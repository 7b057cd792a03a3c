"""The part of `collect-issues` that checks a list of repositories before anything is collected."""

from pathlib import Path

from stscurate.cli.console import Console
from stscurate.store import Run
from stscurate.wording import counted


def check_list(console: Console, run: Run, repos: Path, *, opt_out: Path | None) -> None:
    """Say what each repository of a list is today, and write the list with reserves in the place of those that fail."""
    from stscurate.errors import InputError
    from stscurate.services.answers import Answers
    from stscurate.services.github import GitHub
    from stscurate.services.github_http import github_token
    from stscurate.sources.github import check_repositories, write_list
    from stscurate.sources.lists import OptOut, read_opt_out, read_repositories, repository_tables

    listed = read_repositories(repos, reserves=True)
    left_out = read_opt_out(opt_out) if opt_out else OptOut()
    place = run.folder / "repositories.toml"
    if place.resolve() == repos.resolve():
        raise InputError(f"{repos} would be overwritten by what is checked, and lose its reserves: name another --out.")
    with (
        Answers(run.folder / "answers.sqlite") as answers,
        GitHub(github_token(), answers=answers, collection="0") as github,
    ):
        found = check_repositories(github, listed, opt_out=left_out)
    console.table(
        "repositories",
        [
            {
                "repository": row.listed.name,
                "now": "-" if row.found is None else row.found.name if row.found.name != row.listed.name else "",
                "reserve": "yes" if row.listed.reserve else "",
                "licence": (row.found and row.found.licence) or "-",
                "of the list": (row.listed.licence or "-") + (" (differs)" if row.licence_differs else ""),
                "issues": row.issues,
                "found": row.candidates,
                "pairs": row.pairs,
                "won't do": row.reason or "",
            }
            for row in found.checked
        ],
    )
    for out, taken in found.replaced:
        console.say(f"{taken.listed.name} takes the place of {out.listed.name} ({out.reason}).")
    for out in found.missing:
        console.say(f"{out.listed.name} drops out ({out.reason}), and no reserve is left to take its place.")
    wanted = sum(not row.listed.reserve for row in found.checked)
    if found.missing:
        console.say(
            f"The reserves have run out: {len(found.kept)} of "
            f"{counted(wanted, 'repository remains', 'repositories remain')}. Add tables with "
            f"reserve = true to {repos}."
        )
    if not found.kept:
        raise InputError(f"No repository of {repos} will do: list others.")
    write_list(place, repository_tables(repos), found.kept)
    console.say(
        'Estimated pairs; "found" is by at least one search. '
        f"{counted(len(found.kept), 'repository', 'repositories')}: {place}"
    )
    console.keep(
        list=str(place),
        kept=[row.name for row in found.kept],
        replaced=[
            {"out": out.listed.name, "reason": out.reason, "in": taken.listed.name} for out, taken in found.replaced
        ],
        without_reserve=[{"out": row.listed.name, "reason": row.reason} for row in found.missing],
    )
