"""What all trainings share on the command line: their options, each once, and the curve that is drawn at the end."""

import functools
import inspect
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stscurate.cli.console import Console
from stscurate.cli.options import Columns, Json, Quiet, Scale, Seed, Yes, numbers
from stscurate.wording import counted

if TYPE_CHECKING:
    from stscurate.training.trainer import Common
    from stscurate.training.validation import Validation

_SHOWN = 10  # points of the curve that are drawn


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The options that each training has."""

    data: Annotated[
        list[Path],
        typer.Option(
            "--data",
            metavar="DATA",
            help="Run, or file of pairs (angle, cosent), texts or triplets (arccse, simcse); FILE#0-5 where its scores "
            "have a range of their own. Repeatable: no batch mixes sources.",
        ),
    ]
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LOSS=DATA",
            help="Another source by another loss, with that loss's defaults: angle=FILE, cosent=FILE, arccse=FILE or "
            "simcse=FILE (or a run); repeatable; none by default.",
        ),
    ] = None
    turns: Annotated[
        str | None,
        typer.Option(
            help="Each source's share of the steps, in the order of --data and --also, as in 3,1; as their sizes by "
            "default."
        ),
    ] = None
    out: Annotated[Path, typer.Option("--out", help="Folder for the model; it appears when it is whole.")]
    model: Annotated[str, typer.Option("--model", help="Model to start from: folder, packaged or Hub name.")] = (
        "all-MiniLM-L6-v2"
    )
    validate: Annotated[
        Path | None,
        typer.Option(
            help="Run (its split validation) or file of pairs with gold that chooses the best weights; by default the "
            "split validation of the first --data where it has gold."
        ),
    ] = None
    eval_steps: Annotated[
        int | None, typer.Option(help="Steps between looks at the validation set; a fifth of all by default.", min=1)
    ] = None
    patience: Annotated[
        int | None, typer.Option(help="Looks without a new best after which training stops; never by default.", min=1)
    ] = None
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Set to be tested on: training on texts that stand in it is refused; repeatable."
        ),
    ] = None
    accept: Annotated[
        Literal["leaks"] | None, typer.Option(help="leaks: train on texts of --test, and say so in the model's card.")
    ] = None
    epochs: Annotated[int, typer.Option(help="Passes over the data.", min=1)] = 1
    batch_size: Annotated[int, typer.Option(help="Rows a step.", min=2)] = 32
    batches: Annotated[
        Literal["random", "length"],
        typer.Option(help="Which rows stand in a batch: any, or those of about the same length (less padding)."),
    ] = "random"
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.", min=0, max=1)]
    micro_batch: Annotated[
        int | None,
        typer.Option(
            help="Texts encoded at once under a gradient cache: the same gradients in less memory, more time; off by "
            "default.",
            min=1,
        ),
    ] = None
    max_tokens: Annotated[int, typer.Option(help="Tokens a text is cut to.", min=8)] = 128
    precision: Annotated[
        Literal["auto", "fp32", "bf16", "fp16"],
        typer.Option(help="Of the matrix products; auto: bf16 where the hardware has it; fp16 on a GPU alone."),
    ] = "auto"
    pooling: Annotated[
        Literal["cls", "mean", "last"] | None,
        typer.Option(help="Of the tokens' vectors; as the model says by default, or mean where it says nothing."),
    ] = None
    prompt: Annotated[
        str | None,
        typer.Option(
            help="Name of one of the model's prompts, or NAME=TEXT for a new one, put before every text; its default "
            "one by default."
        ),
    ] = None
    lora: Annotated[
        int | None, typer.Option(help="Rank of low-rank updates to train in place of all weights (needs peft).", min=1)
    ] = None
    load_in: Annotated[
        Literal["4bit", "8bit"] | None,
        typer.Option(
            help="With --lora: keep the weights in so many bits while the updates are trained (needs bitsandbytes); "
            "whole by default."
        ),
    ] = None
    save_steps: Annotated[int, typer.Option(help="Steps between checkpoints: what a kill may cost.", min=1)] = 100
    columns: Columns = None
    scale: Scale = None
    seed: Seed = 0
    as_json: Json = False
    quiet: Quiet = False
    yes: Yes = False

    @property
    def still(self) -> bool:
        """Whether to print nothing: of several processes (torchrun) the first speaks for all."""
        return self.quiet or os.environ.get("RANK", "0") != "0"

    def common(self, console: Console, own: "Validation | None") -> "Common":
        """These options as a training takes them. own: the validation split of --data."""
        from stscurate.cli.training_data import also_parts
        from stscurate.training import Backbone, Schedule, held_out, validation_set

        schedule = Schedule(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            max_tokens=self.max_tokens,
            seed=self.seed,
            save_steps=self.save_steps,
            precision=self.precision,
            batches=self.batches,
            eval_steps=self.eval_steps,
            patience=self.patience,
            micro_batch=self.micro_batch,
        )
        return {
            "model": self.model,
            "backbone": Backbone(self.pooling, self.prompt, self.lora, self.load_in),
            "schedule": schedule,
            "validation": validation_set(self.validate, scale=self.scale) if self.validate else own,
            "held_out": [held_out(path) for path in self.test or []],
            "accept_leaks": self.accept == "leaks",
            "also": also_parts(self.also or [], self.columns, self.scale, self.seed, console.progress),
            "turns": _turns(self.turns),
            "replace": self.yes,
            "progress": _Pace(console),
            "tell": console.say,
        }


def _turns(text: str | None) -> tuple[float, ...] | None:
    """As many numbers as were given; whether that is one for each source is known later."""
    return None if text is None else numbers("--turns", text, ",".join("3" for _ in text.split(",")))


class _Pace:
    """Draws the progress, and says at the end what it last said of the pace."""

    def __init__(self, console: Console):
        self._console = console

    def __call__(self, label: str, done: int, total: int | None) -> None:
        self._console.progress(label, done, total)
        what, _, particulars = label.partition("; ")
        if done == total and particulars and what.endswith("training steps"):
            self._console.say(f"{what.removesuffix('training steps')}trained {counted(done, 'step')}: {particulars}")


def with_shared(**defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, before its own options, all of `Shared`, which it gets as one. defaults: its own of those."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        names = [field.name for field in fields(Shared)]
        shared = list(inspect.signature(Shared).parameters.values())
        shared = [each.replace(default=defaults.get(each.name, each.default)) for each in shared]
        own = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in list(inspect.signature(command).parameters.values())[1:]
        ]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            command(Shared(**{name: given.pop(name) for name in names}), **given)

        run.__signature__ = inspect.Signature([*shared, *own])  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (*shared, *own)}
        del run.__wrapped__
        return run

    return decorate


def draw_curve(console: Console, shared: Shared) -> None:
    """The curve of a training in a few points, and where the pooling comes from if the model says nothing of it."""
    found = json.loads((shared.out / "training_curve.json").read_text())
    if "no pooling layer" in found["pooling"]:
        console.say(f"    pooling: {found['pooling']}")
    points = found["points"]
    every = -(-len(points) // _SHOWN)
    kept = [point for place, point in enumerate(points) if (place + 1) % every == 0 or place + 1 == len(points)]
    names = list(dict.fromkeys(name for point in points for name in point))
    rows = [{name: point.get(name) for name in names} for point in kept]
    console.table("curve", rows, title="training", headers={name: _header(name) for name in names})
    console.keep(best=found["best"], padding_share=found["padding_share"])


def draw_grid(console: Console, shared: Shared) -> None:
    """What each cell of a grid reached."""
    cells = json.loads((shared.out / "grid.json").read_text())["cells"]
    shown = [{**cell, "weights": _joined(cell["weights"]), "taus": _joined(cell["taus"])} for cell in cells]
    rows = [{**cell, "chosen": "yes" if cell["chosen"] else ""} for cell in shown]
    console.draw("grid", rows, headers={"taus": "temperatures", "spearman": "Spearman"})
    console.keep(grid=cells)


def _header(name: str) -> str:
    """What a column of the curve is called; of several sources behind the name of one."""
    source, colon, term = name.rpartition(": ")
    return source + colon + {"in_batch": "in-batch", "spearman": "Spearman"}.get(term, term)


def _joined(values: list[float] | None) -> str:
    return "-" if values is None else ",".join(f"{value:g}" for value in values)
