"""The command that fits calibrations: audit calibrate."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from stscurate.cli.console import Console, session
from stscurate.cli.options import Columns, Counter, Json, Quiet, Scale, Seed, Yes

MethodName = Literal[
    "length-centering",
    "s-norm",
    "length-matched-s-norm",
    "global-centering",
    "all-but-the-top",
    "whitening",
    "csls",
    "mutual-proximity",
    "length-regression",
    "length-bins",
]


def calibrate(
    texts: Annotated[Path, typer.Argument(help="File of texts or pairs, or a run: 400 different texts at the least.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the calibration.")],
    model: Annotated[
        str, typer.Option(help="Embedding model whose cosines are calibrated: folder, packaged or Hub name.")
    ] = "all-MiniLM-L6-v2",
    tokenizer: Counter = None,
    method: Annotated[
        MethodName,
        typer.Option(
            help="length-centering for scores of similarity, s-norm for ranking and mining, length-matched-s-norm for "
            "thresholds; the others to compare with."
        ),
    ] = "length-centering",
    all_methods: Annotated[
        bool, typer.Option("--all-methods", help="Measure every method; the one of --method is kept.")
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(help="File of pairs with gold (--scale is its scores' range): the rank correlation is told too."),
    ] = None,
    columns: Columns = None,
    scale: Scale = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Fit a calibration of cosines to texts, and tell what it leaves of the bias by length on a half held out."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.audit.calibrate import calibrate as fit
        from stscurate.tables import pairs_source, texts_source

        labelled = pairs_source(gold, columns=columns, scale=scale) if gold else None
        entry = fit(
            out,
            texts_source(texts, columns=None if gold else columns),
            model=model,
            tokenizer=tokenizer,
            method=method,
            all_methods=all_methods,
            gold=labelled,
            seed=seed,
            replace=yes,
            progress=console.progress,
        )
        console.stage(entry)
        _draw(console, out)


def _draw(console: Console, folder: Path) -> None:
    found = json.loads((folder / "report.json").read_text())
    console.keep(bands=found["bands"], calibration=found["methods"])
    console.draw(
        "Left of the bias by length, on texts held out",
        [
            {
                "method": row["method"],
                "shift, sd": round(row["shift"], 3),
                **{f"% above, at {float(nominal):.1%}": _rates(rates) for nominal, rates in row["rates"].items()},
                **{f"{float(nominal):.1%} reach": round(at, 3) for nominal, at in row["thresholds"].items()},
            }
            | ({"Spearman": round(row["spearman"], 4)} if "spearman" in row else {})
            for row in found["methods"]
        ],
    )
    console.say(
        f"Short: {found['bands']['short']}; long: {found['bands']['long']}. Shift: the mean of pairs of long texts "
        "less that of short ones, in standard deviations of the latter. At one threshold that 5 % or .1 % of all pairs "
        "are above: how many of pairs of short texts are, of middle ones, of long ones, and of a short with a long "
        "one. Then the similarity that so many of all pairs reach, which a --ceiling may be taken from."
    )


def _rates(rates: dict[str, float | None]) -> str:
    return " / ".join("-" if rate is None else f"{100 * rate:.2f}" for rate in rates.values())
