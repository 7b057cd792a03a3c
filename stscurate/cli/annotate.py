"""The command annotate: pairs -> votes -> scores, and what that costs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stscurate.cli import annotators
from stscurate.cli.console import Console, session
from stscurate.cli.ensemble import MethodName
from stscurate.cli.options import (
    AcceptCorpus,
    Columns,
    EngineName,
    Json,
    Processes,
    Quiet,
    Scale,
    Seed,
    Yes,
    engine_of,
    only_with,
)
from stscurate.wording import counted

if TYPE_CHECKING:
    from stscurate.annotators.base import Plan

_HEADERS = {
    "due": "to do",
    "known": "kept",
    "tokens": "tokens, about",
    "cost": "cost, USD",
    "hours": "hours at least",
    "under_way": "in batches",
}


def annotate(
    context: typer.Context,
    pairs: Annotated[Path, typer.Argument(help="File of pairs, or a run that has pairs.")],
    llm: Annotated[
        list[str],
        typer.Option(
            metavar="SPEC",
            help="Annotator, as often as wanted: openai:MODEL, http://HOST:PORT/v1#MODEL, local:MODEL-OR-PATH, "
            "embedding:MODEL, reranker:MODEL, file:VOTES (#0-5 behind it: their scale); NAME=SPEC names it.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Run folder for the votes and scores; the run of PAIRS by default.")
    ] = None,
    method: Annotated[
        MethodName,
        typer.Option(
            "--method",
            help="How votes become a score: mean or median of the annotators; weighted by what they have in common; "
            "dawid-skene or mace, the expected one of 6 classes. `ensemble` makes scores anew by another.",
        ),
    ] = "weighted",
    max_tokens: Annotated[int, typer.Option(help="Tokens of each text that an annotator reads.", min=8)] = 256,
    split: Annotated[str | None, typer.Option(help="Ask only for pairs of this split (train).")] = None,
    both_orders: Annotated[
        bool,
        typer.Option("--both-orders", help="Ask chat models, digits and rerankers with the texts in either order."),
    ] = False,
    cascade: annotators.CascadeShare = None,
    dear: annotators.Dear = None,
    relevance: annotators.RelevanceFolder = None,
    accept: AcceptCorpus = None,
    task: annotators.Task = "similarity",
    language: annotators.Language = "en",
    prompt: annotators.PromptFile = None,
    shots: annotators.Shots = 0,
    examples: annotators.Examples = None,
    examples_scale: annotators.ExamplesScale = None,
    samples: annotators.Samples = 1,
    json_schema: annotators.JsonSchema = False,
    scoring: annotators.Scoring = "gain",
    trust_remote_code: annotators.TrustRemoteCode = False,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Ask endpoints by OpenAI's batch API: often at half the price, in up to 24 hours; the same command "
            "goes on waiting.",
        ),
    ] = False,
    concurrency: Annotated[
        int, typer.Option(help="Requests under way at once to one endpoint, at most; fewer where it complains.", min=1)
    ] = 8,
    timeout: Annotated[float, typer.Option(help="Seconds that a request may take.", min=0.001, max=86_400)] = 60.0,
    prices: Annotated[
        Path | None, typer.Option(help="Table of prices by model, as datasets/prices.toml, which it replaces.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="US dollars that this call may spend; the rest can go on later.", min=0)
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(help="Requests that this call may send; the rest can go on later.", min=0)
    ] = None,
    columns: Columns = None,
    scale: Scale = None,
    engine: EngineName = "local",
    workers: Processes = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked, what it costs, and how long; ask nothing.")
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Ask chat endpoints, local language models and embedding models how similar each pair is."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.annotators import Prices, Purse, check_annotators, parse_spec, plan
        from stscurate.annotators import annotate as ask
        from stscurate.ensemble import score_votes
        from stscurate.errors import InputError
        from stscurate.store import Run, is_run
        from stscurate.tables import import_pairs, pairs_source

        only_with(context, "--examples", examples, "--examples-scale")
        if out is None and not is_run(pairs):
            wrong = "isn't a run" if pairs.exists() else "doesn't exist"
            raise InputError(
                f"{pairs} {wrong}: give a run, or a file of pairs and the run folder for its votes (--out)."
            )
        folder = out or pairs
        source = None if folder.resolve() == pairs.resolve() else pairs_source(pairs, columns=columns, scale=scale)
        asked = annotators.options(
            task=task,
            language=language,
            prompt=prompt,
            shots=shots,
            examples=examples,
            examples_scale=examples_scale,
            max_tokens=max_tokens,
            both_orders=both_orders,
            samples=samples,
            json_schema=json_schema,
            scoring=scoring,
            trust_remote_code=trust_remote_code,
            engine=engine_of(engine, workers),
            seed=seed,
        )
        which = annotators.which(split, cascade, dear, relevance, accept)
        priced = Prices.load(prices) if prices else None
        purse = Purse(requests=max_requests, cost=max_cost)
        check_annotators(
            llm, cascade=cascade, dear=which["dear"], relevance=which["relevance"], asked=not dry_run, **asked
        )
        with Run.open(folder, replace=yes) as run:
            if source:
                console.stage(import_pairs(run, source))
            if dry_run:
                _draw_plan(console, plan(run, llm, **which, batch=batch, prices=priced, **asked))
                return
            served = any(parse_spec(text).kind in ("openai", "http") for text in llm)
            if served and not yes and sys.stdin.isatty():
                due = plan(run, llm, **which, batch=batch, served=True, prices=priced, **asked)
                if any(row.due for row in due):
                    typer.confirm(f"{_bill(due)} Go on?", abort=True)
            try:
                entry = ask(
                    run,
                    llm,
                    **which,
                    batch=batch,
                    concurrency=concurrency,
                    timeout=timeout,
                    prices=priced,
                    purse=purse,
                    progress=console.progress,
                    **asked,
                )
            except KeyboardInterrupt:
                if run.has("votes"):  # what is finished is to be had
                    console.stage(score_votes(run, method=method))
                raise
            console.stage(entry)
            console.stage(score_votes(run, method=method, progress=console.progress))
            _tell(console, purse, dict(entry.tally.counts.get("not_asked", {})))


def _draw_plan(console: Console, plans: Sequence["Plan"]) -> None:
    console.table("asks", [row._asdict() for row in plans], headers=_HEADERS)
    sent = [row for row in plans if row.tokens is not None]
    if sent:
        console.keep(total={"requests": sum(row.due for row in sent), "cost": _cost(sent)})
        console.say(_bill(sent))
    if unknown := [row.annotator for row in sent if row.due and row.cost is None]:
        console.say(f"No price is known for {', '.join(unknown)}: give one by --prices.")


def _bill(plans: Sequence["Plan"]) -> str:
    """What will be sent, in a sentence."""
    requests, tokens = sum(row.due for row in plans), sum(row.tokens or 0 for row in plans)
    cost = _cost(plans)
    price = "and no price is known" if cost is None else f"for about ${cost:,.2f}"
    if cost and cost < 0.01:
        price = "for less than $0.01"
    hours = [row.hours for row in plans if row.hours is not None]
    least = f", which takes {max(hours):.2f} hours at least under the limits" if hours else ""
    return f"{counted(requests, 'request')} will be sent, of about {counted(tokens, 'token')}, {price}{least}."


def _cost(plans: Sequence["Plan"]) -> float | None:
    """None where any has no price."""
    costs = [row.cost for row in plans if row.due]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def _tell(console: Console, purse: Any, left: dict[str, int]) -> None:
    """What was sent and spent, and what is left to be asked."""
    console.keep(sent=purse.sent, spent=round(purse.spent, 6), left=left)
    if purse.sent and purse.spent:
        console.say(f"{counted(purse.sent, 'request was', 'requests were')} sent, for ${purse.spent:,.4f}.")
    if left:
        left_out = counted(sum(left.values()), "vote wasn't", "votes weren't")
        cap = "The cap is reached: " if purse.full else ""
        console.say(f"{cap}{left_out} asked for; the same command goes on from there.")
