"""What a mined negative has to be."""

from dataclasses import dataclass
from typing import Any, Literal

from stscurate.errors import InputError


@dataclass(frozen=True)
class Rules:
    """Which negatives are taken.

    number: of each anchor. margin: a negative's similarity is at most p - |p| margin, p that of the anchor's least
    similar positive; None for any. ranks: the nearest and the farthest of the allowed ones, from 1. draw: the nearest
    of these, or by chance. near: Jaccard of near duplicates, which are never negatives. positive_score: from which on
    a pair is positive. both_sides: whether first texts are candidates too.
    """

    number: int = 3
    margin: float | None = 0.05
    ranks: tuple[int, int] = (1, 50)
    draw: Literal["top", "random"] = "top"
    near: float = 0.8
    positive_score: float = 0.8
    both_sides: bool = False

    def __post_init__(self) -> None:
        """Refuse what no negative can be taken by."""
        if self.number < 1:
            raise InputError(f"{self.number} negatives are none: give 1 or more.")
        if not 1 <= self.ranks[0] <= self.ranks[1] - self.number + 1:
            raise InputError(
                f"Ranks {self.ranks[0]} to {self.ranks[1]} hold no {self.number} negatives: give a wider range, from 1."
            )
        if self.margin is not None and self.margin < 0:
            raise InputError(f"A margin of {self.margin:g} would take negatives above the positive: give 0 or more.")

    @property
    def settings(self) -> dict[str, Any]:
        """As a stage's settings."""
        return {**vars(self), "ranks": list(self.ranks)}
