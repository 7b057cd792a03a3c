"""Issue templates, found by what many issues of a repository share, and taken out of the texts.

A line that stands in one percent of a repository's issues, and in five at least, is shared. What goes:

- shared lines that say something: four words or more, or three lines, that stand together; shared code blocks likewise;
- headings and labels that are shared ("## Steps", "**Steps**", "Steps:") with nothing of the reporter's below them;
- fields left empty or as they were ("- OS:", "- OS: [e.g. Linux]"), and what a form writes for them ("_No response_").

What stays: an answered field ("Rust version: 1.5", also where many give the same answer), a heading above something
that somebody wrote, and short lines ("thanks", "Windows 11"), which many may have written by themselves.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from stscurate.methods.markdown import Part, parts_of
from stscurate.methods.texts import tidy

SHARE = 0.01  # of a repository's issues
FEWEST = 5  # issues
_MOST = 1_000_000  # lines remembered, some 100 MB
_WORDS, _LINES = 4, 3  # that stand together; fewer don't make a template

_MARKS = " \t#*_`>+-•"
_LABEL = re.compile(r"[^:：?]{1,60}[:：?]")
_BOX = re.compile(r"\[[ x]?\][ \t]*(?!\()")
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]{2}|[^\W\d_]{2,}")
_PLACEHOLDER = re.compile(r"[\[<({].*[\])}>]\.?|(?:e\.?g\.?|ex[.:]|for example)[ :,].*|\.\.\.|…|n/?a|none|-+")
_HINT = re.compile(r"[\[<(] ?(?:e\.?g\.?|ex\.|for example)[^\[<(]{0,200}[\])>]\.?$")
_HEADING = re.compile(r"[ \t]{0,3}(#{1,6})[ \t]")
_BOLD = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(?:\*\*[^*]{1,200}\*\*|__[^_]{1,200}__)[ \t]*:?[ \t]*")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])(?:[ \t]|$)")
_BARE_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]*")
_RULE = re.compile(r"[ \t]{0,3}(?:(?:-[ \t]?){3,80}|(?:\*[ \t]?){3,80}|(?:_[ \t]?){3,80})")
_NO_RESPONSE = "_No response_"  # GitHub's own words
_BOLD_LEVEL, _LABEL_LEVEL, _FIELD_LEVEL = 7, 8, 9  # below the six of headings


class Template:
    """What a repository's issues share: hashes of lines, and in how many issues each stands."""

    def __init__(self, lines: Mapping[int, int]) -> None:
        self.lines = lines
        self.has_blocks = any(line >> 8 & 1 for line in lines)
        self._lengths = {line & 255 for line in lines}

    def knows(self, line: str) -> bool:
        """Whether a line is shared, or may open a block that is."""
        if self.has_blocks and ("```" in line or "~~~" in line):
            return True
        bare = line.strip(_MARKS)
        if len(bare) & 255 not in self._lengths and not ("  " in bare or "[" in bare or "@" in bare or "\t" in bare):
            return False  # its length says so, for `_plain` has nothing to shorten in it
        return self.count(_plain(line)) > 0

    def count(self, text: str) -> int:
        """Issues that have the line; 0 where it isn't shared."""
        return self.lines.get(_key(text), 0) if len(text) & 255 in self._lengths else 0


class LineCounts:
    """In how many issues of each repository a line stands.

    Lines are kept as hashes; when there are too many, those that were seen the fewest times are forgotten, which
    depends on the order of the issues alone. So a line that stands in few of very many issues may go unnoticed.
    """

    def __init__(self, *, most: int = _MOST) -> None:
        self._lines: dict[str, Counter[int]] = {}
        self._issues: Counter[str] = Counter()
        self._most = most
        self._held = 0

    def add(self, repository: str, body: str) -> None:
        """Count the lines of an issue's body."""
        self._issues[repository] += 1
        if not body:
            return
        lines = self._lines.setdefault(repository, Counter())
        before = len(lines)
        lines.update(set(_keys(body)))
        self._held += len(lines) - before
        if self._held > self._most:
            self._forget()

    def templates(self) -> dict[str, Template]:
        """What the issues of each repository share; a repository where they share nothing isn't named."""
        found: dict[str, Template] = {}
        for repository, lines in self._lines.items():
            fewest = max(FEWEST, SHARE * self._issues[repository])
            shared = {line: count for line, count in lines.items() if count >= fewest}
            if shared:
                found[repository] = Template(shared)
        return found

    def _forget(self) -> None:
        fewest = 1
        while self._held > self._most // 2:
            for repository, lines in list(self._lines.items()):
                kept = Counter({line: count for line, count in lines.items() if count > fewest})
                self._held -= len(lines) - len(kept)
                self._lines[repository] = kept
                if not kept:
                    del self._lines[repository]
            fewest += 1


def templates_of(bodies: Iterable[tuple[str, str]]) -> dict[str, Template]:
    """The templates of all repositories that have one. bodies: (repository, body) of every issue, each once."""
    counts = LineCounts()
    for repository, body in bodies:
        counts.add(repository, body)
    return counts.templates()


def digest_of(templates: Mapping[str, Template]) -> str:
    """SHA-256 of the templates, in hexadecimal."""
    plain = [(repository, sorted(template.lines.items())) for repository, template in sorted(templates.items())]
    return hashlib.sha256(repr(plain).encode()).hexdigest()


def _keys(body: str) -> Iterator[int]:
    """The hashes of the lines of prose, of their labels, and of the fenced blocks."""
    block: list[str] | None = None
    for line in body.replace("\r\n", "\n").split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            if block:
                yield _key(_block(block))
            block = [] if block is None else None
        elif block is not None:
            block.append(line)
        elif plain := _plain(line):
            yield _key(plain)
            if label := _label(plain):
                yield _key(label)


def _plain(line: str) -> str:
    """What counts as the same line: without marks at its ends, in lower case, whosever address stands in it."""
    plain = line.strip(_MARKS).lower()
    if plain[:1] == "[" and (box := _BOX.match(plain)):
        plain = plain[box.end() :]
    if "  " in plain or "\t" in plain:
        plain = " ".join(plain.split())
    if "@" in plain or "[email-" in plain:
        plain = " ".join("@" if "@" in word or "[email-" in word else word for word in plain.split())
    return plain


def _label(plain: str) -> str:
    """ "os:" of "os: linux"; nothing where nothing follows."""
    if ":" not in plain and "?" not in plain and "：" not in plain:
        return ""
    label = _LABEL.match(plain)
    return label[0] if label and label.end() < len(plain) else ""


def _block(lines: Iterable[str]) -> str:
    return "```\n" + "\n".join(lines).strip().lower()


def _key(text: str) -> int:
    """A hash of 64 bits. The last eight are the text's length, so that few texts need hashing; one says block."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=7).digest()
    return (int.from_bytes(digest, "big") >> 1) << 9 | text.startswith("```\n") << 8 | len(text) & 255


class _Piece(NamedTuple):
    """A line, or a block of code, and what the template makes of it."""

    part: Part
    kind: str  # blank, shared (goes if it or its neighbours say something), empty and unanswered (go), heading, text
    level: int = 0  # of a heading
    filled: bool = False  # it is a field with its answer


def without_template(text: str, template: Template) -> str:
    """A cleaned text, the title its first line, without what the template has put there."""
    title, *lines = text.split("\n")
    unanswered = _NO_RESPONSE in text
    if not unanswered and not (template.lines and any(map(template.knows, lines))):
        return text
    pieces = [piece for part in parts_of(lines) for piece in _pieces(part, template)]
    if all(piece.kind in ("text", "blank") or piece.filled for piece in pieces):
        return text
    _judge_runs(pieces)
    kept: list[_Piece] = []
    written = [False] * (_FIELD_LEVEL + 1)  # level -> something stands between here and the next heading of the level
    unanswered = False  # by the words of a form
    for at in range(len(pieces) - 1, -1, -1):
        piece = pieces[at]
        if piece.kind == "heading":
            if (piece.filled and not unanswered) or written[piece.level]:
                kept.append(piece)
                written[: piece.level] = [True] * piece.level
            written[piece.level :] = [False] * (_FIELD_LEVEL + 1 - piece.level)
            unanswered = False
        elif piece.kind == "text":
            kept.append(piece)
            unanswered = False
            written = [True] * len(written)
        elif piece.kind == "blank":
            kept.append(piece)
            written[_FIELD_LEVEL] = False  # an empty field's answer stands beside or right below it
        unanswered = unanswered or piece.kind == "unanswered"
    kept.reverse()
    return f"{title}\n\n{tidy([line for piece in kept for line in piece.part.lines])}".strip()


def _pieces(part: Part, template: Template) -> Iterator[_Piece]:
    if part.is_code:
        first, last = part.inside
        inside = _block(part.lines[first:last])
        shared = template.count(inside) > 0 and _says_something(inside)
        yield _Piece(part, "empty" if shared else "text")
        return
    for line in part.lines:
        one = Part(False, [line])
        if not line.strip() or _RULE.fullmatch(line):
            yield _Piece(one, "blank")
        elif line.strip() == _NO_RESPONSE:
            yield _Piece(one, "unanswered")
        else:
            yield _line(one, line, template)


def _line(part: Part, line: str, template: Template) -> _Piece:
    plain = _plain(line)
    count = template.count(plain)
    heading = _HEADING.match(line)
    if heading:
        return _Piece(part, "heading", len(heading[1])) if count else _Piece(part, "heading", len(heading[1]), True)
    label = _label(plain)
    is_item = bool(_ITEM.match(line))
    if label:
        fields = template.count(label)
        value = plain[len(label) :].strip(_MARKS)
        if fields and _PLACEHOLDER.fullmatch(value) and (count or len(value) < 4):
            return _Piece(part, "empty")
        if count and 2 * count > fields and _says_something(value):
            return _Piece(part, "shared")
        return _Piece(part, "heading", _FIELD_LEVEL, True) if fields and is_item else _Piece(part, "text")
    if not count:
        return _Piece(part, "text")
    if _BARE_ITEM.fullmatch(line) or _HINT.search(plain):
        return _Piece(part, "empty")
    if plain[-1] in ":：?":
        return _Piece(part, "heading", _FIELD_LEVEL if is_item else _LABEL_LEVEL)
    return _Piece(part, "heading", _BOLD_LEVEL) if _BOLD.fullmatch(line) else _Piece(part, "shared")


def _judge_runs(pieces: list[_Piece]) -> None:
    """Runs of shared lines with words enough become "empty", others "text"."""
    at = 0
    for shared, run in groupby(list(pieces), key=lambda piece: piece.kind == "shared"):
        found = list(run)
        if shared:
            says = len(found) >= _LINES or _says_something(" ".join(piece.part.lines[0] for piece in found))
            pieces[at : at + len(found)] = [piece._replace(kind="empty" if says else "text") for piece in found]
        at += len(found)


def _says_something(text: str) -> bool:
    return len(_WORD.findall(text)) >= _WORDS
