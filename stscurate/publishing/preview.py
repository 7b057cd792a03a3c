"""What a push would do: files, rows, schema and labels, against what is published now. Reads, and writes nothing."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stscurate.errors import InputError
from stscurate.publishing.card import read_front_matter
from stscurate.publishing.checksums import CARD
from stscurate.publishing.outgoing import Difference, Outgoing
from stscurate.publishing.push import compare
from stscurate.services.hub import HubRepository
from stscurate.wording import counted


@dataclass(frozen=True)
class Preview:
    """exists: there is such a repository; private: it is, None without one; changes: sentences on rows and columns."""

    exists: bool
    private: bool | None
    difference: Difference
    changes: list[str]

    def rows(self) -> list[dict[str, Any]]:
        """A table of the files that would change: file, change, size in bytes."""
        told = [{"file": file.path, "change": "added", "bytes": file.size} for file in self.difference.added]
        told += [{"file": file.path, "change": "changed", "bytes": file.size} for file in self.difference.changed]
        return told + [{"file": path, "change": "removed", "bytes": None} for path in self.difference.removed]


def preview(repository: HubRepository, outgoing: Outgoing) -> Preview:
    """One read where the content is there or nothing is, up to three where it differs: listing, card, checksums."""
    head = repository.head()
    new = _told(outgoing.card)
    if head is None:
        files = [*outgoing.files.values(), outgoing.card_file]
        changes = compare_cards({}, new)
        return Preview(False, None, Difference(sorted(files, key=lambda file: file.path), [], []), changes)
    _, found = compare(repository, outgoing, head)
    old: Mapping[str, Any] = {}
    if CARD in head.files and found:
        there = repository.read(CARD, head.commit).decode("utf-8", errors="replace")
        with suppress(InputError):  # a card without YAML tells nothing
            old = _told(there)
    elif not found:
        old = new
    return Preview(True, head.private, found, compare_cards(old, new))


def compare_cards(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """A sentence for each config, split, column and class that another push would change; `_told` gives both."""
    told = []
    for config in sorted(old.keys() | new.keys()):
        if config not in new:
            told.append(f"{config}: no longer published by this run")
        elif config not in old:
            told.append(f"{config}: new, {counted(sum(new[config]['rows'].values()), 'row')}")
        else:
            told += [f"{config}: {change}" for change in _changes(old[config], new[config])]
    return told


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    told = []
    for split in sorted(old["rows"].keys() | new["rows"].keys()):
        before, after = old["rows"].get(split, 0), new["rows"].get(split, 0)
        if before != after:
            told.append(f"{split} {counted(before, 'row')}, then {after:,}")
    if list(old["columns"]) != list(new["columns"]):
        told.append(f"columns {', '.join(old['columns'])}, then {', '.join(new['columns'])}")
    for column, kind in new["columns"].items():
        before = old["columns"].get(column, kind)
        if before != kind:
            told.append(f"column {column} {_short(before)}, then {_short(kind)}")
    return told


def _told(card: str) -> dict[str, Any]:
    """Config -> rows by split and columns with their types (classes as a list of names), as `dataset_info` has them."""
    infos = read_front_matter(card).get("dataset_info", [])
    infos = infos if isinstance(infos, list) else [infos]
    found = {}
    for info in infos:
        rows = {split["name"]: int(split.get("num_examples", 0)) for split in info.get("splits", [])}
        columns = {field["name"]: _kind(field) for field in info.get("features", [])}
        found[str(info.get("config_name", "default"))] = {"rows": rows, "columns": columns}
    return found


def _kind(field: Mapping[str, Any]) -> Any:
    kind = field.get("dtype", field.get("list"))
    if isinstance(kind, dict) and "class_label" in kind:
        names = kind["class_label"].get("names", {})
        return [names[key] for key in sorted(names, key=int)] if isinstance(names, dict) else list(names)
    return kind if "dtype" in field else f"list of {kind}"


def _short(kind: Any) -> str:
    return f"classes {', '.join(map(str, kind))}" if isinstance(kind, list) else str(kind)
