"""How well a model's similarities agree with gold that it hasn't seen."""

from stscurate.evaluation.evaluating import evaluate, evaluate_all, evaluate_into
from stscurate.evaluation.gold import GoldSet
from stscurate.evaluation.models import Opening
from stscurate.evaluation.results import Comparison, Evaluation, Mean, Numbers, Result
from stscurate.evaluation.sets import gold_set, gold_sets
from stscurate.evaluation.variants import Variants
from stscurate.evaluation.wanted import Wanted
from stscurate.evaluation.writing import as_markdown, tables

__all__ = [
    "Comparison",
    "Evaluation",
    "GoldSet",
    "Mean",
    "Numbers",
    "Opening",
    "Result",
    "Variants",
    "Wanted",
    "as_markdown",
    "evaluate",
    "evaluate_all",
    "evaluate_into",
    "gold_set",
    "gold_sets",
    "tables",
]
