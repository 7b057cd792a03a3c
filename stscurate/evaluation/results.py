"""What an evaluation found, as data and as a table for people."""

import math
from collections.abc import Sequence
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


def as_markdown(results: Sequence[Result]) -> str:
    """A Markdown table, a result a row; the leak-clean columns count only pairs without a training text."""
    head = ["model", "set", "pairs", "Spearman", "95 % interval", "average precision"]
    head += ["leak-clean pairs", "leak-clean Spearman", "tokens cut"]
    lines = [head, ["---", "---", *["---:"] * (len(head) - 2)]]
    for found in results:
        interval = "-" if math.isnan(found.low) else f"{found.low:.4f} to {found.high:.4f}"
        line = [found.model.replace("|", "\\|"), found.set.replace("|", "\\|"), f"{found.rows:,}"]
        line += [_number(found.spearman), interval, _number(found.average_precision)]
        line += ["-" if found.rows_clean is None else f"{found.rows_clean:,}", _number(found.spearman_clean)]
        lines.append([*line, f"{found.tokens_cut_share:.1%}"])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"
