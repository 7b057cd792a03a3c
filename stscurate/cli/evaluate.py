"""The command that tests models: evaluate."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from stscurate.cli.console import draw_evaluation, draw_results, session
from stscurate.cli.options import AcceptCorpus, CalibrationFolder, Columns, Json, Quiet, Scale, Seed, Yes, pair_of


def add_to(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command("evaluate")(evaluate)


def evaluate(
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SET",
            help="File of pairs with gold, run (its test split), or a benchmark: its NAME for the Hub, NAME=PATH for "
            "this disk, NAME:SPLIT and NAME/SUBSET for a part; papers is the seven STS sets; repeatable.",
        ),
    ] = None,
    retrieve: Annotated[
        list[Path] | None,
        typer.Option(
            "--retrieve",
            metavar="FILE",
            help="File of texts, each with a group: are they found by each other? Repeatable.",
        ),
    ] = None,
    probe: Annotated[
        list[Path] | None,
        typer.Option(
            "--probe",
            metavar="FILE",
            help="File of texts with a label: what a logistic regression on the vectors tells, in 10 folds or by the "
            "file's splits; repeatable.",
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL...",
            help="Folders, packaged or Hub names (plain transformers encoders too), static:FILE of word vectors, "
            "reranker:NAME, or an embeddings API: openai:MODEL, jina:MODEL, http://HOST:PORT/v1#MODEL.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for results.json, .md, .parquet, and density.png.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="NAME=A,B,C",
            help="NAME=A,B,C: models of several seeds, told one by one and as a mean; repeatable.",
        ),
    ] = None,
    paired: Annotated[
        bool, typer.Option("--paired", help="Compare each model with the first on the same rows (paired bootstrap).")
    ] = False,
    subsets: Annotated[bool, typer.Option("--subsets", help="Also each subset of a benchmark by itself.")] = False,
    bands: Annotated[bool, typer.Option("--bands", help="Also by the texts' length and by shared words.")] = False,
    density: Annotated[
        bool, typer.Option("--density", help="Spread of cosines by band of gold; with --out a figure too.")
    ] = False,
    dev: Annotated[
        str | None,
        typer.Option("--dev", help="Binary set, named as --set, whose best thresholds are held to the binary sets."),
    ] = None,
    train: Annotated[
        list[Path] | None,
        typer.Option(
            "--train",
            metavar="FILE",
            help="File of what the models were trained on, for leak-clean numbers; repeatable.",
        ),
    ] = None,
    whiten: Annotated[
        bool,
        typer.Option("--whiten", help="Each model also whitened, by the texts of --train, or else by each set's own."),
    ] = False,
    dimensions: Annotated[
        str | None,
        typer.Option(help="Each model also with the first so many numbers of its vectors, as in 64,128; none besides."),
    ] = None,
    pooling: Annotated[
        Literal["mean", "cls", "last"] | None,
        typer.Option(help="Of plain transformers encoders' token vectors; mean by default."),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Where models on this machine cut a text; as they say by default.", min=8)
    ] = None,
    api_task: Annotated[str | None, typer.Option(help="An API's parameter task; none by default.")] = None,
    late_chunking: Annotated[
        bool,
        typer.Option(
            "--late-chunking", help="An API's: a text is sent as its sentences, embedded together, and is their mean."
        ),
    ] = False,
    tokenizer: Annotated[
        str | None, typer.Option(help="Model whose tokenizer counts the tokens of an API's texts; no default.")
    ] = None,
    calibration: CalibrationFolder = None,
    accept: AcceptCorpus = None,
    columns: Columns = None,
    scale: Scale = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples of the 95 % interval.", min=100)] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Hold a model's cosines to gold: Spearman with its 95 % bootstrap interval, leak-clean, and what it rests on."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.errors import InputError
        from stscurate.evaluation import Opening, Variants, Wanted, evaluate_all, evaluate_into, gold_set, gold_sets
        from stscurate.evaluation.sets import is_own_file
        from stscurate.evaluation.tasks import Probe, Retrieval, read_groups, read_labels
        from stscurate.evaluation.variants import parse_dimensions
        from stscurate.methods.calibration.saved import Calibration

        names = list(models or [])
        groups: dict[str, list[int]] = {}
        for given in group or []:
            name, members = pair_of("--group", given)
            parts = [part for part in members.split(",") if part]
            if name in groups:
                raise InputError(f"--group {name} is given twice: give each group a name of its own.")
            names += [part for part in dict.fromkeys(parts) if part not in names]
            groups[name] = [names.index(part) for part in parts]
        wanted = Wanted(
            resamples=resamples,
            seed=seed,
            subsets=subsets,
            bands=bands,
            paired=paired,
            density=density,
            groups=groups,
            dev=gold_set(dev, columns=columns, scale=scale) if dev is not None else None,
            train_texts=_train_texts(train, columns) if train else None,
            calibration=Calibration.load(calibration) if calibration else None,
            accept_corpus=accept == "corpus",
            opening=Opening(pooling, api_task, late_chunking, tokenizer, max_tokens),
            variants=Variants(whiten, parse_dimensions(dimensions)),
            tasks=[
                *(Retrieval(read_groups(path, columns=columns)) for path in retrieve or []),
                *(Probe(read_labels(path, columns=columns)) for path in probe or []),
            ],
        )
        gold = gold_sets(sets or [], columns=columns, scale=scale)
        own = any(map(is_own_file, [*(sets or []), *([dev] if dev else [])]))
        if scale and not own:
            raise InputError("--scale is of your own files of scores, and no --set and no --dev is one.")
        if columns and not (own or train or retrieve or probe):
            raise InputError("--columns is of your own files, and none is named: runs and benchmarks have their own.")
        if accept and not calibration:
            raise InputError("--accept is of a --calibration, and none is named.")
        if out:
            entry = evaluate_into(out, names, gold, wanted, replace=yes, progress=console.progress)
            console.stage(entry)
            draw_results(console, out)
            return
        found = evaluate_all(names, gold, wanted, progress=console.progress)
        draw_evaluation(console, found.as_dict())


def _train_texts(files: list[Path], columns: str | None) -> list[str]:
    """All texts of the files of --train; --columns are the sets', and only of a file that hasn't the usual names."""
    from stscurate.errors import InputError
    from stscurate.tables import text_rows

    found: list[str] = []
    for path in files:
        try:
            rows = text_rows(path, gold=False)
        except InputError:
            if not columns:
                raise
            rows = text_rows(path, columns=columns, gold=False)
        found += [text for row in rows for text in row.texts.values()]
    return found
