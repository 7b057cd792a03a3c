"""Gates that read each text by itself: empty, secret, personal, size."""

from collections.abc import Iterator

from stscurate.methods.personal import find_personal
from stscurate.methods.secrets import find_secrets
from stscurate.publishing.findings import MASKED, Findings, Place
from stscurate.publishing.parts import Parts

_LONGEST = 1_000_000  # characters


def scan(pairs: Parts, triplets: Parts | None) -> dict[str, Findings]:
    """What the gates empty, secret, personal and size find in texts."""
    found = {gate: Findings() for gate in ("empty", "secret", "personal", "size")}
    for place, text in texts_of(pairs, triplets):
        if not text.strip():
            found["empty"].add(str(place))
        for secret in find_secrets(text):
            found["secret"].add(f"{secret.kind} at character {secret.start} of {place}")
        if place.column in MASKED:
            continue
        for kind in find_personal(text):
            found["personal"].add(f"{kind} in {place}")
        if len(text) > _LONGEST:
            found["size"].add(f"{len(text):,} characters in {place}")
    return found


def texts_of(pairs: Parts, triplets: Parts | None) -> Iterator[tuple[Place, str]]:
    """Each text and where it stands; triplets are training rows."""
    for batch in pairs.batches(["row", "pair_id", "split", "text1", "text2"]):
        for row in batch.to_pylist():
            for column in ("text1", "text2"):
                yield Place("pairs", row["row"], row["pair_id"], column, row["split"]), row[column]
    number = 0
    columns = ("anchor", *MASKED)
    for batch in triplets.batches(["text_id", *columns]) if triplets else ():
        for row in batch.to_pylist():
            for column in columns:
                yield Place("triplets", number, row["text_id"], column, "train"), row[column]
            number += 1
