"""References to issues in a text ("#26", "GH-26", "owner/name#26", an issue's URL), and claims built on them."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_OWNER = r"[A-Za-z\d][A-Za-z\d-]{0,38}"
_NAME = r"[\w.-]{1,100}"
_NUMBER = r"([1-9]\d{0,8})(?!\w|\.\d)"
# Every branch begins with a rare character, so that long texts cost one scan; what stands before "#" is looked
# at afterwards. "#1  0x00..." is a frame of a debugger's backtrace.
_REFERENCE = re.compile(
    rf"github\.com/({_OWNER})/({_NAME})/issues/{_NUMBER}(?:#issuecomment-\d+)?|\bGH-{_NUMBER}|#{_NUMBER}(?![ \t]+0x)",
    re.IGNORECASE | re.ASCII,
)
_QUALIFIER = re.compile(rf"(?<![\w./-])({_OWNER}/{_NAME})$", re.ASCII)
_SCHEME = re.compile(r"(?:https?://)?(?:www\.)?$", re.IGNORECASE)

# A reference that a claim is read from is first replaced by its index between two control characters, which no
# pattern for words can mistake: the full stops of a URL don't end a sentence, its words aren't hedges.
_MARK = re.compile("\x02(\\d+)\x03")
_LIST = "(\x02\\d+\x03(?: ?(?:, and|,|and|&|/) ?\x02\\d+\x03)*)"
_BETWEEN = (
    r"(?:(?:an?|the|this|that|our|my|issue|bug|ticket|report|older|earlier|existing|previous|original|known|open"
    r"|closed|at|least|both)\s){0,4}[\"'(\[]?"
)
_CLAIM = re.compile(
    r"(?:"
    # "dup of #1", "a duplicate issue of #1", "closing as a dupe, in favour of #1", "Duplicate: #1"
    r"\bdup(?:licate|e)?(?P<plural>s?)\b[.\"'`)\]]{0,2}(?:\s(?:issue|bug|report|ticket)s?)?"
    rf"(?:,?\sin\sfavou?r\sof\s|\s(?:of|to|with):?\s|(?<!s):\s?){_BETWEEN}"
    # "this duplicates #1"
    r"|\bduplicates\s"
    # "Dup #1", "closing as dupe #1": elsewhere ("I filed a duplicate #1") the number is the duplicate's
    r"|(?:^|(?<=[.!:;,(\n])|\bas\s|\bas\san?\s)\s?\bdup(?:licate|e)?\s(?:issue\s|bug\s)?"
    rf"){_LIST}",
    re.IGNORECASE,
)
_CHINESE_CLAIM = re.compile(f"[与和跟同] ?{_LIST} ?(?:是)?重复|重复(?:了|于|的?问题|的? ?issue)?[:：]? ?{_LIST}")


class Reference(NamedTuple):
    """Where a text refers to an issue: text[start:stop], and which issue that is."""

    start: int
    stop: int
    repository: str
    number: int


class Claim(NamedTuple):
    """Where a text says "duplicate of": its span in the marked text, the issues named, whether in the plural."""

    start: int
    stop: int
    targets: list[tuple[str, int]]
    plural: bool


def find_references(text: str, repository: str, moved: Mapping[str, str] | None = None) -> Iterator[Reference]:
    """References to issues, in order; short ones are taken to mean `repository`. URLs of pull requests are none.

    moved: old name in lower case -> new name of repositories that were renamed.
    """
    if "#" not in text and "/issues/" not in text and "GH-" not in text:
        return
    for match in _REFERENCE.finditer(text):
        owner, name, in_url, after_gh, after_hash = match.groups()
        start = match.start()
        before = text[max(0, start - 141) : start]
        named = repository
        if in_url:
            named = f"{owner}/{name}"
            start -= len(_SCHEME.search(before)[0])  # type: ignore[index] # it matches the empty string
        elif after_hash and before and (before[-1].isalnum() or before[-1] in "_-.&/"):
            qualifier = _QUALIFIER.search(before)
            if not qualifier:
                continue  # "bug#5", "&#39;", "page.html/#5"
            named = qualifier[1]
            start -= len(named)
        named = known_as(named, moved)
        named = repository if named.lower() == repository.lower() else named
        yield Reference(start, match.end(), named, int(in_url or after_gh or after_hash))


def known_as(repository: str, moved: Mapping[str, str] | None) -> str:
    """The present name of a repository."""
    return (moved or {}).get(repository.lower(), repository)


def mark_references(
    text: str, repository: str, moved: Mapping[str, str] | None = None
) -> tuple[str, list[tuple[str, int]]]:
    r"""The text with each reference as "\x02INDEX\x03" and runs of spaces as one; the issues that the indices name."""
    text = text.replace("\x02", " ").replace("\x03", " ")
    parts: list[str] = []
    issues: list[tuple[str, int]] = []
    at = 0
    for reference in find_references(text, repository, moved):
        parts += [text[at : reference.start], f"\x02{len(issues)}\x03"]
        issues.append((reference.repository, reference.number))
        at = reference.stop
    marked = "".join([*parts, text[at:]])
    # one space at most: so no pattern meets a long run of them
    return "\n".join(" ".join(line.split()) for line in marked.split("\n")), issues


def find_claims(marked: str, issues: list[tuple[str, int]]) -> Iterator[Claim]:
    """Each "duplicate of" in a text that `mark_references` has prepared, whatever its sentence makes of it."""
    for pattern in (_CLAIM, _CHINESE_CLAIM):
        for match in pattern.finditer(marked):
            groups = [group for group in match.groups() if group and "\x02" in group]
            targets = [issues[int(index)] for index in _MARK.findall(groups[0])]
            yield Claim(match.start(), match.end(), targets, bool(match.groupdict().get("plural")))


def gives_label_away(text: str, repository: str) -> bool:
    """Whether a text says itself what it is a duplicate of."""
    lower = text.lower()
    if "dup" not in lower and "重复" not in lower:
        return False
    return next(find_claims(*mark_references(text, repository)), None) is not None
