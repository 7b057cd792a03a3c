"""Commands about models: train, evaluate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stscurate.cli.console import draw_results, session
from stscurate.cli.options import Columns, Json, Quiet, Scale, Seed, Yes, numbers

if TYPE_CHECKING:
    from stscurate.progress import Progress
    from stscurate.training import TrainingRows

_Data = Annotated[Path, typer.Option("--data", help="Run, or file of pairs (angle) or texts or triplets (arccse).")]
_Model = Annotated[str, typer.Option("--model", help="Model to start from: folder, packaged or Hub name.")]
_Folder = Annotated[Path, typer.Option("--out", help="Folder for the model; it appears when it is whole.")]
_Epochs = Annotated[int, typer.Option(help="Passes over the data.", min=1)]
_Batch = Annotated[int, typer.Option(help="Rows a step.", min=2)]
_Rate = Annotated[float, typer.Option(help="Peak learning rate.", min=0)]
_MaxTokens = Annotated[int, typer.Option(help="Tokens a text is cut to.", min=8)]
_Precision = Annotated[
    Literal["auto", "fp32", "bf16"], typer.Option(help="Of the matrix products; auto: bf16 where the hardware has it.")
]
_SaveSteps = Annotated[int, typer.Option(help="Steps between checkpoints: what a kill may cost.", min=1)]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    train = typer.Typer(help="Train a sentence-embedding model.", no_args_is_help=True, rich_markup_mode=None)
    train.command("angle")(angle)
    train.command("arccse")(arccse)
    app.add_typer(train, name="train")
    app.command("evaluate")(evaluate)


def angle(
    data: _Data,
    out: _Folder,
    model: _Model = "all-MiniLM-L6-v2",
    labels: Annotated[
        Literal["auto", "gold", "pseudo"], typer.Option(help="auto: gold where a pair has it, pseudo-labels elsewhere.")
    ] = "auto",
    agreement_weights: Annotated[
        bool,
        typer.Option("--agreement-weights", help="Weigh each pseudo-label by how far its annotators agree (0 to 1)."),
    ] = False,
    variant: Annotated[
        Literal["code", "symmetric"], typer.Option(help="Angle objective: as published, or ours.")
    ] = "code",
    weights: Annotated[str, typer.Option(help="Weights of the cosine, in-batch and angle objective.")] = "1,1,1",
    taus: Annotated[str | None, typer.Option(help="Temperatures of the three, as in 0.05,0.05,0.05.")] = None,
    epochs: _Epochs = 1,
    batch_size: _Batch = 32,
    learning_rate: _Rate = 2e-5,
    max_tokens: _MaxTokens = 128,
    precision: _Precision = "auto",
    save_steps: _SaveSteps = 100,
    columns: Columns = None,
    scale: Scale = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Train by AnglE: cosine, in-batch and angle objectives on pairs with gold or pseudo-labels."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.records import Tally
        from stscurate.tables import pairs_source, scores_of
        from stscurate.training import Schedule, pair_rows, train_angle

        source = pairs_source(data, columns=columns, scale=scale)
        scores, inputs = scores_of(data)
        rows = pair_rows(
            source.table,
            inputs={**source.inputs, **inputs},
            labels=labels,
            scores=scores,
            agreement_weights=agreement_weights,
        )
        unread = source.tally.dropped
        rows.tally.add(Tally(rows_in=unread.total(), dropped=unread))
        w1, w2, w3 = numbers("--weights", weights, "1,1,1")
        entry = train_angle(
            rows,
            out,
            model=model,
            weights=(w1, w2, w3),
            taus=_taus(taus),
            variant=variant,
            schedule=Schedule(epochs, batch_size, learning_rate, max_tokens, seed, save_steps, precision),
            replace=yes,
            progress=console.progress,
        )
        console.stage(entry)


def arccse(
    data: _Data,
    out: _Folder,
    model: _Model = "all-MiniLM-L6-v2",
    epochs: _Epochs = 1,
    batch_size: _Batch = 32,
    learning_rate: _Rate = 1e-5,
    max_tokens: _MaxTokens = 128,
    precision: _Precision = "auto",
    save_steps: _SaveSteps = 100,
    columns: Columns = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Train by ArcCSE on raw texts: additive angular margin, and triplets of nested masked spans."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.training import Schedule, train_arccse

        entry = train_arccse(
            _triplet_rows(data, columns, seed, console.progress),
            out,
            model=model,
            schedule=Schedule(epochs, batch_size, learning_rate, max_tokens, seed, save_steps, precision),
            replace=yes,
            progress=console.progress,
        )
        console.stage(entry)


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


def _triplet_rows(data: Path, columns: str | None, seed: int, progress: "Progress") -> "TrainingRows":
    """The triplets of a run or a file; of texts, triplets made on the spot, the same ones at every call."""
    from tempfile import TemporaryDirectory

    from stscurate.store import Run, is_run
    from stscurate.tables import texts_source, triplets_source
    from stscurate.training import triplet_rows
    from stscurate.triplets import make_triplets

    if is_run(data) and Run(data).has("triplets"):
        return triplet_rows(Run(data).table("triplets"), inputs={"triplets": Run(data).fingerprint("triplets")})
    given = triplets_source(data, columns=columns)
    if given:
        return triplet_rows(given.table, inputs=given.inputs, tally=given.tally)
    texts = texts_source(data, columns=columns)
    with TemporaryDirectory() as folder, Run.open(Path(folder) / "run") as run:
        entry = make_triplets(run, texts, seed=seed, progress=progress)
        inputs = {**texts.inputs, "triplets": run.fingerprint("triplets")}
        return triplet_rows(run.table("triplets"), inputs=inputs, tally=entry.tally)


def _taus(text: str | None) -> tuple[float, float, float] | None:
    if text is None:
        return None
    first, second, third = numbers("--taus", text, "0.05,0.05,0.05")
    return first, second, third
