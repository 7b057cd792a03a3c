"""The command that shows how length moves cosines: audit size-bias."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from stscurate.cli.console import Console, session
from stscurate.cli.options import Columns, Json, Quiet, Seed, Yes


def size_bias(
    texts: Annotated[Path, typer.Argument(metavar="TEXTS", help="File or run of texts, pairs or triplets.")],
    model: Annotated[
        str,
        typer.Option(help="Folder, packaged or Hub name, openai:MODEL, jina:MODEL or http://HOST:PORT/v1#MODEL."),
    ] = "all-MiniLM-L6-v2",
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for results.json, results.md and the figure.")
    ] = None,
    votes: Annotated[
        bool,
        typer.Option(
            "--votes", help="TEXTS is a run that has votes: audit its annotators, not a model; without --out."
        ),
    ] = False,
    columns: Columns = None,
    sentences: Annotated[
        Literal["rules", "punkt", "nltk", "lines"],
        typer.Option(help="What splits texts into sentences; rules take Chinese too, punkt and nltk are English."),
    ] = "rules",
    controls: Annotated[int, typer.Option(help="Texts in each control; 0 for none.", min=0)] = 400,
    exact_up_to: Annotated[
        int, typer.Option(help="Texts up to which all pairs are counted; 1.84 million are drawn beyond.", min=2)
    ] = 20_000,
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens at which a model here cuts texts; its own limit by default.", min=3)
    ] = None,
    precision: Annotated[Literal["fp32", "bf16"], typer.Option(help="Of a model here.")] = "fp32",
    api_task: Annotated[
        str | None,
        typer.Option(help="An API's parameter task; two with a comma (queries,passages) also compare them."),
    ] = None,
    late_chunking: Annotated[
        bool, typer.Option("--late-chunking", help="An API's parameter: sentences are embedded within their document.")
    ] = False,
    tokenizer: Annotated[
        str | None, typer.Option(help="Model whose tokenizer gives an API's lengths; words by default.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Texts encoded, or asked for, at once.", min=1)] = 64,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Show how much more similar longer texts look to a model, and what one threshold makes of it."""
    with session(as_json=as_json, quiet=quiet) as console:
        if votes:
            if out:
                from stscurate.errors import InputError

                raise InputError("--votes writes no folder: leave --out away, and take --json for its numbers.")
            _judges(console, texts, seed)
            return
        from stscurate.audit.size_bias import Settings, audit, audit_into, read_corpus

        corpus = read_corpus(texts, columns=columns, sentences=sentences)
        settings = Settings(
            model=model,
            sentences=sentences,
            controls=controls,
            exact_up_to=exact_up_to,
            max_tokens=max_tokens,
            precision=precision,
            tasks=_tasks(api_task),
            late_chunking=late_chunking,
            tokenizer=tokenizer,
            batch_size=batch_size,
            seed=seed,
        )
        if not out:
            _draw(console, audit(corpus, settings, progress=console.progress))
            return
        console.stage(audit_into(out, corpus, settings, replace=yes, progress=console.progress))
        _draw(console, _kept(out))
        console.say(f"Tables: {out / 'results.md'}; figure: {out / 'size_bias.png'}")


def _judges(console: Console, run: Path, seed: int) -> None:
    from stscurate.audit.size_bias.judges import THIRDS, judge_rows
    from stscurate.errors import InputError
    from stscurate.store import Run, is_run

    if not is_run(run) or not Run(run).has("votes"):
        raise InputError(f"{run} has no votes: have its pairs judged by `stscurate annotate`, and name that run.")
    found = judge_rows(Run(run).table("pairs"), Run(run).table("votes"), seed=seed)
    console.keep(judges=found)
    console.draw(
        "votes against length",
        [
            {
                "annotator": row["annotator"],
                "pairs": row["pairs"],
                "with length": row["with_length"],
                "95 % interval": " to ".join(f"{end:.3f}" for end in row["interval"]),
                "with difference": row["with_difference"],
                "left": row["own"],
                "given": row["given"],
                **{f"mean rank, {third}": row[third] for third in THIRDS},
            }
            for row in found
        ],
    )
    console.say(
        "Spearman of votes with the mean log length of the two texts, in words, and with the difference of the logs; "
        "what is left of the first once gold, or what the others say, is held fixed."
    )


def _tasks(given: str | None) -> tuple[str, ...]:
    from stscurate.errors import InputError

    tasks = tuple(task.strip() for task in given.split(",")) if given else ()
    if len(tasks) > 2 or not all(tasks):
        raise InputError(f"--api-task {given}: give one task, or those of queries and of passages with a comma.")
    return tasks


def _kept(out: Path) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads((out / "results.json").read_text())
    return found


def _draw(console: Console, results: dict[str, Any]) -> None:
    from stscurate.audit.size_bias.report import band_rows, control_rows, notes, set_rows, table_rows

    title = f"{results['model']} on {results['texts']}"
    for name, rows in (
        (f"cosines of {title}", set_rows(results)),
        ("controls", control_rows(results)),
        (f"mean ± sd by length in {results['length_unit']}", table_rows(results)),
        ("one threshold, by length", band_rows(results)),
    ):
        console.draw(name, rows)
    for line in notes(results):
        console.say(line)
    console.keep(results=results)
