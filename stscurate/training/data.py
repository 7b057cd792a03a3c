"""What is trained on: the rows of a run or a file, as the columns that a loss reads, and the rows left out."""

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from stscurate.errors import InputError
from stscurate.records import Tally
from stscurate.tables import text_id
from stscurate.wording import counted

Labels = Literal["auto", "gold", "pseudo"]


@dataclass(frozen=True)
class TrainingRows:
    """Columns of equal length, texts first and in the loss's order; where they came from; what was left out.

    `columns` of pairs: sentence1, sentence2, and `label`, a list [score 0..1, weight] a row; of triplets: anchor,
    positive, negative; of bare texts: text. `ids` names each row, as its source does. inputs: name -> hash of what the
    rows were read from; settings: how they were read, where that shapes them; both stand in the model's manifest.
    positives: all rows are positive pairs (query and positive), which an in-batch loss learns from and a ranking can't.
    given_name: how the source is called in messages and in the curve; by its first input without it.
    """

    ids: list[str]
    columns: dict[str, list[Any]]
    inputs: dict[str, str]
    settings: dict[str, Any]
    tally: Tally
    positives: bool = False
    given_name: str = ""

    @property
    def name(self) -> str:
        """The given name, or that of the first input."""
        return self.given_name or next(iter(self.inputs), "rows")

    def __len__(self) -> int:
        """Rows."""
        return len(self.ids)

    @property
    def text_columns(self) -> list[str]:
        """The columns that hold texts, in the loss's order."""
        return [name for name in self.columns if name != "label"]

    def texts_of_rows(self) -> list[tuple[str, ...]]:
        """The texts of each row, in the columns' order."""
        columns = zip(*(self.columns[name] for name in self.text_columns), strict=True)
        return [tuple(text for text in texts if text is not None) for texts in columns]

    @property
    def texts(self) -> list[str]:
        """Every text that is trained on, sorted, each once."""
        return sorted({text for name in self.text_columns for text in self.columns[name]} - {None})


def pair_rows(
    pairs: pa.Table,
    *,
    inputs: dict[str, str],
    labels: Labels = "auto",
    scores: pa.Table | None = None,
    agreement_weights: bool = False,
    positives: bool = False,
) -> TrainingRows:
    """The training pairs (split `train` or none) with their scores.

    labels: "gold" takes a pair's own score, or its label as 0 or 1; "pseudo" the score of `scores` (schema
    SCORES); "auto" gold where a pair has it and the pseudo-label elsewhere. agreement_weights: the weight of a pair
    with a pseudo-label is its own times the `agreement` of its annotators (1 where one was alone); that of gold is its
    own. Pairs without a score, or of weight 0, are dropped and counted. positives: the pairs are known to be positives
    alone (angle_emb's format B; C before 0.6), and to be trained on as such.
    InputError where no pair is left, or where those that are left all have one score and aren't `positives`: a ranking
    can't be learnt from one value.
    """
    if labels not in ("auto", "gold", "pseudo"):
        raise InputError(f"--labels {labels}: give auto, gold or pseudo.")
    if labels == "pseudo" and scores is None:
        raise InputError("There are no pseudo-labels: run `stscurate annotate` on these pairs first, or use gold.")
    pseudo, agreed = _pseudo(scores)
    tally = Tally()
    ids: list[str] = []
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
            ids.append(row["pair_id"])
            columns["sentence1"].append(row["text1"])
            columns["sentence2"].append(row["text2"])
            columns["label"].append([float(score), float(weight)])
    different = {label[0] for label in columns["label"]}
    if not different:
        raise InputError(
            f"No pair to train on{_lost(tally, 'pair')}: give pairs with a score or a label, of the split train or of "
            "no split."
        )
    if len(different) == 1 and not positives:
        raise InputError(
            f"All training pairs ({len(columns['label']):,}) have the score {different.pop():g}: "
            "a ranking can't be learnt from one value. Add pairs of other scores."
        )
    settings: dict[str, Any] = {"labels": labels}
    settings |= {"agreement_weights": True} if agreement_weights else {}
    settings |= {"positives": True} if positives else {}
    return TrainingRows(ids, columns, inputs, settings, tally, positives)


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
        raise InputError(
            f"No triplet to train on{_lost(tally, 'triplet')}: give longer texts to mask, or pairs that "
            "`stscurate mine` finds negatives for."
        )
    columns = {name: triplets[name].to_pylist() for name in ("anchor", "positive", "negative")}
    named = "text_id" in triplets.column_names
    ids = triplets["text_id"].to_pylist() if named else [text_id(anchor) for anchor in columns["anchor"]]
    return TrainingRows(ids, columns, inputs, {}, tally or Tally(rows_in=triplets.num_rows))


def text_rows(texts: pa.Table, *, inputs: dict[str, str], tally: Tally | None = None) -> TrainingRows:
    """Bare texts (schema TEXTS), each once. InputError where there are fewer than two: nothing to tell apart."""
    if texts.num_rows < 2:
        raise InputError(f"{texts.num_rows} text to train on: contrasting needs at least two different ones.")
    ids, found = texts["text_id"].to_pylist(), texts["text"].to_pylist()
    return TrainingRows(ids, {"text": found}, inputs, {}, tally or Tally(rows_in=texts.num_rows))


def _lost(tally: Tally | None, what: str) -> str:
    """What was left out, of how many, in brackets; nothing where nothing was."""
    if not tally or not tally.dropped:
        return ""
    return f" (of {counted(tally.rows_in, what)}, {', '.join(f'{n:,} {why}' for why, n in tally.dropped.items())})"
