"""The issues of a run as the pairing needs them: in order, by index."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from stscurate.methods.near_duplicates import near_duplicates
from stscurate.methods.texts import normalise


@dataclass(frozen=True)
class Corpus:
    """Columns of the issues, sorted by repository and number: an index stands for an issue everywhere here."""

    repositories: list[str]
    numbers: list[int]
    texts: list[str]
    authors: list[str]
    created: list[datetime | None]
    mentions: list[set[str]]

    @classmethod
    def of(cls, issues: pa.Table) -> "Corpus":
        """The corpus of the table `issues`."""
        issues = issues.sort_by([("repository", "ascending"), ("number", "ascending")])
        names = ("repository", "number", "clean_text", "author", "created_at", "mentions")
        columns = [issues[name].to_pylist() for name in names]
        mentions = [{mention.lower() for mention in found} for found in columns[5]]
        return cls(columns[0], columns[1], columns[2], columns[3], columns[4], mentions)

    def __len__(self) -> int:
        """Issues."""
        return len(self.texts)

    @cached_property
    def ids(self) -> list[str]:
        """ "owner/name#number" of each issue."""
        return [f"{repository}#{number}" for repository, number in zip(self.repositories, self.numbers, strict=True)]

    @cached_property
    def normal(self) -> list[str]:
        """Each text in the form by which equal texts are found."""
        return [normalise(text) for text in self.texts]

    @cached_property
    def index(self) -> dict[str, int]:
        """Issue by its id in lower case, as GitHub compares names."""
        return {name.lower(): at for at, name in enumerate(self.ids)}

    def equal(self) -> list[tuple[int, int]]:
        """(issue, the first issue with the same text) for each issue that has one."""
        first: dict[str, int] = {}
        return [(at, first.setdefault(text, at)) for at, text in enumerate(self.normal) if text]

    def nearly_equal(self, threshold: float) -> list[tuple[int, int]]:
        """Pairs of issues whose texts are near duplicates; of equal texts the first stands for all."""
        first = list(dict(reversed([(text, at) for at, text in enumerate(self.normal)])).values())
        pairs, _ = near_duplicates([self.texts[at] for at in first], threshold=threshold)
        return [(first[one], first[other]) for one, other in pairs.tolist()]

    def key(self, one: int, other: int) -> tuple[str, str]:
        """The two texts in normal form and in order: what makes a pair the same pair."""
        low, high = sorted((self.normal[one], self.normal[other]))
        return low, high

    def refer_to_each_other(self, one: int, other: int) -> bool:
        """Whether one of the two issues, or a comment on it, names the other."""
        return self.ids[other].lower() in self.mentions[one] or self.ids[one].lower() in self.mentions[other]
