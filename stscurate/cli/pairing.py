"""The options that say how issues become pairs, each named, explained and typed once."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

Negatives = Annotated[float, typer.Option(help="Negative pairs per positive pair.", min=0)]
LexicalShare = Annotated[
    float,
    typer.Option(
        help="Share of the negatives that are neighbours by BM25; what no share takes is random.", min=0, max=1
    ),
]
EncoderShare = Annotated[
    float, typer.Option(help="Share of the negatives that are neighbours by the encoder, 0 to 1.", min=0, max=1)
]
EncoderModel = Annotated[
    str | None,
    typer.Option("--encoder", help="With --encoder-share: embedding model; all-MiniLM-L6-v2 by default."),
]
Ceiling = Annotated[
    float | None,
    typer.Option(
        help="With --encoder-share: no negative's cosine, or similarity by --calibration, is as high; cosine 0.8 by "
        "default."
    ),
]
Similarity = Annotated[
    Literal["auto", "cosine"] | None,
    typer.Option(
        help="With --encoder-share, which neighbours are nearest: auto (the default), by s-norm, fitted to the "
        "repository's own issues, from 400 on; or by the bare cosine."
    ),
]
Shares = Annotated[str, typer.Option(help="Shares of train, validation and test.")]
SplitBy = Annotated[
    Literal["component", "time", "repository"],
    typer.Option(help="Deal components by chance, by time (the newest test), or with their whole repositories."),
]
NearDuplicates = Annotated[
    float,
    typer.Option(help="Texts this similar (Jaccard of five-word sequences) stand in one split.", min=0.5, max=1),
]
AllPairs = Annotated[
    bool, typer.Option("--all-pairs", help="Pair every two issues that links join, not only with the original.")
]
MinChars = Annotated[int, typer.Option(help="Issues with less text are left out.", min=1)]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        help="Model whose tokens are counted, or words; all-MiniLM-L6-v2 by default where its package is installed, "
        "else words."
    ),
]


def mining(
    encoder_share: float,
    encoder: str | None,
    ceiling: float | None,
    similarity: str | None,
    calibration: Path | None,
    accept: str | None,
) -> dict[str, Any]:
    """The encoder's options that were given; InputError where it has nothing to do."""
    from stscurate.errors import InputError
    from stscurate.methods.calibration.saved import Calibration

    given: dict[str, Any] = {
        "encoder": encoder,
        "ceiling": ceiling,
        "similarity": similarity,
        "calibration": calibration,
    }
    given |= {"accept": accept}
    given = {name: value for name, value in given.items() if value is not None}
    if given and not encoder_share:
        raise InputError(
            f"--{next(iter(given))} is for neighbours by an encoder: give their share with --encoder-share."
        )
    if calibration:
        given["calibration"] = Calibration.load(calibration)
    return {"encoder_share": encoder_share, "accept_corpus": given.pop("accept", None) == "corpus", **given}
