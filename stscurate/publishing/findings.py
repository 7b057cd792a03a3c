"""What gates find: sentences that name rows, of which the first are kept and all are counted."""

from dataclasses import dataclass, field

from stscurate.publishing.parts import Parts

KEPT = 1_000
MASKED = ("positive", "negative")  # copies of their anchor


@dataclass
class Findings:
    """The first 1,000 sentences, and how many there were."""

    places: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, told: str) -> None:
        """One more."""
        self.count += 1
        if len(self.places) < KEPT:
            self.places.append(told)


@dataclass(frozen=True)
class Place:
    """Where a text stands: "pairs row 7 (a~b), text1, in train"."""

    table: str
    row: int
    key: str
    column: str
    split: str
    component: str | None = None

    def __str__(self) -> str:
        """As a message names it."""
        return f"{self.table} row {self.row} ({self.key}), {self.column}, in {self.split}"


def places_of(pairs: Parts, triplets: Parts | None, wanted: set[int]) -> dict[int, Place]:
    """Where the texts of these numbers stand.

    Texts are numbered through the pairs, two to each, and on through the anchors of the triplets.
    """
    found: dict[int, Place] = {}
    left = sorted(wanted, reverse=True)
    at = 0
    for batch in pairs.batches(["row", "pair_id", "split", "component"]) if left else ():
        while left and left[-1] < at + 2 * batch.num_rows:
            number = left.pop()
            row, key, split, component = (
                batch[name][(number - at) // 2].as_py() for name in ("row", "pair_id", "split", "component")
            )
            found[number] = Place("pairs", row, key, f"text{1 + (number - at) % 2}", split, component)
        at += 2 * batch.num_rows
    anchors = at
    for batch in triplets.batches(["text_id"]) if triplets and left else ():
        while left and left[-1] < at + batch.num_rows:
            number = left.pop()
            key = batch["text_id"][number - at].as_py()
            found[number] = Place("triplets", number - anchors, key, "anchor", "train")
        at += batch.num_rows
    return found
