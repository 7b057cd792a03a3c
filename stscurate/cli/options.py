"""The options that many commands share, each named, explained and typed once."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from stscurate.services.engine import Engine

RunFolder = Annotated[Path, typer.Option("--out", help="Run folder; made if it isn't there, gone on with if it is.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.", min=0, max=2**32 - 1)]
Yes = Annotated[bool, typer.Option("--yes", help="Answer yes: pay for asks, make anew what was made otherwise.")]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="The file's columns, in order (sentence1,sentence2,score; also for a file without a header line) "
        "or by role (text1=question1,text2=question2).",
    ),
]
Counter = Annotated[
    str | None,
    typer.Option("--tokenizer", help="Model whose tokenizer counts the tokens of a --model behind an API; no default."),
]
CalibrationFolder = Annotated[
    Path | None,
    typer.Option("--calibration", help="Folder of `audit calibrate`, which corrects the cosines; none by default."),
]
AcceptCorpus = Annotated[
    Literal["corpus"] | None,
    typer.Option("--accept", help="corpus: use a calibration that was fitted to other texts than these."),
]
Scale = Annotated[str | None, typer.Option("--scale", help="Range of the file's scores, as in 0-5; 0-1 by default.")]

SourceFormat = Annotated[
    Literal["auto", "dump", "gharchive"],
    typer.Option("--format", help="What --from holds: dumps of issues, or hours of GH Archive; told by content."),
]
Workers = Annotated[int | None, typer.Option(help="With GH Archive: files read at once; one a core by default.", min=1)]
Hydrate = Annotated[
    bool,
    typer.Option("--hydrate", help="With GH Archive: ask GitHub for the issues found, and keep what is still there."),
]


EngineName = Annotated[
    Literal["local", "ray"],
    typer.Option("--engine", help="Where batches are worked on: processes of this machine, or Ray (RAY_ADDRESS)."),
]
Processes = Annotated[
    int | None,
    typer.Option("--workers", help="Processes of the engine; 1 by default, or one a processor of Ray's.", min=1),
]


def engine_of(name: Literal["local", "ray"], workers: int | None) -> "Engine | None":
    """The engine of these two options; None for this very process."""
    from stscurate.services.engine import Engine

    return Engine(name, workers) if name == "ray" or (workers or 1) > 1 else None


def check_place(out: Path | None, given: Sequence[Path | str], *, yes: bool) -> None:
    """InputError where the Parquet file `out` can't be written: a folder, another kind of file, one of those given.

    OSError where its folder can't be made, or there is no right to write into it.
    """
    from stscurate.errors import InputError

    if not out:
        return
    if out.is_dir():
        raise InputError(f"--out {out} is a folder, and takes a file: name one in it, as in {out / 'rows.parquet'}.")
    if out.exists() and any(out.samefile(path) for path in given if Path(path).exists()):
        raise InputError(f"--out {out} is the file that is read, and would be lost: name another.")
    if out.suffix in (".csv", ".tsv", ".json", ".jsonl", ".txt"):
        raise InputError(f"--out {out}: what is written is Parquet. Name it {out.with_suffix('.parquet').name}.")
    if out.exists() and not yes:
        raise InputError(f"{out} is there already: name another --out, or add --yes to write it anew.")
    place = next(folder for folder in out.absolute().parents if folder.exists())
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))


def only_with(context: typer.Context, needed: str, there: object, *options: str) -> None:
    """InputError where one of the options is given, which mean nothing unless what is `needed` is there."""
    from stscurate.errors import InputError

    for option in options:
        source = context.get_parameter_source(option.lstrip("-").replace("-", "_"))
        if not there and source and source.name == "COMMANDLINE":
            raise InputError(
                f"{option} says something of {needed} alone, which isn't given: add it, or leave {option}."
            )


def numbers(option: str, text: str, example: str) -> tuple[float, ...]:
    """As many numbers with commas between them as the example has; InputError otherwise."""
    from stscurate.errors import InputError

    wanted = len(example.split(","))
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if len(found) != wanted:
        raise InputError(f"{option} {text}: give {wanted} numbers, as in {example}.")
    return found


def pair_of(option: str, text: str) -> tuple[str, str]:
    """The two sides of NAME=VALUE; InputError where there aren't two."""
    from stscurate.errors import InputError

    name, _, value = text.partition("=")
    if not name or not value:
        raise InputError(f"{option} {text}: give it as NAME=VALUE.")
    return name, value
