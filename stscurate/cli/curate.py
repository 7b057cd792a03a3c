"""Commands from raw text to labels: collect-issues, sample-pairs, annotate, triplets."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from stscurate.cli import pairing
from stscurate.cli.annotate import annotate
from stscurate.cli.console import session
from stscurate.cli.options import (
    AcceptCorpus,
    CalibrationFolder,
    Columns,
    EngineName,
    Hydrate,
    Json,
    Processes,
    Quiet,
    RunFolder,
    Seed,
    SourceFormat,
    Workers,
    Yes,
    engine_of,
    numbers,
    pair_of,
)

_Texts = Annotated[Path, typer.Argument(help="File of texts or pairs (Parquet, CSV, TSV, JSON lines, text), or a run.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("collect-issues")(collect_issues)
    app.command("sample-pairs")(sample_pairs)
    app.command("annotate")(annotate)
    app.command("triplets")(triplets)


def collect_issues(
    out: RunFolder,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="JSON lines of issues, a folder with a JSON file an issue, or hours of GH Archive."
        ),
    ] = None,
    source_format: SourceFormat = "auto",
    repos: Annotated[
        Path | None,
        typer.Option(
            help="TOML file or lines of owner/name: collected from GitHub, with GITHUB_TOKEN or gh's token; or with "
            "GH Archive, all that is read of it."
        ),
    ] = None,
    negatives: pairing.Negatives = 1.0,
    lexical_share: pairing.LexicalShare = 0.5,
    encoder_share: pairing.EncoderShare = 0.0,
    encoder: pairing.EncoderModel = None,
    ceiling: pairing.Ceiling = None,
    similarity: pairing.Similarity = None,
    calibration: CalibrationFolder = None,
    accept: AcceptCorpus = None,
    shares: pairing.Shares = "0.8,0.1,0.1",
    split_by: pairing.SplitBy = "component",
    near_duplicates: pairing.NearDuplicates = 0.8,
    all_pairs: pairing.AllPairs = False,
    min_chars: pairing.MinChars = 20,
    tokenizer: pairing.Tokenizer = None,
    max_issues: Annotated[
        int | None, typer.Option(help="With --repos: issues of a repository, originals aside.", min=1)
    ] = None,
    opt_out: Annotated[
        Path | None,
        typer.Option(help="With --repos or GH Archive: file of users, repositories and issues to leave out."),
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="With --repos: ask again what a finished run's issues are now.")
    ] = False,
    workers: Workers = None,
    hydrate: Hydrate = False,
    moved: Annotated[
        list[str] | None, typer.Option(metavar="OLD=NEW", help="OLD=NEW name of a repository, repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repos: say what would be asked, after one query a repository.")
    ] = False,
    preflight: Annotated[
        bool,
        typer.Option(
            "--preflight",
            help="With --repos: check the list alone, put reserves in the place of repositories that won't do (gone, "
            "archived, without issues, under 100 pairs), and write it to the run as repositories.toml.",
        ),
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Turn GitHub issues with their comments into duplicate and non-duplicate pairs, split without leaks."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.cli import gharchive
        from stscurate.cli.github import from_github
        from stscurate.cli.preflight import check_list
        from stscurate.errors import InputError
        from stscurate.pairing import make_pairs
        from stscurate.sources import collect_issues as collect
        from stscurate.sources import note_licences
        from stscurate.store import Run

        parts = numbers("--shares", shares, "0.8,0.1,0.1")
        mined = pairing.mining(encoder_share, encoder, ceiling, similarity, calibration, accept)
        renamed = dict(pair_of("--moved", option) for option in moved or [])
        archive = source is not None and gharchive.holds_archive(source, source_format)
        if (source is None) == (repos is None) and not archive:
            raise InputError("Issues come from files or from GitHub: give one of --from and --repos.")
        if source and (dry_run or max_issues or preflight or ((refresh or opt_out) and not archive)):
            raise InputError("That option is for GitHub alone (see --help): give --repos instead of --from.")
        gharchive.check_options(archive=archive, workers=workers, hydrate=hydrate, refresh=refresh)
        with Run.open(out, replace=yes or refresh) as run:
            if source and archive:
                gharchive.from_archive(
                    console,
                    run,
                    source,
                    repos=repos,
                    opt_out=opt_out,
                    negatives=negatives,
                    workers=workers,
                    hydrate=hydrate,
                    moved=renamed,
                    refresh=refresh,
                )
            elif source:
                console.stage(collect(run, source, moved=renamed, progress=console.progress))
                console.stage(note_licences(run))
            elif repos and preflight:
                check_list(console, run, repos, opt_out=opt_out)
                return
            elif repos:
                collected = from_github(
                    console,
                    run,
                    repos,
                    negatives=negatives,
                    max_issues=max_issues,
                    opt_out=opt_out,
                    moved=renamed,
                    dry_run=dry_run,
                    refresh=refresh,
                )
                if not collected:
                    return
            entry = make_pairs(
                run,
                negatives=negatives,
                lexical_share=lexical_share,
                **mined,
                shares=(parts[0], parts[1], parts[2]),
                split_by=split_by,
                near_duplicates=near_duplicates,
                all_pairs=all_pairs,
                min_chars=min_chars,
                tokenizer=tokenizer,
                seed=seed,
                progress=console.progress,
            )
            console.stage(entry)


def sample_pairs(
    texts: _Texts,
    out: RunFolder,
    pairs: Annotated[int | None, typer.Option(help="Pairs wanted; three a text by default.", min=1)] = None,
    model: Annotated[str, typer.Option(help="Embedding model that finds neighbours.")] = "all-MiniLM-L6-v2",
    calibration: CalibrationFolder = None,
    accept: AcceptCorpus = None,
    engine: EngineName = "local",
    workers: Processes = None,
    columns: Columns = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Draw pairs worth labelling from texts without any: random, lexical and embedding neighbours."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.methods.calibration.saved import Calibration
        from stscurate.sampling import sample_pairs as sample
        from stscurate.store import Run
        from stscurate.tables import texts_source

        source = texts_source(texts, columns=columns)
        fitted = Calibration.load(calibration) if calibration else None
        with Run.open(out, replace=yes) as run:
            entry = sample(
                run,
                source,
                model=model,
                pairs=pairs,
                calibration=fitted,
                accept_corpus=accept == "corpus",
                seed=seed,
                engine=engine_of(engine, workers),
                progress=console.progress,
            )
            console.stage(entry)


def triplets(
    texts: _Texts,
    out: RunFolder,
    ratios: Annotated[
        str, typer.Option(help="Shares of the tokens masked: of the positive, of the negative.")
    ] = "0.2,0.4",
    tokenizer: Annotated[str | None, typer.Option(help="Model whose tokens are counted; words by default.")] = None,
    mode: Annotated[
        Literal["delete", "mask"], typer.Option(help="Delete the span, or put a mask token for each of its tokens.")
    ] = "delete",
    per_text: Annotated[int, typer.Option(min=1, help="Triplets of each text, with spans of their own.")] = 1,
    engine: EngineName = "local",
    workers: Processes = None,
    columns: Columns = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Make anchor, positive and negative of each text by masking nested spans of 20 % and 40 %."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.store import Run
        from stscurate.tables import texts_source
        from stscurate.triplets import make_triplets

        small, large = numbers("--ratios", ratios, "0.2,0.4")
        source = texts_source(texts, columns=columns)
        with Run.open(out, replace=yes) as run:
            entry = make_triplets(
                run,
                source,
                tokenizer=tokenizer,
                ratios=(small, large),
                mode=mode,
                per_text=per_text,
                engine=engine_of(engine, workers),
                seed=seed,
                progress=console.progress,
            )
            console.stage(entry)
