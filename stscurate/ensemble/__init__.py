"""Votes -> scores: several annotators' numbers on one scale of 0 to 1, and how far they agree."""

from stscurate.ensemble.aggregation import METHODS, aggregate
from stscurate.ensemble.agreement import Agreement, agreement
from stscurate.ensemble.review import doubts, gold_sample, labels_needed, most_doubtful
from stscurate.ensemble.stage import agreement_of, score_votes
from stscurate.ensemble.tasks import check_tasks_folder, write_tasks

__all__ = [
    "METHODS",
    "Agreement",
    "aggregate",
    "agreement",
    "agreement_of",
    "check_tasks_folder",
    "doubts",
    "gold_sample",
    "labels_needed",
    "most_doubtful",
    "score_votes",
    "write_tasks",
]
