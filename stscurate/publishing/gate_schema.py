"""What of the columns is other than in the card that is there: nobody who loads a set expects it to change."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def schema_changes(before: Mapping[str, Any], now: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """A sentence for each column that is gone, was added, or changed its type or its classes, by config.

    before: the YAML of the card that is there, of which configs that we don't publish now are passed by; now: the
    columns by config. `provenance` has those that there is something to tell in: of it, only types count.
    """
    old = columns_of(before)
    for config, columns in now.items():
        if config in old:
            yield from _columns(config, old[config], columns)


def columns_of(matter: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """The columns by config that a card's YAML tells."""
    told = matter.get("dataset_info") or []
    told = told if isinstance(told, list) else [told]
    found = {info.get("config_name", "default"): info.get("features") for info in told if isinstance(info, dict)}
    return {config: columns for config, columns in found.items() if isinstance(columns, list)}


def _columns(config: str, old: Sequence[Any], new: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    was = {column["name"]: column for column in old if isinstance(column, dict) and "name" in column}
    now = {str(column["name"]): column for column in new}
    loose = config == "provenance"
    for name in [*was, *(name for name in now if name not in was)]:
        if name not in now or name not in was:
            if not loose:
                yield f"config {config}: column {name} is {'gone' if name in was else 'new'}"
        elif _told(was[name]) != _told(now[name]):
            yield f"config {config}: column {name} was {_told(was[name])}, now {_told(now[name])}"
    if not loose and sorted(was) == sorted(now) and list(was) != list(now):
        yield f"config {config}: the columns were in the order {', '.join(was)}, now {', '.join(now)}"


def _told(column: Mapping[str, Any]) -> str:
    """A column's type in words: "int64", "classes different, same", "list of string"."""
    if "list" in column or "sequence" in column:
        inner = column.get("list", column.get("sequence"))
        return f"list of {_told({'dtype': inner}) if not isinstance(inner, Mapping) else _told(inner)}"
    kind = column.get("dtype")
    if isinstance(kind, Mapping) and isinstance(kind.get("class_label"), Mapping):
        names = kind["class_label"].get("names") or {}
        return f"classes {', '.join(str(name) for name in (names.values() if isinstance(names, Mapping) else names))}"
    if isinstance(column.get("struct"), Sequence):
        return "struct of " + ", ".join(f"{part.get('name')} {_told(part)}" for part in column["struct"])
    return str(kind)
