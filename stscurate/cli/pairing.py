"""The options that say how issues become pairs, each named, explained and typed once."""

from typing import Annotated, Literal

import typer

Negatives = Annotated[float, typer.Option(help="Negative pairs per positive pair.", min=0)]
LexicalShare = Annotated[
    float,
    typer.Option(help="Share of the negatives that are neighbours by BM25; the others are random.", min=0, max=1),
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
