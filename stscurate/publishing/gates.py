"""What must hold before a row is published. A gate that finds something refuses, naming rows and the mend.

Scores out of 0..1 or not a number, labels other than 0 and 1 and ids that stand twice never come as far as these
gates: writing a run's tables refuses them, and reading refuses tables that were changed since.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from stscurate.errors import InputError
from stscurate.methods.leaks import text_digest
from stscurate.methods.secrets import find_secrets

GATES = ("empty", "secret", "leak")
_MENDS = {
    "empty": "Drop or fill these rows",
    "secret": "Remove it from the text (and have it revoked: it was public)",
    "leak": "Split by component, or drop the rows of one side",
}
_SHOWN = 3
_ROWS_AT_ONCE = 1_000


@dataclass(frozen=True)
class Place:
    """Where a text stands: "pairs row 7 (a~b), text1, in train"."""

    table: str
    row: int
    key: str
    column: str
    split: str

    def __str__(self) -> str:
        """As a message names it."""
        return f"{self.table} row {self.row} ({self.key}), {self.column}, in {self.split}"


def check_gates(pairs: pa.Table, triplets: pa.Table | None, *, accept: Sequence[str]) -> dict[str, int]:
    """Hold what is to be published to every gate; give the accepted gates that found something, with how much.

    pairs: of `layouts.scored_pairs`; triplets count as training rows. InputError for the first gate that found
    something and isn't accepted, and for the name of a gate that doesn't exist.
    """
    unknown = sorted(set(accept) - set(GATES))
    if unknown:
        raise InputError(f"There is no gate {', '.join(unknown)}: --accept takes {', '.join(GATES)}.")
    findings: dict[str, list[str]] = {gate: [] for gate in GATES}
    texts_in: dict[str, Place] = {}
    for place, text in _texts(pairs, triplets):
        if not text.strip():
            findings["empty"].append(str(place))
        findings["secret"] += [f"{secret.kind} at character {secret.start} of {place}" for secret in find_secrets(text)]
        if place.column not in ("positive", "negative"):  # masked copies of their anchor
            first = texts_in.setdefault(text_digest(text), place)  # digests: the texts needn't stay in memory
            if first.split != place.split and text.strip():
                findings["leak"].append(f"the same text in {first} and {place}")
    findings["leak"] += _component_leaks(pairs)
    for gate in GATES:
        if findings[gate] and gate not in accept:
            raise InputError(_refusal(gate, findings[gate]))
    return {gate: len(findings[gate]) for gate in GATES if findings[gate]}


def _refusal(gate: str, found: list[str]) -> str:
    what = {"empty": "Empty text", "secret": "What looks like a secret", "leak": "Splits leak"}[gate]
    more = f"; and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    return f"{what}: {'; '.join(found[:_SHOWN])}{more}. {_MENDS[gate]}; --accept {gate} publishes as it is and says so."


def _texts(pairs: pa.Table, triplets: pa.Table | None) -> Iterator[tuple[Place, str]]:
    for batch in pairs.select(["row", "pair_id", "split", "text1", "text2"]).to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            for column in ("text1", "text2"):
                yield Place("pairs", row["row"], row["pair_id"], column, row["split"]), row[column]
    if triplets is None:
        return
    columns = ("anchor", "positive", "negative")
    number = 0
    for batch in triplets.select(["text_id", *columns]).to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            for column in columns:
                yield Place("triplets", number, row["text_id"], column, "train"), row[column]
            number += 1


def _component_leaks(pairs: pa.Table) -> Iterator[str]:
    first: dict[str, tuple[int, str]] = {}
    rows = (pairs[name].to_pylist() for name in ("component", "row", "split"))
    for component, row, split in zip(*rows, strict=True):
        if component is not None:
            seen_row, seen_split = first.setdefault(component, (row, split))
            if split != seen_split:
                yield f"component {component} in pairs row {seen_row} ({seen_split}) and row {row} ({split})"
