"""Commands that train models: angle, cosent, arccse, simcse. What all share stands in `training`."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stscurate.cli.console import Console, session
from stscurate.cli.group import Group
from stscurate.cli.options import numbers
from stscurate.cli.training import Shared, draw_curve, draw_grid, with_shared
from stscurate.cli.training_data import pairs_of, texts_of, triplets_of, validation_of

if TYPE_CHECKING:
    from stscurate.training import TrainingRows
    from stscurate.training.validation import Validation

_Labels = Annotated[
    Literal["auto", "gold", "pseudo"], typer.Option(help="auto: gold where a pair has it, pseudo-labels elsewhere.")
]
_Agreement = Annotated[
    bool,
    typer.Option("--agreement-weights", help="Weigh each pseudo-label by how far its annotators agree (0 to 1)."),
]
_Tau = Annotated[float, typer.Option(help="Temperature of the cosines.", min=1e-6, max=100)]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    train = typer.Typer(
        cls=Group, help="Train a sentence-embedding model.", no_args_is_help=True, rich_markup_mode=None
    )
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
    taus: Annotated[str, typer.Option(help="Temperatures of the three.")] = "0.2,0.05,0.2",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUES",
            help="Weights/temperatures to choose from on the validation set, alternatives with | between, as in "
            "1,0|1,1/0.05|0.2,0.05,0.2; repeatable.",
        ),
    ] = None,
) -> None:
    """Train by AnglE: cosine, in-batch and angle objectives on pairs with gold or pseudo-labels.

    Rows of a query and a positive alone are trained by the in-batch objective alone.
    """
    with session(as_json=shared.as_json and not shared.still, quiet=shared.still) as console:
        from stscurate.training import grid_cells, train_angle, train_grid

        rows, own = _pair_rows(shared, labels, agreement_weights)
        w1, w2, w3 = numbers("--weights", weights, "1,1,1")
        cosine, in_batch, angle = numbers("--taus", taus, "0.2,0.05,0.2")
        common = shared.common(console, own)
        if grid:
            entry = train_grid(rows, shared.out, grid_cells(grid), variant=variant, **common)
            _show(console, entry, shared)
            draw_grid(console, shared)
            return
        entry = train_angle(
            rows, shared.out, weights=(w1, w2, w3), taus=(cosine, in_batch, angle), variant=variant, **common
        )
        _show(console, entry, shared)


@with_shared(learning_rate=2e-5)
def cosent(shared: Shared, labels: _Labels = "auto", agreement_weights: _Agreement = False, tau: _Tau = 0.2) -> None:
    """Train by CoSENT: the rank loss over cosines alone, on pairs with gold or pseudo-labels."""
    with session(as_json=shared.as_json and not shared.still, quiet=shared.still) as console:
        from stscurate.training import train_cosent

        rows, own = _pair_rows(shared, labels, agreement_weights, ranked=True)
        entry = train_cosent(rows, shared.out, tau=tau, **shared.common(console, own))
        _show(console, entry, shared)


@with_shared(learning_rate=1e-5)
def arccse(
    shared: Shared,
    margin: Annotated[float, typer.Option(help="Angular margin, in degrees.")] = 10.0,
    tau: _Tau = 0.05,
    triplet_weight: Annotated[float, typer.Option(help="Weight of the masked triplets.", min=0)] = 0.1,
    triplet_margin: Annotated[float, typer.Option(help="Margin between the cosines of a triplet.", min=0)] = 0.0,
) -> None:
    """Train by ArcCSE on raw texts: additive angular margin, and triplets of nested masked spans."""
    with session(as_json=shared.as_json and not shared.still, quiet=shared.still) as console:
        from stscurate.training import train_arccse

        rows = [triplets_of(path, shared.columns, shared.seed, console.progress) for path in shared.data]
        settings = {"margin_degrees": margin, "tau": tau, "triplet_weight": triplet_weight}
        settings["triplet_margin"] = triplet_margin
        entry = train_arccse(rows, shared.out, **settings, **shared.common(console, validation_of(shared.data)))
        _show(console, entry, shared)


@with_shared(learning_rate=1e-5)
def simcse(shared: Shared, tau: _Tau = 0.05) -> None:
    """Train by unsupervised SimCSE on raw texts: each finds its own twin, which only dropout makes another."""
    with session(as_json=shared.as_json and not shared.still, quiet=shared.still) as console:
        from stscurate.training import train_simcse

        rows = [texts_of(path, shared.columns) for path in shared.data]
        entry = train_simcse(rows, shared.out, tau=tau, **shared.common(console, validation_of(shared.data)))
        _show(console, entry, shared)


def _show(console: Console, entry: Any, shared: Shared) -> None:
    if shared.still and not shared.quiet:
        return
    console.stage(entry)
    draw_curve(console, shared)


def _pair_rows(
    shared: Shared, labels: Any, agreement_weights: bool, *, ranked: bool = False
) -> "tuple[list[TrainingRows], Validation | None]":
    """The pairs that are trained on, and the split validation beside the first of them that has one."""
    found = [
        pairs_of(path, shared.columns, shared.scale, labels, agreement_weights, ranked=ranked) for path in shared.data
    ]
    return [rows for rows, _ in found], next((own for _, own in found if own is not None), None)
