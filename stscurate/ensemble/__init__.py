"""Votes -> scores: several annotators' numbers on one scale of 0 to 1, and how far they agree."""

from stscurate.ensemble.aggregation import METHODS, aggregate
from stscurate.ensemble.agreement import Agreement, agreement
from stscurate.ensemble.stage import score_votes

__all__ = ["METHODS", "Agreement", "aggregate", "agreement", "score_votes"]
