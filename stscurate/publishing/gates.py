"""What must hold before a row is published. A gate that finds something refuses, naming rows and the mend.

Scores out of 0..1 or not a number, labels other than 0 and 1 and ids that stand twice never come as far as these
gates: writing a run's tables refuses them, and reading refuses tables that were changed since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stscurate.errors import InputError
from stscurate.publishing.findings import Findings
from stscurate.publishing.gate_rows import flat_scores, licences
from stscurate.publishing.gate_schema import schema_changes
from stscurate.publishing.gate_splits import across_splits
from stscurate.publishing.gate_texts import scan
from stscurate.publishing.layouts import Layout, features
from stscurate.publishing.parts import Parts

_SHOWN = 3


@dataclass(frozen=True)
class Gate:
    """A gate: what it looks for, how a refusal begins, and the mend."""

    name: str
    looks_for: str
    refusal: str
    mend: str


_ALL = (
    Gate("empty", "texts that are empty", "Empty text", "Drop or fill these rows"),
    Gate("scale", "scores all the same, or all near 0", "Scores off their scale", "Give the scale of the file"),
    Gate(
        "schema",
        "columns, types and classes other than in the card that is there",
        "Not as it was published before",
        "Publish to another place, or tell those who use the set",
    ),
    Gate(
        "duplicate",
        "the same pair in two splits",
        "The same pair in two splits",
        "Drop the rows of one side",
    ),
    Gate(
        "secret",
        "tokens, keys and passwords",
        "What looks like a secret",
        "Remove it from the text (and have it revoked: it was public)",
    ),
    Gate(
        "leak",
        "a text or component in two splits",
        "Splits leak",
        "Split by component, or drop the rows of one side",
    ),
    Gate(
        "near",
        "nearly the same text in two splits (Jaccard of five-word sequences from 0.8)",
        "Splits hold near duplicates",
        "Give them one component and split by that, or drop the rows of one side",
    ),
    Gate(
        "personal",
        "e-mail and public IP addresses, phone numbers, logins",
        "What looks like personal data",
        "Replace it in the text",
    ),
    Gate(
        "licence",
        "sources whose licence isn't known, or isn't on the list",
        "Texts without a licence to pass them on",
        "Leave these rows out, publish without --texts where they are issues, or ask the owners",
    ),
    Gate("size", "texts of over a million characters", "Texts too long to be shown or read", "Cut or drop them"),
)
GATES = tuple(gate.name for gate in _ALL)


@dataclass(frozen=True)
class Found:
    """What one gate found: sentences that name rows (the first 1,000), and how many; whether it was looked at all."""

    gate: Gate
    places: list[str] = field(default_factory=list)
    count: int = 0
    looked: bool = True

    @classmethod
    def changes(cls, told: Sequence[str]) -> "Found":
        """Of the gate schema, by sentences that are known already."""
        return cls(next(gate for gate in _ALL if gate.name == "schema"), list(told), len(told))

    def refusal(self) -> str:
        """What is told where the gate isn't accepted."""
        more = f"; and {self.count - _SHOWN:,} more" if self.count > _SHOWN else ""
        shown = "; ".join(self.places[:_SHOWN])
        name = self.gate.name
        return f"{self.gate.refusal}: {shown}{more}. {self.gate.mend}; --accept {name} publishes as it is and says so."


def look(
    pairs: Parts,
    triplets: Parts | None,
    scratch: Path,
    *,
    texts: bool = True,
    published: Sequence[Layout] = (),
    before: Mapping[str, Any] | None = None,
) -> list[Found]:
    """What each gate finds, in their order.

    pairs: of `scored_pairs`; triplets count as training rows. texts: the texts are published, not ids alone:
    without them their personal data, length and licence are nobody's concern. scratch: an empty folder, for
    files of this process. published and before: the configs, and the YAML of the card that is there already.
    """
    found = {**scan(pairs, triplets), **across_splits(pairs, triplets, scratch)}
    found["scale"] = flat_scores(pairs)
    found["licence"] = licences(pairs)
    found["schema"] = Findings()
    now = {layout.name: features(layout.schema) for layout in published}
    for change in schema_changes(before, now) if before else ():
        found["schema"].add(change)
    skipped = set() if texts else {"personal", "licence", "size"}
    skipped |= set() if before else {"schema"}
    return [
        Found(gate, looked=False)
        if gate.name in skipped
        else Found(gate, found[gate.name].places, found[gate.name].count)
        for gate in _ALL
    ]


def check_gates(
    pairs: Parts,
    triplets: Parts | None,
    scratch: Path,
    *,
    accept: Sequence[str],
    texts: bool = True,
    published: Sequence[Layout] = (),
    before: Mapping[str, Any] | None = None,
) -> dict[str, int]:
    """Hold what is to be published to every gate; give the accepted gates that found something, with how much.

    Arguments as of `look`. InputError for the first gate that found something and isn't accepted, and for the name of a
    gate that doesn't exist.
    """
    check_names(accept)
    found = look(pairs, triplets, scratch, texts=texts, published=published, before=before)
    for one in found:
        if one.count and one.gate.name not in accept:
            raise InputError(one.refusal())
    return {one.gate.name: one.count for one in found if one.count}


def check_names(accept: Sequence[str]) -> None:
    """InputError for the name of a gate that doesn't exist."""
    unknown = sorted(set(accept) - set(GATES))
    if unknown:
        raise InputError(f"There is no gate {', '.join(unknown)}: --accept takes {', '.join(GATES)}.")
