"""The options that many commands share, each named, explained and typed once."""

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[Path, typer.Option("--out", help="Run folder; made if it isn't there, gone on with if it is.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.", min=0)]
Yes = Annotated[bool, typer.Option("--yes", help="Answer yes: pay for asks, make anew what was made otherwise.")]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="The file's columns, in order (sentence1,sentence2,score; also for a file without a header line) "
        "or by role (text1=question1,text2=question2).",
    ),
]
Scale = Annotated[str | None, typer.Option("--scale", help="Range of the file's scores, as in 0-5; 0-1 by default.")]
