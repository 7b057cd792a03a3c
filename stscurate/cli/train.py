"""Commands that train models: angle, cosent, arccse, simcse. What all share stands in `training`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stscurate.cli.console import Console, session
from stscurate.cli.options import numbers
from stscurate.cli.training import Shared, draw_curve, draw_grid, with_shared

if TYPE_CHECKING:
    from stscurate.progress import Progress
    from stscurate.training import TrainingRows
    from stscurate.training.validation import Validation

_Labels = Annotated[
    Literal["auto", "gold", "pseudo"], typer.Option(help="auto: gold where a pair has it, pseudo-labels elsewhere.")
]
_Agreement = Annotated[
    bool,
    typer.Option("--agreement-weights", help="Weigh each pseudo-label by how far its annotators agree (0 to 1)."),
]
_Tau = Annotated[float, typer.Option(help="Temperature of the cosines.", min=1e-6)]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    train = typer.Typer(help="Train a sentence-embedding model.", no_args_is_help=True, rich_markup_mode=None)
    for command in (angle, cosent, arccse, simcse):
        train.command(command.__name__)(command)
    app.add_typer(train, name="train")


@with_shared(learning_rate=2e-5)
def angle(
    shared: Shared,
    labels: _Labels = "auto",
    agreement_weights: _Agreement = False,
    variant: Annotated[
        Literal["code", "symmetric"], typer.Option(help="Angle objective: as published, or ours.")
    ] = "code",
    weights: Annotated[str, typer.Option(help="Weights of the cosine, in-batch and angle objective.")] = "1,1,1",
    taus: Annotated[str | None, typer.Option(help="Temperatures of the three, as in 0.05,0.05,0.05.")] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            help="Weights/temperatures to choose from on the validation set, alternatives with | between, as in "
            "1,0|1,1/0.05,0.05,0.05|0.1; repeatable."
        ),
    ] = None,
) -> None:
    """Train by AnglE: cosine, in-batch and angle objectives on pairs with gold or pseudo-labels."""
    with session(as_json=shared.as_json and not shared.still, quiet=shared.still) as console:
        from stscurate.training import grid_cells, train_angle, train_grid

        rows, own = _pair_rows(shared, labels, agreement_weights)
        w1, w2, w3 = numbers("--weights", weights, "1,1,1")
        common = shared.common(console, own)
        if grid:
            entry = train_grid(rows, shared.out, grid_cells(grid), variant=variant, **common)
            _show(console, entry, shared)
            draw_grid(console, shared)
            return
        entry = train_angle(rows, shared.out, weights=(w1, w2, w3), taus=_taus(taus), variant=variant, **common)
        _show(console, entry, shared)


@with_shared(learning_rate=2e-5)
def cosent(shared: Shared, labels: _Labels = "auto", agreement_weights: _Agreement = False, tau: _Tau = 0.05) -> None:
    """Train by CoSENT: the rank loss over cosines alone, on pairs with gold or pseudo-labels."""
    with session(as_json=shared.as_json and not shared.still, quiet=shared.still) as console:
        from stscurate.training import train_cosent

        rows, own = _pair_rows(shared, labels, agreement_weights)
        entry = train_cosent(rows, shared.out, tau=tau, **shared.common(console, own))
        _show(console, entry, shared)


@with_shared(learning_rate=1e-5)
def arccse(shared: Shared) -> None:
    """Train by ArcCSE on raw texts: additive angular margin, and triplets of nested masked spans."""
    with session(as_json=shared.as_json and not shared.still, quiet=shared.still) as console:
        from stscurate.training import train_arccse

        rows = _triplet_rows(shared.data, shared.columns, shared.seed, console.progress)
        entry = train_arccse(rows, shared.out, **shared.common(console, _own(shared)))
        _show(console, entry, shared)


@with_shared(learning_rate=1e-5)
def simcse(shared: Shared, tau: _Tau = 0.05) -> None:
    """Train by unsupervised SimCSE on raw texts: each finds its own twin, which only dropout makes another."""
    with session(as_json=shared.as_json and not shared.still, quiet=shared.still) as console:
        from stscurate.tables import texts_source
        from stscurate.training import text_rows, train_simcse

        texts = texts_source(shared.data, columns=shared.columns)
        rows = text_rows(texts.table, inputs=texts.inputs, tally=texts.tally)
        entry = train_simcse(rows, shared.out, tau=tau, **shared.common(console, _own(shared)))
        _show(console, entry, shared)


def _show(console: Console, entry: Any, shared: Shared) -> None:
    if shared.still and not shared.quiet:
        return
    console.stage(entry)
    draw_curve(console, entry, shared)


def _pair_rows(shared: Shared, labels: Any, agreement_weights: bool) -> "tuple[TrainingRows, Validation | None]":
    """The pairs that are trained on, and the split validation beside them."""
    from stscurate.records import Tally
    from stscurate.tables import scores_of, training_source
    from stscurate.training import own_validation, pair_rows

    source = training_source(shared.data, columns=shared.columns, scale=shared.scale)
    scores, inputs = scores_of(shared.data)
    rows = pair_rows(
        source.table,
        inputs={**source.inputs, **inputs},
        labels=labels,
        scores=scores,
        agreement_weights=agreement_weights,
    )
    unread = source.tally.dropped
    rows.tally.add(Tally(rows_in=unread.total(), dropped=unread))
    return rows, own_validation(source.name, source.table)


def _own(shared: Shared) -> "Validation | None":
    """The validation split of a run whose texts are trained on."""
    from stscurate.store import Run, is_run
    from stscurate.training import own_validation

    if not is_run(shared.data) or not Run(shared.data).has("pairs"):
        return None
    return own_validation("pairs", Run(shared.data).table("pairs"))


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
