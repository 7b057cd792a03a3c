"""Gates that read each text once: empty, secret, personal, size, and the same text in two splits."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from stscurate.methods.leaks import text_digest
from stscurate.methods.personal import find_personal
from stscurate.methods.secrets import find_secrets

_LONGEST = 1_000_000  # characters
_ROWS_AT_ONCE = 1_000
MASKED = ("positive", "negative")  # copies of their anchor


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


def scan(pairs: pa.Table, triplets: pa.Table | None) -> dict[str, list[str]]:
    """What the gates empty, secret, personal, size and leak find in texts."""
    found: dict[str, list[str]] = {gate: [] for gate in ("empty", "secret", "personal", "size", "leak")}
    texts_in: dict[str, Place] = {}
    for place, text in texts_of(pairs, triplets):
        if not text.strip():
            found["empty"].append(str(place))
        found["secret"] += [f"{secret.kind} at character {secret.start} of {place}" for secret in find_secrets(text)]
        if place.column in MASKED:
            continue
        found["personal"] += [f"{kind} in {place}" for kind in find_personal(text)]
        if len(text) > _LONGEST:
            found["size"].append(f"{len(text):,} characters in {place}")
        first = texts_in.setdefault(text_digest(text), place)  # digests: the texts needn't stay in memory
        if first.split != place.split and text.strip():
            found["leak"].append(f"the same text in {first} and {place}")
    return found


def texts_of(pairs: pa.Table, triplets: pa.Table | None) -> Iterator[tuple[Place, str]]:
    """Each text and where it stands; triplets are training rows."""
    for batch in pairs.select(["row", "pair_id", "split", "text1", "text2"]).to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            for column in ("text1", "text2"):
                yield Place("pairs", row["row"], row["pair_id"], column, row["split"]), row[column]
    if triplets is None:
        return
    columns = ("anchor", *MASKED)
    number = 0
    for batch in triplets.select(["text_id", *columns]).to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            for column in columns:
                yield Place("triplets", number, row["text_id"], column, "train"), row[column]
            number += 1
