"""The command that tests models: evaluate."""

from pathlib import Path
from typing import Annotated

import typer

from stscurate.cli.console import draw_evaluation, draw_results, session
from stscurate.cli.options import AcceptCorpus, CalibrationFolder, Columns, Json, Quiet, Scale, Seed, Yes, pair_of


def add_to(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command("evaluate")(evaluate)


def evaluate(
    sets: Annotated[
        list[str],
        typer.Option(
            "--set",
            help="File of pairs with gold, run (its test split), or a benchmark: its NAME for the Hub, NAME=PATH for "
            "this disk, NAME:SPLIT and NAME/SUBSET for a part; papers is the seven STS sets; repeatable.",
        ),
    ],
    models: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL...", help="Folders, packaged or Hub names.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for results.json, .md, .parquet, and density.png.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="NAME=A,B,C: models of several seeds, told one by one and as a mean; repeatable."),
    ] = None,
    paired: Annotated[
        bool, typer.Option("--paired", help="Compare each model with the first on the same rows (paired bootstrap).")
    ] = False,
    subsets: Annotated[bool, typer.Option("--subsets", help="Also each subset of a benchmark by itself.")] = False,
    bands: Annotated[bool, typer.Option("--bands", help="Also by the texts' length and by shared words.")] = False,
    density: Annotated[
        bool, typer.Option("--density", help="Spread of cosines by band of gold; with --out a figure too.")
    ] = False,
    dev: Annotated[
        str | None,
        typer.Option("--dev", help="Binary set, named as --set, whose best thresholds are held to the binary sets."),
    ] = None,
    train: Annotated[
        list[Path] | None,
        typer.Option("--train", help="File of what the models were trained on, for leak-clean numbers; repeatable."),
    ] = None,
    calibration: CalibrationFolder = None,
    accept: AcceptCorpus = None,
    columns: Columns = None,
    scale: Scale = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples of the 95 % interval.", min=100)] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Hold a model's cosines to gold: Spearman with its 95 % bootstrap interval, leak-clean, and what it rests on."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.evaluation import Wanted, evaluate_all, evaluate_into, gold_set, gold_sets
        from stscurate.methods.calibration.saved import Calibration
        from stscurate.tables import text_rows

        names = list(models or [])
        groups: dict[str, list[int]] = {}
        for given in group or []:
            name, members = pair_of("--group", given)
            parts = [part for part in members.split(",") if part]
            names += [part for part in parts if part not in names]
            groups[name] = [names.index(part) for part in parts]
        wanted = Wanted(
            resamples=resamples,
            seed=seed,
            subsets=subsets,
            bands=bands,
            paired=paired,
            density=density,
            groups=groups,
            dev=gold_set(dev, columns=columns, scale=scale) if dev else None,
            train_texts=[text for path in train for row in text_rows(path) for text in row.texts.values()]
            if train
            else None,
            calibration=Calibration.load(calibration) if calibration else None,
            accept_corpus=accept == "corpus",
        )
        gold = gold_sets(sets, columns=columns, scale=scale)
        if out:
            entry = evaluate_into(out, names, gold, wanted, replace=yes, progress=console.progress)
            console.stage(entry)
            draw_results(console, out)
            return
        found = evaluate_all(names, gold, wanted, progress=console.progress)
        draw_evaluation(console, found.as_dict())
