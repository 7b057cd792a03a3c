"""What is trained on: the rows of a run or a file, as the columns that a loss reads, and the rows left out."""

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from stscurate.errors import InputError
from stscurate.records import Tally

Labels = Literal["auto", "gold", "pseudo"]


@dataclass(frozen=True)
class TrainingRows:
    """Columns of equal length, texts first and in the loss's order; where they came from; what was left out.

    `columns` of pairs: sentence1, sentence2, and `label`, a list [score 0..1, weight] a row.
    """

    columns: dict[str, list[Any]]
    inputs: dict[str, str]
    settings: dict[str, Any]
    tally: Tally

    def __len__(self) -> int:
        """Rows."""
        return len(next(iter(self.columns.values())))

    @property
    def texts(self) -> list[str]:
        """Every text that is trained on, sorted, each once."""
        return sorted({text for column in self.columns.values() for text in column if isinstance(text, str)})


def pair_rows(
    pairs: pa.Table,
    *,
    inputs: dict[str, str],
    labels: Labels = "auto",
    scores: pa.Table | None = None,
    agreement_weights: bool = False,
) -> TrainingRows:
    """The training pairs (split `train` or none) with their scores.

    labels: "gold" takes a pair's own score, or its label as 0 or 1; "pseudo" the score of `scores` (schema
    SCORES); "auto" gold where a pair has it and the pseudo-label elsewhere. agreement_weights: the weight of a pair
    with a pseudo-label is its own times the `agreement` of its annotators (1 where one was alone); that of gold is its
    own. Pairs without a score, or of weight 0, are dropped and counted.
    InputError where nothing is left, or where all scores are the same: nothing could be learnt from them.
    """
    if labels not in ("auto", "gold", "pseudo"):
        raise InputError(f"--labels {labels}: give auto, gold or pseudo.")
    if labels == "pseudo" and scores is None:
        raise InputError("There are no pseudo-labels: run `stscurate annotate` on these pairs first, or use gold.")
    pseudo, agreed = _pseudo(scores)
    tally = Tally()
    columns: dict[str, list[Any]] = {"sentence1": [], "sentence2": [], "label": []}
    for row in pairs.to_pylist():
        tally.rows_in += 1
        gold = row["score"] if row["score"] is not None else row["label"]
        from_gold = labels == "gold" or (labels == "auto" and gold is not None)
        score = gold if from_gold else pseudo.get(row["pair_id"])
        weight = row["weight"]
        if agreement_weights and not from_gold:
            weight *= agreed.get(row["pair_id"], 1.0)
        if row["split"] not in (None, "train"):
            tally.drop(f"split_{row['split']}")
        elif score is None:
            tally.drop("no_score")
        elif weight == 0:
            tally.drop("weight_0")
        else:
            columns["sentence1"].append(row["text1"])
            columns["sentence2"].append(row["text2"])
            columns["label"].append([float(score), float(weight)])
    different = {label[0] for label in columns["label"]}
    if not different:
        raise InputError(
            f"No pair to train on: of {tally.rows_in} pairs, "
            + ", ".join(f"{n} {why}" for why, n in tally.dropped.items())
        )
    if len(different) == 1:
        raise InputError(
            f"All {len(columns['label'])} training pairs have the score {different.pop():g}: "
            "a ranking can't be learnt from one value. Add pairs of other scores."
        )
    settings: dict[str, Any] = {"labels": labels}
    return TrainingRows(columns, inputs, settings | ({"agreement_weights": True} if agreement_weights else {}), tally)


def _pseudo(scores: pa.Table | None) -> tuple[dict[str, float], dict[str, float]]:
    """Of each pair with a pseudo-label that, and how far its annotators agree; 1 of one that was alone."""
    if scores is None:
        return {}, {}
    keys = scores["pair_id"].to_pylist()
    agreement = [1.0 if value is None else value for value in scores["agreement"].to_pylist()]
    return dict(zip(keys, scores["score"].to_pylist(), strict=True)), dict(zip(keys, agreement, strict=True))


def triplet_rows(triplets: pa.Table, *, inputs: dict[str, str], tally: Tally | None = None) -> TrainingRows:
    """Anchor, positive and negative of each triplet (schema TRIPLETS). InputError where there is none."""
    if not triplets.num_rows:
        raise InputError("No triplet to train on: every text was too short. Give longer texts.")
    columns = {name: triplets[name].to_pylist() for name in ("anchor", "positive", "negative")}
    return TrainingRows(columns, inputs, {}, tally or Tally(rows_in=triplets.num_rows))
