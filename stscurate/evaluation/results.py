"""What an evaluation found, as data and as a table for people."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """One model on one gold set: correlations within -1 and 1, shares within 0 and 1.

    None means that it doesn't apply; nan that it has no value, since all cosines are the same.
    """

    model: str
    set: str
    rows: int
    dropped: dict[str, int]
    spearman: float
    low: float  # of the 95 % bootstrap interval
    high: float
    average_precision: float | None  # where gold is 0 and 1 only
    tokens_cut_share: float  # of the tokens of the set's texts, those that the model didn't see
    rows_clean: int | None  # pairs of which neither text was trained on, where the training texts are known
    spearman_clean: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which has no nan: null stands for it."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }


def table_rows(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Results, each as `Result.as_dict` gives it, under headings for people; None where there is no number."""
    return [
        {
            "model": row["model"],
            "set": row["set"],
            "pairs": row["rows"],
            "Spearman": row["spearman"],
            "95 % interval": None if row["low"] is None else f"{row['low']:.4f} to {row['high']:.4f}",
            "average precision": row["average_precision"],
            "leak-clean pairs": row["rows_clean"],
            "leak-clean Spearman": row["spearman_clean"],
            "tokens cut": f"{row['tokens_cut_share']:.1%}",
        }
        for row in found
    ]


def as_markdown(results: Sequence[Result]) -> str:
    """A Markdown table, a result a row; the leak-clean columns count only pairs without a training text."""
    rows = table_rows([result.as_dict() for result in results])
    lines = [list(rows[0]), ["---", "---", *["---:"] * (len(rows[0]) - 2)]] if rows else []
    lines += [[_cell(value) for value in row.values()] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else _escaped(value)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
