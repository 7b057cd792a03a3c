"""The parts of a Markdown text, line by line, so that a body of any length and shape costs linear time."""

import re
from typing import NamedTuple

_FENCE = re.compile(r"[ \t]*(?:[-*+>][ \t]+)?(`{3,}(?=[^`]*$)|~{3,})")
_PRE = re.compile(r"[ \t]{0,3}<pre\b", re.IGNORECASE)


class Part(NamedTuple):
    """Lines of prose, or of one code block with its fences."""

    is_code: bool
    lines: list[str]

    @property
    def inside(self) -> tuple[int, int]:
        """Where the lines between the fences stand: first, and behind the last; a block may lack its end."""
        last = self.lines[-1].strip().lower()
        closed = len(self.lines) > 1 and (not last.strip("`~") or "</pre>" in last)
        return 1, len(self.lines) - closed


def parts_of(lines: list[str]) -> list[Part]:
    """The lines as prose and code blocks (fenced, or in <pre>), without HTML comments."""
    parts: list[Part] = []
    prose: list[str] = []
    last_end = last_pre = -2  # not looked for yet
    in_comment = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if in_comment or "<!--" in line:
            last_end = _last("-->", lines) if last_end == -2 else last_end
            line, in_comment = _without_comments(line, in_comment, at < last_end)
            if not line.strip():
                at += 1  # nothing but a comment stood here
                continue
        fence = _opened(line) if "```" in line or "~~~" in line or "<" in line else ""
        if fence == "<":
            last_pre = _last("</pre>", lines) if last_pre == -2 else last_pre
            fence = fence if at < last_pre else ""
        if fence:
            stop = _behind(lines, at + 1, fence)
            parts += [Part(False, prose)] if prose else []
            parts.append(Part(True, [line, *lines[at + 1 : stop]]))
            prose, at = [], stop
        else:
            prose.append(line)
            at += 1
    return [*parts, Part(False, prose)] if prose else parts


def without_code(text: str) -> str:
    """A Markdown text without its code blocks and HTML comments."""
    if "```" not in text and "~~~" not in text and "<!--" not in text and "<pre" not in text.lower():
        return text
    parts = parts_of(text.replace("\r\n", "\n").split("\n"))
    return "\n".join(line for part in parts if not part.is_code for line in part.lines)


def _last(mark: str, lines: list[str]) -> int:
    """The last line that has the mark; -1 for none."""
    return next((at for at in range(len(lines) - 1, -1, -1) if mark in lines[at].lower()), -1)


def _behind(lines: list[str], at: int, fence: str) -> int:
    """The line behind the block that is open at a line."""
    for stop in range(at, len(lines)):
        if fence[0] in lines[stop] and _closes(lines[stop], fence):
            return stop + 1
    return len(lines)


def _opened(line: str) -> str:
    """What opens a block in a line: a fence, "<" for <pre>, or nothing."""
    opened = _FENCE.match(line)
    if opened:
        return opened[1]
    return "<" if _PRE.match(line) and "</pre>" not in line.lower() else ""


def _closes(line: str, fence: str) -> bool:
    if fence == "<":
        return "</pre>" in line.lower()
    shown = line.strip()
    return len(shown) >= len(fence) and set(shown) == {fence[0]}


def _without_comments(line: str, in_comment: bool, ends_later: bool) -> tuple[str, bool]:
    """The line without its HTML comments, and whether the next line begins inside of one."""
    kept: list[str] = []
    at = 0
    while True:
        if in_comment:
            stop = line.find("-->", at)
            if stop < 0:
                return "".join(kept), True
            at, in_comment = stop + 3, False
        start = line.find("<!--", at)
        closed = start >= 0 and line.find("-->", start) >= 0
        # One that never ends is shown as text, unless it begins a line: then all that follows is hidden.
        if start < 0 or not (closed or ends_later or not line[:start].strip()):
            return "".join([*kept, line[at:]]), False
        kept.append(line[at:start])
        at, in_comment = start + 4, True
