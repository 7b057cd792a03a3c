"""What datasets/benchmarks/*.toml say: where a benchmark lies, how it is read, what to know about it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any

from stscurate.errors import InputError
from stscurate.resources import definition

_LABELS = MappingProxyType({"0": 0.0, "1": 1.0})


@dataclass(frozen=True)
class Source:
    """Files of a benchmark: on the Hub, or as they were first published.

    files: split -> name, or a pattern of names on the Hub; "{subset}" stands for each subset of the benchmark. gold:
    where a second file of the same length holds the scores, its name. columns: role (text1, text2, score or label)
    -> column of the header line. order: the roles of the columns of a file without a header line, "_" for others.
    labels: what stands in a label column -> 0 or 1; a row with anything else has no gold.
    """

    files: Mapping[str, str]
    gold: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    separator: str = "tab"
    labels: Mapping[str, float] = field(default_factory=lambda: _LABELS)
    repository: str = ""
    revision: str = ""
    checked: str = ""

    def tells_subsets(self, split: str) -> bool:
        """Whether each subset is a file of its own."""
        return "{subset}" in self.files[split]


@dataclass(frozen=True)
class Benchmark:
    """A defined set of pairs. scale: of its scores ("0-5"); rows: split -> pairs with gold, where known."""

    name: str
    title: str
    description: str
    licence: str
    split: str
    hub: Source | None
    originals: tuple[Source, ...]
    scale: str = "0-1"
    subsets: tuple[str, ...] = ()
    apart: bool = False  # each subset is a set of its own, and their mean is reported
    rows: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    within: str = ""  # of a subset alone: the benchmark that it is of

    @property
    def splits(self) -> list[str]:
        """All splits that some source has."""
        sources = [*([self.hub] if self.hub else []), *self.originals]
        return sorted({split for source in sources for split in source.files})

    def only(self, subset: str) -> "Benchmark":
        """The benchmark of that subset alone. InputError where it has no such subset."""
        if subset not in self.subsets:
            raise InputError(f"{self.name} has no subset {subset}; it has {', '.join(self.subsets) or 'none'}.")
        return replace(self, name=f"{self.name}/{subset}", subsets=(subset,), rows={}, within=self.name)

    def is_in(self, source: Source, split: str) -> bool:
        """Whether the source has the split, and of a subset alone tells it from the others."""
        return split in source.files and (not self.within or source.tells_subsets(split))


@dataclass(frozen=True)
class Packaged:
    """A set that an installed Python package carries, as its own reader takes it."""

    name: str
    title: str
    licence: str
    described: Mapping[str, Any]


@dataclass(frozen=True)
class Collection:
    """Several benchmarks under one name, whose mean is reported."""

    name: str
    title: str
    sets: tuple[str, ...]


@cache
def definitions() -> Mapping[str, Benchmark | Packaged | Collection]:
    """All defined sets by name, which is that of the file."""
    found: dict[str, Benchmark | Packaged | Collection] = {}
    for path in sorted(definition("benchmarks").glob("*.toml")):
        described = tomllib.loads(path.read_text("utf-8"))
        name, title = path.stem, described.pop("title")
        if "sets" in described:
            found[name] = Collection(name, title, tuple(described["sets"]))
        elif "package" in described:
            found[name] = Packaged(name, title, described["licence"], described)
        else:
            found[name] = _benchmark(name, title, described)
    return MappingProxyType(found)


def _benchmark(name: str, title: str, described: dict[str, Any]) -> Benchmark:
    hub = described.pop("hub", None)
    originals = tuple(_source(one) for one in described.pop("original", []))
    lists: dict[str, Any] = {key: tuple(described.pop(key, ())) for key in ("subsets", "notes")}
    return Benchmark(
        name=name, title=title, hub=_source(hub) if hub else None, originals=originals, **lists, **described
    )


def _source(described: dict[str, Any]) -> Source:
    values: dict[str, Any] = {**described, "order": tuple(described.get("order", ()))}
    return Source(**values)
