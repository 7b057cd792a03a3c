"""Texts of issues: their Markdown cleaned, and a form by which equal texts are found.

Cleaning goes line by line and knows no pattern that can slow down, so that any body costs linear time.
"""

import re
import unicodedata
from dataclasses import dataclass

from stscurate.methods.logs import WORD, cut_code, cut_logs, cut_words
from stscurate.methods.mail import may_be_mail, without_mail
from stscurate.methods.markdown import Part, parts_of
from stscurate.methods.placeholders import Placeholders

_CHECKBOX = re.compile(r"([ \t]*[-*+][ \t]+)\[[ xX]?\][ \t]*(?!\()")
# What a reporter declares by ticking a box; other boxes are tasks or choices, which say something.
_DECLARED = re.compile(
    r"I\b|(?:This|My|The) (?:issue|bug|report|request|problem|question|is)\b|By \w+ing\b|(?:Yes|No)\W{0,3}$|$"
    r"|.{0,200}\b(?:searched|(?:existing|open|closed|similar|other) (?:issue|report|bug)s"
    r"|duplicate (?:issue|report|bug)|no duplicate|not a duplicate|code of conduct|contribut\w{1,8} guid"
    r"|latest (?:version|release))",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"!\[([^\]\[]{0,300})\]\([^()\s]{0,2000}(?:[ \t]+[^()]{0,300})?\)")
_ALT = re.compile(r"\balt=(?:\"([^\"]{0,300})\"|'([^']{0,300})')", re.IGNORECASE)
# What cameras and forms call an image says nothing of it.
_NAMELESS = re.compile(
    r"(?:image|img|screen[ _-]?shot|capture|captura|bildschirmfoto|photo|picture|alt|alt text|unnamed|untitled)?"
    r"(?:[\d\s_.,:()x-]|from|at|am|pm|scrot|png|jpe?g|gif|webp){0,100}+",
    re.IGNORECASE,
)
_UPLOAD = re.compile(
    r"https://(?:github\.com/(?:user-attachments/assets|[\w.-]{1,100}/[\w.-]{1,100}/assets)|(?:private-)?user-images"
    r"\.githubusercontent\.com)/[^\s()<>\"']{0,2000}"
)
_TAG = re.compile(
    r"<(?<!`<)(?:(img)\b[^<>]{0,2000}|/?(?:details|summary|br|hr|center|sub|sup|kbd)\b[^<>]{0,200})>", re.IGNORECASE
)
_SPACES = re.compile(r"(?<=\S)[ \t\u00a0]{2,}(?=\S)")
_EMPTY_LINES = re.compile(r"\n{3,}")
_RULE = re.compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*")


def normalise(text: str) -> str:
    """The form by which texts count as equal: NFKC, case folded, runs of whitespace as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@dataclass(frozen=True)
class Cleaned:
    """A cleaned text, what was taken out of it ("mail", "checkbox", "log", "code") and what was replaced ("email")."""

    text: str
    removed: list[str]
    replaced: list[str]


def clean_issue(title: str, body: str) -> Cleaned:
    """Title and body as one text: what the reporter wrote, without what the form, the mail and the log added.

    Out go HTML comments, checkbox lines, quoted mail and signatures, and empty code blocks; images become their
    alternative text; logs, traces, code and very long words are cut (see `logs`); who and what is secret is replaced
    (see `placeholders`). What a repository's template has put there goes afterwards (see `templates`).
    """
    hide = Placeholders()
    removed: set[str] = set()
    title, _, body = hide.secrets(f"{' '.join(title.split())}\n{body}").partition("\n")
    text = f"{_clean_line(title, hide)}\n\n{_clean(body, hide, removed)}".strip()
    return Cleaned(hide.places(text), sorted(removed), hide.kinds)


def _clean(text: str, hide: Placeholders, removed: set[str]) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if may_be_mail(text):
        kept = without_mail(lines)
        removed.update(["mail"] if len(kept) < len(lines) else [])
        lines = kept
    parts = parts_of(lines)
    cleaned: list[str] = []
    for part in parts:
        cleaned += _code(part, hide, removed) if part.is_code else _prose(part.lines, hide, removed)
    return tidy(cleaned)


def tidy(lines: list[str]) -> str:
    """The lines as one text, without outer empty lines and rules, and with one empty line at most between others."""
    start, stop = 0, len(lines)
    while start < stop and (not lines[start].strip() or _RULE.fullmatch(lines[start])):
        start += 1
    while start < stop and (not lines[stop - 1].strip() or _RULE.fullmatch(lines[stop - 1])):
        stop -= 1
    text = "\n".join(lines[start:stop]).strip()
    return _EMPTY_LINES.sub("\n\n", text) if "\n\n\n" in text else text


def _clean_line(line: str, hide: Placeholders) -> str:
    """A line of prose, or a title, with images, names and addresses replaced and its spaces evened."""
    if "://" in line and ("assets/" in line or "githubusercontent.com/" in line):
        line = _IMAGE.sub(_caption, line) if "![" in line else line
        line = _UPLOAD.sub("", line)
    if "![" in line:
        line = _IMAGE.sub(_caption, line)
    if "<" in line and ">" in line:
        line = _TAG.sub(_alternative, line)
    if "@" in line:
        line = hide.emails(line)
        # Indented, it is rather a decorator than somebody.
        line = line if line.startswith("    @") else hide.mentions(line)
    line = line.rstrip()
    if "  " in line or "\t" in line or "\u00a0" in line:
        line = _SPACES.sub(" ", line)
    return cut_words(line) if len(line) > WORD else line


def _prose(lines: list[str], hide: Placeholders, removed: set[str]) -> list[str]:
    unboxed = [_without_box(line) if "[" in line else line for line in lines]
    if None in unboxed:
        removed.add("checkbox")
    kept, cut = cut_logs([line for line in unboxed if line is not None])
    if cut:
        removed.add("log")
    return [line for old in kept if (line := _clean_line(old, hide)) or not old.strip()]


def _without_box(line: str) -> str | None:
    """The line without its checkbox; nothing where it is a declaration."""
    box = _CHECKBOX.match(line)
    if not box:
        return line
    return None if _DECLARED.match(line, box.end()) else box[1] + line[box.end() :]


def _code(part: Part, hide: Placeholders, removed: set[str]) -> list[str]:
    first, last = part.inside
    inside, cut = cut_code(part.lines[first:last])
    if cut:
        removed.add("code")
    if not any(line.strip() for line in inside):
        return []
    lines = [line.rstrip() for line in (*part.lines[:first], *inside, *part.lines[last:])]
    return [cut_words(hide.emails(line)) if "@" in line or len(line) > WORD else line for line in lines]


def _caption(image: re.Match[str]) -> str:
    return "" if _NAMELESS.fullmatch(image[1]) else image[1]


def _alternative(tag: re.Match[str]) -> str:
    if not tag[1]:
        return " "
    alternative = _ALT.search(tag[0])
    text = (alternative[1] or alternative[2] or "") if alternative else ""
    return "" if _NAMELESS.fullmatch(text) else text
