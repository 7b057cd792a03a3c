"""Natural-language inference as pairs to train on: entailment is alike, contradiction isn't, neutral is left out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stscurate import cells
from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.files import RawTable, read_table
from stscurate.records import PAIRS, Tally, from_rows
from stscurate.tables import Source, pair_id

_SIDES = (("sentence1", "premise", "text1"), ("sentence2", "hypothesis", "text2"))
_LABELS = ("gold_label", "label", "labels")
_CLASSES = {"entailment": 1, "contradiction": 0, "neutral": None}
_NUMBERS = ("entailment", "neutral", "contradiction")  # as SNLI and MultiNLI are numbered; -1 where raters disagreed


def nli_source(path: Path, *, limit: int | None = None) -> Source:
    """The pairs of an SNLI-like file, by schema PAIRS, with label 1 (entailment) or 0 (contradiction).

    Columns sentence1, sentence2 (or premise, hypothesis) and gold_label or label, in words or as 0, 1, 2 in the order
    of SNLI (entailment, neutral, contradiction). limit: rows that are read, from the first on.
    Dropped: neutral; no_label (`-`, -1, empty); empty_text; repeated_pair.
    InputError for a missing column, another label (with its place), and where no pair is left.
    """
    raw = read_table(path)
    first, second = (_column(raw, path, names) for names in _SIDES)
    label = _column(raw, path, _LABELS)
    tally = Tally()
    rows: dict[str, dict[str, Any]] = {}
    for row in range(len(raw) if limit is None else min(limit, len(raw))):
        tally.rows_in += 1
        texts = [cells.text(raw, column, row) for column in (first, second)]
        name = _class(raw, label, row)
        if not all(text and text.strip() for text in texts):
            tally.drop("empty_text")
        elif name is None:
            tally.drop("no_label")
        elif _CLASSES[name] is None:
            tally.drop(name)
        elif (key := pair_id(str(texts[0]), str(texts[1]))) in rows:
            tally.drop("repeated_pair")
        else:
            known = {"pair_id": key, "text1": texts[0], "text2": texts[1], "label": _CLASSES[name], "weight": 1.0}
            rows[key] = dict.fromkeys(PAIRS.names) | known | {"origin": f"file:{raw.name}", "flags": []}
    if not rows:
        raise InputError(f"{path} has no entailment and no contradiction: nothing could be learnt from it.")
    return Source(from_rows(list(rows.values()), "pairs"), raw.name, fingerprint(path), tally)


def _column(raw: RawTable, path: Path, names: Sequence[str]) -> str:
    for name in names:
        if name in raw.columns:
            return name
    raise InputError(f"{path} needs a column {' or '.join(names)}; it has {', '.join(raw.columns)}.")


def _class(raw: RawTable, column: str, row: int) -> str | None:
    given = cells.optional(raw, column, row)
    name = "" if given is None else str(given).strip().lower().removesuffix(".0")
    if name in ("", "-", "-1"):
        return None
    if name in ("0", "1", "2"):
        return _NUMBERS[int(name)]
    if name not in _CLASSES:
        raise InputError(f"{raw.place(row)}: {given} is no label of inference; they are {', '.join(_CLASSES)}.")
    return name
