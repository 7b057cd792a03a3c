"""The command that takes a run to others: publish."""

from pathlib import Path
from typing import Annotated, Any

import typer

from stscurate.cli.console import session
from stscurate.cli.options import Json, Quiet, Yes
from stscurate.cli.review import draw_review


def add_to(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command("publish")(publish)


def publish(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="Run that has pairs.")],
    to: Annotated[Path, typer.Option(help="Folder to write, with Parquet splits and the card.")],
    title: Annotated[str | None, typer.Option(help="Name on the card; the run's name by default.")] = None,
    licence: Annotated[
        str | None, typer.Option(help="Licence of the set (SPDX), where the rows don't name one.")
    ] = None,
    language: Annotated[list[str] | None, typer.Option(help="Language code, repeatable; en by default.")] = None,
    accept: Annotated[list[str] | None, typer.Option(help="Gate to pass although it found something.")] = None,
    texts: Annotated[
        bool,
        typer.Option(
            "--texts", help="Publish the texts of GitHub issues too, not only ids, labels and hashes to fetch them by."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Write nothing: tell what each gate finds, and the files."),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Write a run as a data set that `datasets.load_dataset(FOLDER)` loads, behind gates, with its card."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.publishing import publish_folder, review
        from stscurate.store import Run

        options: dict[str, Any] = {"title": title, "licence": licence, "texts": texts}
        options |= {"language": tuple(language or ["en"]), "accept": tuple(accept or [])}
        with Run.open(run_folder, replace=yes, new=False) as opened:
            if dry_run:
                draw_review(console, review(opened, to, **options))
                return
            console.stage(publish_folder(opened, to, **options, replace=yes, progress=console.progress))
