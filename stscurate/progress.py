"""How a stage tells how far it is, without printing: the command line passes something that draws."""

from typing import Protocol


class Progress(Protocol):
    """Called as `progress("votes", done, total)`; `total` is None where it isn't known.

    What stands behind a semicolon in the label ("votes; 12.3/s, $0.04") are particulars, to be drawn behind the counts.
    """

    def __call__(self, label: str, done: int, total: int | None) -> None:
        """Report that `done` of `total` items of the work named `label` are finished."""


def silent(label: str, done: int, total: int | None) -> None:
    """Report nothing: the default of every stage."""
