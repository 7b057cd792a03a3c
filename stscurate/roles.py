"""Which column of a user's file is what: by its usual name, or by --columns; and on which scale its scores are."""

import re
from collections.abc import Collection
from pathlib import Path

from stscurate.errors import InputError
from stscurate.files import RawTable, first_fields, read_table

_ROLES = {
    "text1": ("text1", "sentence1", "query", "anchor"),
    "text2": ("text2", "sentence2", "positive"),
    "score": ("score",),
    "label": ("label", "labels"),
    "text": ("text", "sentence"),
    "group": ("group",),
    "anchor": ("anchor", "query"),
    "positive": ("positive",),
    "negative": ("negative",),
}
_NAME = re.compile(r"[A-Za-z_]\w*")  # what a column is called, and a text or a number hardly ever is
_SCALE = re.compile(r"(-?\d+(?:\.\d+)?)(?:-|\.\.)(-?\d+(?:\.\d+)?)")  # 0-5, 0..5, -1-1


def parse_scale(scale: str | None) -> tuple[float, float]:
    """The two ends of "0-5" or "-1-1"; 0 and 1 without any. InputError where it isn't of that form."""
    if scale is None:
        return 0.0, 1.0
    ends = _SCALE.fullmatch(scale.strip())
    if not ends:
        raise InputError(f"The scale {scale} isn't a range: give its two ends, as in 0-5.")
    low, high = float(ends[1]), float(ends[2])
    if not low < high:
        raise InputError(f"The scale {scale} has no room between its ends: give the lower one first, as in 0-5.")
    return low, high


def read_roles(path: Path, columns: str | None, *needed: tuple[str, ...]) -> tuple[RawTable, dict[str, str]]:
    """The file and role -> column; one of the groups of roles in `needed` is there, or InputError says what is.

    columns: as --columns has it, names in order ("question1,question2,score") or by role ("text1=question1").
    """
    names, named = (None, {}) if columns is None else _columns(path, columns, needed)
    raw = read_table(path, names=names)
    for column in set(named.values()):
        if len(roles := [role for role, name in named.items() if name == column]) > 1:
            raise InputError(f"--columns: {column} can't be both {' and '.join(roles)}: name a column for each.")
    for role, column in named.items():
        if role not in _ROLES:
            raise InputError(f"--columns: {role} is no role; the roles are {', '.join(_ROLES)}.")
        if column not in raw.columns:
            raise InputError(f"{path} has no column {column}; it has {', '.join(raw.columns)}.")
    for role, usual in _ROLES.items():
        found = [name for name in usual if name in raw.columns]
        if found:
            named.setdefault(role, found[0])
    if not any(set(group) <= named.keys() for group in needed):
        raise InputError(_lacking(path, list(raw.columns), needed))
    return raw, named


def _lacking(path: Path, names: list[str], needed: tuple[tuple[str, ...], ...]) -> str:
    """What is told of a file without the columns of any group of roles."""
    wanted = ", or ".join(" and ".join(group) for group in needed)
    told = f"{path} needs columns {wanted}; it has {', '.join(names)}."
    if needed == (("text1", "text2"),) and len(names) == 1 and names[0] in _ROLES["text"]:
        return f"{told} `stscurate sample-pairs` draws pairs from texts."
    if hint := parted(names):
        return f"{told}{hint}"
    if not all(_NAME.fullmatch(name) for name in names):
        return (
            f"{told} Name them with --columns by role, as in --columns {needed[0][0]}=NAME; or if the first line is a "
            f"row, name all columns in order, as in --columns {','.join(needed[0])} (_ for any other)."
        )
    # As many of the file's own names as there are roles, in their order: most files have them so.
    group = next((group for group in needed if len(group) <= len(names)), needed[0])
    own = [*names, *["..."] * len(group)]
    example = ",".join(f"{role}={name}" for role, name in zip(group, own, strict=False))
    return f"{told} Name them with --columns, for example --columns {example}."


def parted(names: Collection[str]) -> str:
    """What to say, after a space, of a file whose one column's name seems to be several; "" of any other."""
    (name, *others) = names
    between = next((mark for mark in (";", "\t", "|", ",") if mark in name), None) if not others else None
    if not between:
        return ""
    mark = {"\t": "tabs"}.get(between, f"'{between}'")
    other = ".tsv" if between == "\t" else ".csv, with commas"
    return f" Its fields seem to be parted by {mark}: save it as {other}."


def _columns(path: Path, columns: str, needed: tuple[tuple[str, ...], ...]) -> tuple[list[str] | None, dict[str, str]]:
    """What --columns means: the names of a file without a header line, if it is one, and role -> column."""
    parts = [part.strip() for part in columns.split(",")]
    if not all(parts):
        raise InputError(f"--columns '{columns}' leaves a name out: in order, as in text1,text2,score, or by role.")
    plain = [part for part in parts if "=" not in part]
    by_role = dict(part.split("=", 1) for part in parts if "=" in part)
    first = first_fields(path)
    if plain and first is not None and not set(plain) & set(first):  # the file has no header line
        if not any(name in usual for usual in _ROLES.values() for name in plain):
            raise InputError(
                f"{path} has none of the columns {columns} in its first line ({', '.join(first)}). Name those that it "
                "has; or if it has no header line, name all its columns in order by their usual names, as in "
                "--columns text1,text2,score (_ for any other)."
            )
        if all(_NAME.fullmatch(field) for field in first):
            given = ",".join(f"{part}={field}" for part, field in zip(plain, first, strict=False))
            raise InputError(
                f"The first line of {path} ({','.join(first)}) looks like names of columns: give those, as in "
                f"--columns {given}; if it is a row, write the line {','.join(parts)} above it."
            )
        return [part if part != "_" else f"_{i}" for i, part in enumerate(parts)], by_role
    own = needed[0][0] == "text" and len(plain) <= len(needed[0])
    roles = needed[0] if own else ("text1", "text2", "score")
    if len(plain) > len(roles):
        raise InputError(f"--columns {columns}: in order they are {', '.join(roles)}; name others by role.")
    return None, {role: name for role, name in zip(roles, plain, strict=False) if name != "_"} | by_role
