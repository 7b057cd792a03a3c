"""The command ensemble: votes to scores, and how far the annotators agree."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

import typer

from stscurate.cli.console import Console, session
from stscurate.cli.options import Json, Quiet, Seed, Yes, only_with
from stscurate.wording import counted

if TYPE_CHECKING:
    from stscurate.ensemble import Agreement
    from stscurate.ratings import Ratings

MethodName = Literal["mean", "median", "weighted", "dawid-skene", "mace"]
Method = Annotated[
    MethodName,
    typer.Option(
        "--method",
        help="How votes become a score: mean or median of the annotators; weighted, for the least error variance with "
        "--gold, else by what they have in common; dawid-skene or mace, the expected one of --bins classes.",
    ),
]

_HEADERS = {
    "leave_one_out": "Spearman with the others",
    "order_gap": "order gap",
    "length_bias": "length bias, Spearman",
    "annotator1": "annotator",
    "annotator2": "other annotator",
    "spearman": "Spearman",
    "alpha_interval": "alpha, interval",
    "alpha_ordinal": "alpha, ordinal",
    "alpha_nominal": "alpha, nominal",
    "icc_agreement": "ICC(2,1)",
    "icc_consistency": "ICC(3,1)",
}


class How(TypedDict):
    """What shapes the annotators' weights; as `score_votes` and `agreement_of` take it."""

    method: str
    gold: "Ratings | None"
    curve: Literal["isotonic", "linear"]
    folds: int
    seed: int


def add_to(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command("ensemble")(ensemble)


def ensemble(
    context: typer.Context,
    votes: Annotated[Path, typer.Argument(metavar="RUN", help="Run that has votes.")],
    method: Method = "weighted",
    gold: Annotated[
        Path | None,
        typer.Option(help="File of ratings of pairs, or a run with labels: each annotator is calibrated to it."),
    ] = None,
    curve: Annotated[
        Literal["isotonic", "linear"], typer.Option(help="With --gold: rising steps, or a line, cross-fitted.")
    ] = "linear",
    folds: Annotated[int, typer.Option(help="With --gold: parts of the gold; two pairs each at least.", min=2)] = 5,
    bins: Annotated[int, typer.Option(help="Classes that dawid-skene and mace cut scores into.", min=2)] = 6,
    review: Annotated[
        Path | None,
        typer.Option(help="Folder for labelling tasks of the most doubtful pairs: CSV, Argilla, Label Studio."),
    ] = None,
    gold_sample: Annotated[
        Path | None, typer.Option(help="Folder for labelling tasks of pairs spread over score and doubt, for gold.")
    ] = None,
    tasks: Annotated[int, typer.Option(help="Pairs for --review and for --gold-sample.", min=1)] = 100,
    scale: Annotated[
        str | None, typer.Option(help="Range of the gold, as in 0-5; the narrowest usual one by default.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Make scores of a run's votes again, by another method or with gold, and tell how far annotators agree."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.ensemble import check_tasks_folder, score_votes
        from stscurate.errors import InputError
        from stscurate.ratings import read_ratings, run_ratings
        from stscurate.store import Run, is_run

        only_with(context, "--gold", gold, "--curve", "--folds", "--scale")
        only_with(context, "--review or --gold-sample", review or gold_sample, "--tasks")
        only_with(context, "--method dawid-skene or mace", method in ("dawid-skene", "mace"), "--bins")
        for place in (review, gold_sample):  # before the scores are made anew
            if place:
                check_tasks_folder(place)
        if review and review == gold_sample:
            raise InputError(f"--review and --gold-sample both name {review}: name a folder for each.")
        known = None
        if gold:
            known = run_ratings(Run(gold)) if is_run(gold) else read_ratings(gold, scale=scale)
        with Run.open(votes, replace=yes, new=False) as run:
            how: How = {"method": method, "gold": known, "curve": curve, "folds": folds, "seed": seed}
            entry = score_votes(run, **how, bins=bins, progress=console.progress)
            console.stage(entry)
            found = draw_agreement(console, run.folder, how)
            if review or gold_sample:
                _write_tasks(console, run.folder, review, gold_sample, tasks, seed)
            if gold_sample:
                _draw_needs(console, found)


def _write_tasks(
    console: Console, folder: Path, review: Path | None, gold_sample: Path | None, tasks: int, seed: int
) -> None:
    from stscurate.ensemble import doubts, most_doubtful, write_tasks
    from stscurate.ensemble import gold_sample as sample
    from stscurate.store import Run

    run = Run(folder)
    rows = doubts(run.table("votes"), run.table("scores"))
    written = {}
    for name, place, chosen in (
        ("review", review, most_doubtful(rows, tasks)),
        ("gold_sample", gold_sample, sample(rows, tasks, seed=seed)),
    ):
        if place:
            write_tasks(place, chosen, run.table("pairs"))
            written[name] = {"pairs": len(chosen), "place": str(place)}
            console.say(f"{counted(len(chosen), 'pair')} to label in {place}; how is in guidelines.md there.")
    console.keep(tasks=written)


def _draw_needs(console: Console, found: "Agreement") -> None:
    """How many labels give Spearman with gold a 95 % interval of some widths."""
    from math import isfinite

    from stscurate.ensemble import labels_needed

    rhos = [row["leave_one_out"] for row in found.annotators if isfinite(row["leave_one_out"])]
    rho = min(max(sum(rhos) / len(rhos), 0.0), 0.99) if rhos else 0.8
    widths = (0.2, 0.1, 0.05, 0.02)
    console.table(
        "labels_needed",
        [{"spearman": rho, "interval_width": width, "pairs": labels_needed(rho, width)} for width in widths],
        title="labels for a 95 % interval of Spearman",
        headers={"spearman": "Spearman, about", "interval_width": "width of the interval", "pairs": "labelled pairs"},
    )


def draw_agreement(console: Console, folder: Path, how: How) -> "Agreement":
    """Draw how a run's annotators agree, with the weights of scores that were made so."""
    from stscurate.ensemble import agreement_of
    from stscurate.store import Run

    found = agreement_of(Run(folder), **how)
    console.draw("annotators", found.annotators, headers=_HEADERS)
    if len(found.annotators) > 1:
        console.draw("Spearman between annotators", found.couples, headers=_HEADERS)
        console.draw("agreement", [found.overall], headers=_HEADERS)
    console.keep(agreement=asdict(found))
    return found
