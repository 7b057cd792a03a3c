"""The command audit relevance: what a similarity means."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from stscurate.cli.console import Console, session
from stscurate.cli.options import AcceptCorpus, CalibrationFolder, Columns, Counter, Json, Quiet, Scale, Seed, Yes
from stscurate.wording import counted


def relevance(
    pairs: Annotated[
        Path,
        typer.Argument(
            metavar="PAIRS",
            help="Judged pairs: a file with scores or labels, or a run whose pairs `annotate --task relevance` judged.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the curve.")],
    model: Annotated[
        str, typer.Option(help="Embedding model whose cosines are to mean something; its tokens are the lengths.")
    ] = "all-MiniLM-L6-v2",
    tokenizer: Counter = None,
    calibration: CalibrationFolder = None,
    reranker: Annotated[
        str | None, typer.Option(help="Cross-encoder whose number is taken in place of a cosine.")
    ] = None,
    accept: AcceptCorpus = None,
    columns: Columns = None,
    scale: Scale = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Fit how likely two texts are relevant to each other, given their similarity and both lengths."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.audit.relevance import audit_relevance
        from stscurate.methods.known_relevance import CURVE
        from stscurate.tables import pairs_source, scores_of

        scores, inputs = scores_of(pairs)
        entry = audit_relevance(
            out,
            pairs_source(pairs, columns=columns, scale=scale),
            scores=scores,
            score_inputs=inputs,
            model=model,
            tokenizer=tokenizer,
            calibration=calibration,
            reranker=reranker,
            accept_corpus=accept == "corpus",
            seed=seed,
            replace=yes,
            progress=console.progress,
        )
        console.stage(entry)
        _draw(console, json.loads((out / CURVE).read_text("utf-8")))


def _draw(console: Console, found: dict[str, Any]) -> None:
    console.keep(relevance=found)
    of = found["similarity_of"]
    most = None if of["calibration"] or of["reranker"] else 1.0
    console.draw(
        "Which similarity means what, by lengths",
        [
            {
                "texts": f"{band['first']}, {band['second']} ({band['tokens'][0]:g}, {band['tokens'][1]:g} tokens)",
                "pairs": band["pairs"],
                "relevant": f"{band['relevant_share']:.1%}",
                "even odds at": _with_interval(band, "similarity_at_0.5", most=most),
                "nine in ten at": _with_interval(band, "similarity_at_0.9", most=most),
                f"relevant, at {found['one_threshold']:.3f}": _percent(band["probability_at_one_threshold"]),
                "judged so, above it": _percent(band["relevant_above_it"]),
            }
            for band in found["bands"]
        ],
    )
    losses = found["held_out"]
    console.say(
        f"{found['pairs']:,} judged pairs of {counted(found['queries'], 'first text')}. At "
        f"{found['one_threshold']:.3f} the "
        "odds are even over all; the last columns say what that one threshold means in each band. Log loss on first "
        "texts held out: " + ", ".join(f"{name} {loss['log_loss']:.4f}" for name, loss in losses.items()) + "."
    )


def _with_interval(band: dict[str, Any], name: str, *, most: float | None) -> str:
    """A band's similarity with its interval; most: the highest that there is, where there is one."""
    if band[name] is None:
        return "-"
    if most is not None and band[name] > most:
        return f"none (above {most:g})"
    ends = band[f"{name}_interval"]
    return f"{band[name]:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else "")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
