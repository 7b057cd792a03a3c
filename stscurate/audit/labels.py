"""Gold that may be wrong: the rows of a set of pairs that a person should look at first, and why."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.label_noise import broken_chains, conflicts, expected_gold, scaled_residual, stacked
from stscurate.methods.texts import normalise
from stscurate.wording import counted

SUSPECTS = pa.schema(
    [
        pa.field("pair_id", pa.string(), nullable=False),
        pa.field("split", pa.string()),
        pa.field("text1", pa.string(), nullable=False),
        pa.field("text2", pa.string(), nullable=False),
        pa.field("gold", pa.float64(), nullable=False),
        pa.field("expected", pa.float64()),
        pa.field("residual", pa.float64()),
        pa.field("reasons", pa.list_(pa.string()), nullable=False),
        pa.field("other", pa.string()),
    ]
)
_FEWEST = 50  # pairs with gold from which an expectation can be fitted in folds
_FOLDS = 5


@dataclass(frozen=True)
class Suspects:
    """Rows by schema SUSPECTS, the most suspect first; how many there are of each reason, and of pairs with gold.

    Reasons: "conflict", the same two texts have other gold in the row `other`; "chain", texts that other pairs tie
    together are labelled as different; "evidence", all witnesses expect other gold (`expected`, the mean of what they
    do; `residual`, by how many robust standard deviations the gold is above it).
    """

    rows: pa.Table
    counts: dict[str, int]
    pairs: int
    without_gold: int


def find_suspects(
    pairs: pa.Table,
    evidence: Mapping[str, NDArray[np.float64]],
    *,
    threshold: float = 3.0,
    gap: float = 0.2,
    seed: int = 0,
) -> Suspects:
    """The pairs (schema PAIRS) whose gold, a score or else a label, may be wrong.

    evidence: name -> a number of each pair that rises with similarity, (n,), such as cosines or an ensemble's scores;
    nan where there is none. threshold: robust standard deviations from which a residual is suspect. gap: difference
    of gold, 0..1, from which equal pairs are in conflict. InputError where no pair has gold.
    """
    gold_column = pc.coalesce(pairs["score"], pairs["label"].cast(pa.float64()))
    known = np.asarray(pc.is_valid(gold_column))
    if not known.any():
        raise InputError("No pair has gold: give pairs with a column score or label.")
    table = pairs.filter(pa.array(known))
    gold = np.asarray(gold_column.filter(pa.array(known)), dtype=np.float64)
    keys = [(normalise(a), normalise(b)) for a, b in zip(*_texts(table), strict=True)]
    other = conflicts([tuple(sorted(key)) for key in keys], gold, gap=gap)
    binary = bool(np.isin(gold, (0.0, 1.0)).all())
    chains = broken_chains(keys, gold) if binary else {}
    expected, residual = _by_evidence({name: values[known] for name, values in evidence.items()}, gold, seed)
    reasons = [
        [
            *(["conflict"] if row in other else []),
            *(["chain"] if row in chains else []),
            *(["evidence"] if abs(residual[row]) >= threshold else []),
        ]
        for row in range(len(gold))
    ]
    order = sorted(
        (row for row in range(len(gold)) if reasons[row]),
        key=lambda row: (-len(reasons[row]), -float(np.nan_to_num(abs(residual[row]))), row),
    )
    place = table.take(pa.array(order, pa.int64()))
    ids = table["pair_id"].to_pylist()
    found = pa.table(
        {
            **{name: place[name] for name in ("pair_id", "split", "text1", "text2")},
            "gold": gold[order],
            "expected": pa.array(expected[order], from_pandas=True),
            "residual": pa.array(residual[order], from_pandas=True),
            "reasons": pa.array([reasons[row] for row in order], pa.list_(pa.string())),
            "other": pa.array([ids[other[row]] if row in other else None for row in order], pa.string()),
        },
        schema=SUSPECTS,
    )
    counts = Counter(reason for row in order for reason in reasons[row])
    return Suspects(found, dict(sorted(counts.items())), len(gold), pairs.num_rows - len(gold))


def _texts(table: pa.Table) -> tuple[list[str], list[str]]:
    return table["text1"].to_pylist(), table["text2"].to_pylist()


def _by_evidence(
    evidence: Mapping[str, NDArray[np.float64]], gold: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the witnesses together let expect, and the residual of each row; nan where one has no number for it."""
    expected, residual = np.full(len(gold), np.nan), np.full(len(gold), np.nan)
    if not evidence:
        return expected, residual
    numbers = np.column_stack(list(evidence.values()))
    whole = np.isfinite(numbers).all(axis=1)
    if whole.sum() < _FEWEST:
        raise InputError(
            f"{counted(int(whole.sum()), 'pair has', 'pairs have')} both gold and evidence: {_FEWEST} at least are "
            "needed to know what to "
            "expect. Give more pairs, or leave --model away."
        )
    if gold[whole].min() == gold[whole].max():
        raise InputError(f"The gold of all pairs is {gold[0]:g}: there is nothing that could be expected otherwise.")
    known = gold[whole]
    expected[whole] = stacked(expected_gold(known, numbers[whole], folds=_FOLDS, seed=seed), known)
    residual[whole] = scaled_residual(known, expected[whole])
    return expected, residual
