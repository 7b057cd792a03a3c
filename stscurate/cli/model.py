"""The command that tests models: evaluate."""

from pathlib import Path
from typing import Annotated

import typer

from stscurate.cli.console import draw_results, session
from stscurate.cli.options import Columns, Json, Quiet, Scale, Seed, Yes


def add_to(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command("evaluate")(evaluate)


def evaluate(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders, packaged or Hub names.")],
    sets: Annotated[
        list[str], typer.Option("--set", help="File of pairs with gold, run (its test split), or lee-news; repeatable.")
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for results.json and results.md.")] = None,
    columns: Columns = None,
    scale: Scale = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples of the 95 % interval.", min=100)] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Correlate a model's cosines with gold: Spearman with its 95 % bootstrap interval, and what it rests on."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.evaluation import evaluate as correlate
        from stscurate.evaluation import evaluate_into, gold_set, table_rows

        gold = [gold_set(name, columns=columns, scale=scale) for name in sets]
        if out:
            entry = evaluate_into(
                out, models, gold, resamples=resamples, seed=seed, replace=yes, progress=console.progress
            )
            console.stage(entry)
            draw_results(console, out)
            return
        found = [
            result.as_dict()
            for model in models
            for result in correlate(model, gold, resamples=resamples, seed=seed, progress=console.progress)
        ]
        console.table("Spearman with gold", table_rows(found))
        console.keep(results=found)
