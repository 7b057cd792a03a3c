"""How well a model's cosines agree with gold that it hasn't seen."""

from stscurate.evaluation.gold import GoldSet, gold_set
from stscurate.evaluation.report import evaluate_into, table_rows
from stscurate.evaluation.results import Result, as_markdown
from stscurate.evaluation.sts import evaluate

__all__ = ["GoldSet", "Result", "as_markdown", "evaluate", "evaluate_into", "gold_set", "table_rows"]
