"""The command that gives a set of ids its texts back: rehydrate."""

from pathlib import Path
from typing import Annotated

import typer

from stscurate.cli.console import session
from stscurate.cli.options import Json, Quiet, Yes


def add_to(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command("rehydrate")(rehydrate)


def rehydrate(
    published: Annotated[
        str,
        typer.Argument(metavar="PUBLISHED", help="Set published by ids: a folder, or its name on the Hub."),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Run folder for the issues; the set with its texts is its folder published.")
    ],
    source: Annotated[
        Path | None, typer.Option("--from", help="Dump of issues (as collect-issues reads them) instead of GitHub.")
    ] = None,
    unchanged_only: Annotated[
        bool,
        typer.Option("--unchanged-only", help="Leave out pairs whose texts were edited since, not mark them."),
    ] = False,
    opt_out: Annotated[
        Path | None,
        typer.Option(help="File of users, repositories and issues to leave out, now and later; users not with --from."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Fetch the texts of a set again that was published by ids, from GitHub with GITHUB_TOKEN or gh's token."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.publishing import place_of, publish_rehydrated, published_ids, published_templates
        from stscurate.publishing.rehydrated import NEEDED_FILES
        from stscurate.services.answers import Answers
        from stscurate.services.github import GitHub
        from stscurate.services.github_http import github_token
        from stscurate.services.hub import download_dataset
        from stscurate.sources import fetch_again
        from stscurate.sources.lists import OptOut, read_opt_out
        from stscurate.store import Run

        folder = Path(published) if Path(published).exists() else download_dataset(published, NEEDED_FILES)
        ids = published_ids(folder)
        wanted = [place_of(issue) for side in ("id1", "id2") for issue in ids[side].to_pylist()]
        templates = published_templates(folder)
        left_out = read_opt_out(opt_out) if opt_out else OptOut()
        with Run.open(out, replace=yes) as run:
            if source:
                entry = fetch_again(
                    run, wanted, dump=source, templates=templates, opt_out=left_out, progress=console.progress
                )
            else:
                token = "" if "issues" in run.entries and not yes else github_token()  # what is finished needs none
                with (
                    Answers(run.folder / "answers.sqlite") as answers,
                    GitHub(token, answers=answers, collection="0") as github,
                ):
                    entry = fetch_again(
                        run, wanted, github=github, templates=templates, opt_out=left_out, progress=console.progress
                    )
            console.stage(entry)
            entry = publish_rehydrated(
                run,
                folder,
                run.folder / "published",
                unchanged_only=unchanged_only,
                replace=yes,
                progress=console.progress,
            )
            console.stage(entry)
