"""Votes -> scores: several annotators' numbers on one scale of 0 to 1, and how far they agree."""

from stscurate.ensemble.aggregation import METHODS, aggregate
from stscurate.ensemble.stage import score_votes

__all__ = ["METHODS", "aggregate", "score_votes"]
