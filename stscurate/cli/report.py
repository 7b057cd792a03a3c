"""The commands that tell about a run and about this machine: report, doctor."""

from pathlib import Path
from typing import Annotated

import typer

from stscurate.cli.console import session
from stscurate.cli.options import Json, Quiet
from stscurate.wording import counted


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("report")(report)
    app.command("doctor")(doctor)


def report(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="Run with a finished stage.")],
    out: Annotated[Path | None, typer.Option("--out", help="HTML file to write; RUN/report.html by default.")] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option("--model", metavar="FOLDER", help="Folder of a trained model, repeatable; none by default."),
    ] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option("--results", metavar="FOLDER", help="Folder of an evaluation, repeatable; none by default."),
    ] = None,
    examples: Annotated[int, typer.Option(help="Pairs to show of each kind.", min=0, max=100)] = 5,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one HTML page about a run: stages, drops, pairs, scores, annotators, examples, training, evaluation."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.errors import InputError
        from stscurate.reporting import write_report
        from stscurate.store import Run, is_run

        if not is_run(run_folder):
            raise InputError(f"{run_folder} isn't a run: name a folder that a command has made with --out.")
        place = out or run_folder / "report.html"
        facts = write_report(Run(run_folder), place, models=model or [], results=results or [], examples=examples)
        console.say(
            f"{place}: {counted(len(facts['stages']), 'stage')}, {place.stat().st_size:,} bytes. Open it in a browser."
        )
        console.keep(report=str(place), bytes=place.stat().st_size, stages=[stage["name"] for stage in facts["stages"]])


def doctor(
    endpoint: Annotated[
        list[str] | None,
        typer.Option("--endpoint", metavar="URL", help="URL that should answer, repeatable; none is asked by default."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell what this machine has for stscurate, and the mend of what it lacks; sends nothing but to --endpoint."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.doctor import examine

        checks = examine(endpoints=endpoint or [])
        for check in checks:
            console.say(f"{check.state:>4}  {check.name}: {check.found}" + (f". {check.mend}" if check.mend else ""))
        console.keep(
            checks=[
                {"state": check.state, "name": check.name, "found": check.found, "mend": check.mend} for check in checks
            ]
        )
        wrong = sum(check.state == "bad" for check in checks)
        if wrong:
            from stscurate.errors import StscurateError

            mends = "; ".join(f"{check.name}: {check.mend}" for check in checks if check.state == "bad")
            raise StscurateError(f"{wrong} of {len(checks)} checks failed. {mends}")
