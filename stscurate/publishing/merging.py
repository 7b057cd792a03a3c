"""A card that a person has edited, and one made anew: ours in the new wording, the person's to the byte.

Ours are the sections of the body between two marks, and the YAML keys that a new card has. All else stays: text outside
of the marks, other keys, comments, the order, the line ends.
"""

import re
from collections.abc import Sequence

from stscurate.errors import InputError
from stscurate.publishing.yaml_lines import merge_yaml

_FRONT = re.compile(r"(\ufeff?---[ \t]*\r?\n)(.*?)(^---[ \t]*(?:\r?\n|\Z))", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"^<!-- stscurate: (begin|end) ([a-z-]+) -->[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_LINE_END = re.compile(r"\r?\n")

Piece = tuple[
    str | None, str
]  # name and text of a section of ours, marks included; None and text of what is a person's


def merge(old: str, new: str) -> str:
    """The card `old` with our sections and YAML keys as `new` has them; where it has no sections of ours, they follow.

    old, new: whole cards, with their line ends as in the file. A section of ours that the new card lacks goes; one that
    the old card lacks comes behind the one before it in the new card. Of lists in the YAML, tags and configs of others
    stay, as do fields that a person gave to our configs; what was the default config remains it. InputError where the
    old card's YAML or marks are broken.
    """
    first = _LINE_END.search(old)
    newline = first[0] if first else "\n"
    head, body = front_and_body(old)
    new_head, new_body = front_and_body(new)
    sections = [(name, _LINE_END.sub(newline, text)) for name, text in _pieces(new_body) if name]
    merged = _merge_bodies(_pieces(body), sections, newline)
    if new_head is None:
        return "".join(head or ()) + merged
    if head is None:
        return _LINE_END.sub(newline, "".join(new_head)) + merged
    opening, text, closing = head
    if not closing.endswith("\n"):
        closing += newline
    return opening + merge_yaml(text, new_head[1], newline) + closing + merged


def front_and_body(card: str) -> tuple[tuple[str, str, str] | None, str]:
    """((the opening line, the YAML, the closing line) or None, the body)."""
    match = _FRONT.match(card)
    return (None, card) if match is None else ((match[1], match[2], match[3]), card[match.end() :])


def _pieces(body: str) -> list[Piece]:
    """The body in order; put together, the texts are the body. InputError where a mark has no counterpart."""
    found: list[Piece] = []
    opened: re.Match[str] | None = None
    at = 0
    for mark in _MARK.finditer(body):
        if opened is None:
            if mark[1] != "begin":
                raise _broken(mark[0], "has no counterpart")
            if any(mark[2] == name for name, _ in found):
                raise _broken(mark[0], "stands twice")
            found.append((None, body[at : mark.start()]))
            opened, at = mark, mark.start()
        else:
            if (mark[1], mark[2]) != ("end", opened[2]):
                raise _broken(opened[0], "has no counterpart")
            found.append((mark[2], body[at : mark.end()]))
            opened, at = None, mark.end()
    if opened:
        raise _broken(opened[0], "has no counterpart")
    return [*found, (None, body[at:])]


def _broken(mark: str, how: str) -> InputError:
    return InputError(
        f"README.md: the mark {mark.strip()} {how}, so that a person's words can't be told from ours: put both marks "
        "of the section back, or take the section out with its marks."
    )


def _merge_bodies(pieces: Sequence[Piece], sections: Sequence[tuple[str, str]], newline: str) -> str:
    """The pieces with our sections' new texts, and those that aren't there yet put in behind their predecessors."""
    ours = {name: text if text.endswith("\n") else text + newline for name, text in sections}
    kept = [(name, ours[name] if name else text) for name, text in pieces if name is None or name in ours]
    if not any(name for name, _ in kept):
        own = "".join(text for _, text in kept)
        if own.strip():
            own += newline if own.endswith("\n") else 2 * newline
        return own + "".join(ours.values())
    previous: str | None = None
    for name, text in ours.items():
        names = [found for found, _ in kept]
        if name not in names:
            first = next(place for place, found in enumerate(names) if found)
            kept.insert(names.index(previous) + 1 if previous else first, (name, text))
        previous = name
    return "".join(text for _, text in kept)
