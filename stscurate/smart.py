"""The SMART collections' format, in which CISI, CACM, MED and their like are handed on: `.I 1`, `.T`, `.W`, ...

Each record begins at `.I NUMBER`; a line of a full stop and one capital letter begins a field, whose text follows until
the next: T title, A author, W the words (an abstract, or a query), X cross-references, which aren't kept.
"""

import re
from collections.abc import Iterable

_FIELDS = {"T": "title", "A": "author", "B": "source", "W": "text"}
_BEGINS = re.compile(r"\.I\s+(\S+)\s*")
_FIELD = re.compile(r"\.([A-Z])\s*")

SUFFIXES = {".all", ".qry"}


def smart_records(lines: Iterable[str]) -> list[tuple[int, dict[str, str | None]]]:
    """(number of its first line, id and fields) of each record; a field that a record lacks is None.

    Lines of a field are joined as they stand, a field that comes twice likewise. A file of queries where some words
    follow `.I` without a field gives no text for those.
    """
    found: list[tuple[int, dict[str, list[str]]]] = []
    into: list[str] = []
    for number, line in enumerate(lines, 1):
        begins, field = _BEGINS.fullmatch(line.rstrip()), _FIELD.fullmatch(line.rstrip())
        if begins:
            into = []
            found.append((number, {"id": [begins[1]]}))
        elif field and found:
            name = _FIELDS.get(field[1])
            into = found[-1][1].setdefault(name, []) if name else []
        else:
            into.append(line.rstrip("\r\n"))
    names = ("id", *_FIELDS.values())
    return [
        (line, {name: "\n".join(record[name]).strip() if name in record else None for name in names})
        for line, record in found
    ]
