"""The command that mines hard negatives: mine."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from stscurate.cli.console import session
from stscurate.cli.options import (
    AcceptCorpus,
    CalibrationFolder,
    Columns,
    Counter,
    Json,
    Quiet,
    RunFolder,
    Scale,
    Seed,
    Yes,
)


def add_to(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command("mine")(mine)


def mine(
    pairs: Annotated[Path, typer.Argument(help="Run or file of pairs: anchor and positive, or with labels or scores.")],
    out: RunFolder,
    corpus: Annotated[Path | None, typer.Option(help="File of more texts to look in; none by default.")] = None,
    model: Annotated[str, typer.Option(help="Embedding model that finds neighbours.")] = "all-MiniLM-L6-v2",
    tokenizer: Counter = None,
    number: Annotated[int, typer.Option(help="Negatives of each anchor.", min=1)] = 3,
    margin: Annotated[
        float, typer.Option(help="How far below its positive's similarity a negative lies, as a share of that.", min=0)
    ] = 0.05,
    ranks: Annotated[str, typer.Option(help="Which of the allowed neighbours are taken, nearest first.")] = "1-50",
    draw: Annotated[
        Literal["top", "random"], typer.Option(help="Of these ranks the nearest, or some by chance.")
    ] = "top",
    candidates: Annotated[
        Literal["second", "both"] | None,
        typer.Option(help="Second texts of the pairs alone, or first ones too; both for a run, second for a file."),
    ] = None,
    similarity: Annotated[
        Literal["auto", "cosine"],
        typer.Option(help="auto: s-norm, fitted to these texts, from 400 on; or the bare cosine."),
    ] = "auto",
    calibration: CalibrationFolder = None,
    accept: AcceptCorpus = None,
    near_duplicates: Annotated[
        float, typer.Option(help="Texts this similar are no negatives (Jaccard of word sequences).", min=0.5, max=1)
    ] = 0.8,
    positive_score: Annotated[
        float, typer.Option(help="Pairs with this score or more are positive.", min=0, max=1)
    ] = 0.8,
    reranker: Annotated[
        str | None, typer.Option(help="Cross-encoder that drops what it takes for positives; none by default.")
    ] = None,
    relevance: Annotated[
        Path | None, typer.Option(help="Folder of `audit relevance`: a curve that drops likely positives.")
    ] = None,
    most_relevant: Annotated[
        float, typer.Option(help="With --relevance: the probability from which it drops a negative.", min=0, max=1)
    ] = 0.5,
    columns: Columns = None,
    scale: Scale = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Find texts that are like an anchor and aren't its positives: triplets to train on."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.methods.calibration.saved import Calibration
        from stscurate.methods.known_relevance import Relevance
        from stscurate.mining import Rules
        from stscurate.mining import mine as find
        from stscurate.store import Run, is_run
        from stscurate.tables import texts_source, training_source

        rules = Rules(
            number=number,
            margin=margin,
            ranks=_ranks(ranks),
            draw=draw,
            near=near_duplicates,
            positive_score=positive_score,
            both_sides=candidates == "both" or (candidates is None and is_run(pairs)),
        )
        source = training_source(pairs, columns=columns, scale=scale)
        more = texts_source(corpus) if corpus else None
        fitted = Calibration.load(calibration) if calibration else None
        curve = Relevance.load(relevance) if relevance else None
        with Run.open(out, replace=yes) as run:
            entry = find(
                run,
                source,
                corpus=more,
                model=model,
                tokenizer=tokenizer,
                rules=rules,
                calibration=fitted,
                similarity=similarity,
                accept_corpus=accept == "corpus",
                reranker=reranker,
                relevance=curve,
                most_relevant=most_relevant,
                seed=seed,
                progress=console.progress,
            )
            console.stage(entry)
            if not entry.outputs["triplets"]["rows"]:
                console.say(
                    "No negative was found: give more texts (--corpus), or a smaller --margin; the drops are above."
                )


def _ranks(text: str) -> tuple[int, int]:
    """The two ends of "1-50"."""
    from stscurate.errors import InputError

    first, _, last = text.partition("-")
    if not first.strip().isdecimal() or not last.strip().isdecimal():
        raise InputError(f"--ranks {text}: give the nearest and the farthest, as in --ranks 1-50.")
    return int(first), int(last)
