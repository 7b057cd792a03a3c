"""Votes of people, from a file of theirs: an annotator beside the models, or one for each rater in it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stscurate.annotators.base import Pair, Plan, Row, vote_row
from stscurate.errors import InputError
from stscurate.progress import Progress
from stscurate.ratings import read_ratings
from stscurate.services.answers import Answers


class FileAnnotator:
    """The ratings in a file, see `ratings.read_ratings`; raters' votes stand under "NAME:RATER".

    A pair has a vote of each rater who rated it, or several, numbered as samples; order "both". A pair that nobody
    rated has none. InputError where the file rates none of the pairs.
    """

    def __init__(self, name: str, path: Path, *, scale: str | None = None):
        self.name = name
        self.prompts: dict[str, dict[str, Any]] = {}
        self.per_pair = 0
        self._ratings = read_ratings(path, scale=scale)
        self.inputs = {f"votes:{name}": self._ratings.fingerprint}
        self.settings: dict[str, Any] = {
            "name": name,
            "file": self._ratings.name,
            "scoring": "rating",
            "scale": self._ratings.scale,
        }

    def plan(self, pairs: Sequence[Pair], answers: Answers) -> Plan:
        """Nothing is to be asked; known are the ratings that belong to the pairs."""
        found, _ = self._ratings.matched(pairs)
        return Plan(self.name, "ratings", 0, sum(map(len, found.values())))

    def vote(self, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
        """The ratings of each pair, in the file's order."""
        found, _ = self._ratings.matched(pairs)
        if not found and len(pairs):
            raise InputError(
                f"{self._ratings.name}: none of its {len(self._ratings.rows)} ratings is of a pair of the run: "
                "name pairs by the run's pair_id, or by both texts as they stand there."
            )
        for pair in pairs:
            seen: dict[str, int] = {}
            rows: list[Row] = []
            for rating in found.get(pair.pair_id, ()):
                name = f"{self.name}:{rating.rater}" if rating.rater else self.name
                sample = seen[name] = seen.get(name, -1) + 1
                values: dict[str, Any] = {
                    "order": "both",
                    "sample": sample,
                    "scale": self._ratings.scale,
                    "raw": rating.value,
                    "cut": 0,
                }
                rows.append(vote_row(pair, name, "rating", "", **values))
            yield rows

    def left_out(self, pairs: Sequence[Pair]) -> dict[str, int]:
        """What the file holds beyond votes, and what it lacks: ratings of other pairs, empty cells, unrated pairs."""
        found, unmatched = self._ratings.matched(pairs)
        unrated = sum(pair.pair_id not in found for pair in pairs)
        counts = {"ratings_of_no_pair": unmatched, "empty_cells": self._ratings.empty, "unrated_pairs": unrated}
        return {what: count for what, count in counts.items() if count}
