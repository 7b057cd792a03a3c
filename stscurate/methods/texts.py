"""Texts of issues: thin cleaning of their Markdown, and a form by which equal texts are found.

Cleaning reads line by line, so that a body of any length and shape costs linear time.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

_CODE_LINES = 30  # of a fenced block: logs beyond that say nothing new about the issue
_FENCE = re.compile(r"[ \t]*(?:[-*+>][ \t]+)?(`{3,}(?=[^`]*$)|~{3,})")
_CHECKBOX = re.compile(r"[ \t]*[-*+][ \t]+\[[ xX]?\]")
_IMAGE = re.compile(r"!\[([^\]\[]{0,300})\]\([^()\s]{0,2000}(?:[ \t]+[^()]{0,300})?\)")
_HTML_IMAGE = re.compile(r"<img\b[^<>]{0,2000}>", re.IGNORECASE)
_ALT = re.compile(r"\balt=(?:\"([^\"]{0,300})\"|'([^']{0,300})')", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@[A-Za-z\d-]{1,63}(?:\.[A-Za-z\d-]{1,63}){1,8}")
_MENTION = re.compile(r"(?<![\w@./`])@[A-Za-z\d][A-Za-z\d-]{0,38}(?:/[\w.-]{1,100})?(?![\w@(])")
_SPACES = re.compile(r"(?<=\S)[ \t\u00a0]{2,}(?=\S)")
_WROTE = re.compile(r"(?:On|Am|Le|El)\b.{5,300}\b(?:wrote|schrieb|a écrit|escribió)\b.{0,80}:", re.DOTALL)
_TAIL = re.compile(r"-{2,}[ \t]*Original Message[ \t]*-{2,}|Reply to this email directly\b.*|Sent from my \w+.{0,40}")


def normalise(text: str) -> str:
    """The form by which texts count as equal: NFKC, case folded, runs of whitespace as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def clean_markdown(text: str) -> str:
    """What the reporter wrote, without what the form, the mail program and the code dump added.

    HTML comments, checkbox lines and tails of quoted mail go; images become their alternative text; a code block
    is cut after 30 lines, "[... 12 lines]" saying so; "@name" becomes "@user", an address "[email]".
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    cleaned: list[str] = []
    for block, group in groupby(_sections(_without_mail_tail(lines)), key=itemgetter(0)):
        part = [line for _, line in group]
        if block:
            cleaned += [_hide_addresses(line.rstrip()) for line in _cut(part)]
        else:
            cleaned += [clean_line(line) for line in part if not _CHECKBOX.match(line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(cleaned)).strip()


def clean_line(line: str) -> str:
    """A line of prose, or a title, with images, names and addresses replaced and its spaces evened."""
    if "![" in line:
        line = _IMAGE.sub(r"\1", line)
    if "<img" in line.lower():
        line = _HTML_IMAGE.sub(_alternative, line)
    if "@" in line:
        line = _MENTION.sub("@user", _hide_addresses(line))
    if "  " in line or "\t" in line or "\u00a0" in line:
        line = _SPACES.sub(" ", line)
    return line.rstrip()


def without_code(text: str) -> str:
    """A Markdown text without its fenced code and HTML comments."""
    if "```" not in text and "~~~" not in text and "<!--" not in text:
        return text
    return "\n".join(line for block, line in _sections(text.replace("\r\n", "\n").split("\n")) if not block)


def without_mail_tail(text: str) -> str:
    """A comment sent by mail without the message it answers."""
    return "\n".join(_without_mail_tail(text.replace("\r\n", "\n").split("\n")))


def _alternative(image: re.Match[str]) -> str:
    alternative = _ALT.search(image[0])
    return (alternative[1] or alternative[2] or "") if alternative else ""


def _hide_addresses(line: str) -> str:
    return _EMAIL.sub("[email]", line) if "@" in line else line


def _without_mail_tail(lines: list[str]) -> list[str]:
    end = next((at for at, line in enumerate(lines) if _TAIL.fullmatch(line.strip())), len(lines))
    quoted = end
    while quoted and (not lines[quoted - 1].strip() or lines[quoted - 1].lstrip().startswith(">")):
        quoted -= 1
    if any(line.strip() for line in lines[quoted:end]):  # a quotation at the end, perhaps with its line above it
        for above in (1, 2):  # mail programs break that line in two
            if quoted >= above and _WROTE.fullmatch("\n".join(lines[quoted - above : quoted]).strip()):
                return lines[: quoted - above]
    return lines[:end]


def _sections(lines: list[str]) -> Iterator[tuple[int, str]]:
    """(number of the code block from 1, line), its fences included; 0 is prose, without its HTML comments."""
    blocks = 0
    last_end = max((at for at, line in enumerate(lines) if "-->" in line), default=-1)
    fence = ""
    in_comment = False
    for at, line in enumerate(lines):
        if fence:
            yield blocks, line
            if set(line.strip()) == {fence[0]} and len(line.strip()) >= len(fence):
                fence = ""
            continue
        kept, in_comment = _without_comments(line, in_comment, at < last_end)
        if kept != line and not kept.strip():
            continue  # nothing but a comment stood here
        opened = _FENCE.match(kept)
        fence = opened[1] if opened else ""
        blocks += bool(opened)
        yield blocks if opened else 0, kept


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


def _cut(block: list[str]) -> list[str]:
    """A code block with its fences, what is inside cut."""
    closed = len(block) > 1 and not block[-1].strip().strip("`~")
    inside = block[1:-1] if closed else block[1:]
    left_out = [f"[... {len(inside) - _CODE_LINES} lines]"] if len(inside) > _CODE_LINES else []
    return block[:1] + inside[:_CODE_LINES] + left_out + (block[-1:] if closed else [])
