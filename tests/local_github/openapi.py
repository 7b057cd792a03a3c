"""Whether a REST answer has the form that GitHub's OpenAPI description gives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "number": (int, float),
}


def breaches(value: Any, schema: Schema, described: Schema, place: str) -> Iterator[str]:
    """Where a value breaks a schema of the whole description: types, enums, required keys, alternatives."""
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].split("/")[-1]]
    if value is None:
        if schema.get("type") and not schema.get("nullable"):
            yield f"{place} is null"
        return
    for choice in ("anyOf", "oneOf"):
        if choice in schema and all(list(breaches(value, one, described, place)) for one in schema[choice]):
            yield f"{place} is none of its {choice}"
    for part in schema.get("allOf", ()):
        yield from breaches(value, part, described, place)
    if "type" in schema and not _is_a(value, schema["type"]):
        yield f"{place} is {value!r:.40}, no {schema['type']}"
    else:
        yield from _breaches_within(value, schema, described, place)


def _is_a(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and not (kind != "boolean" and isinstance(value, bool))


def _breaches_within(value: Any, schema: Schema, described: Schema, place: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is {value!r:.40}, not in {schema['enum']}"
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from breaches(one, schema.get("items", {}), described, f"{place}[{index}]")
    if isinstance(value, dict):
        yield from (f"{place} lacks {name}" for name in schema.get("required", ()) if name not in value)
        for name, below in schema.get("properties", {}).items():
            if name in value:
                yield from breaches(value[name], below, described, f"{place}.{name}")
