"""What a mail program adds to a comment or an issue: the message that is answered, and the signature."""

import re
from collections.abc import Sequence

_WROTE = re.compile(r"(?:On|Am|Le|El)\b.{5,300}\b(?:wrote|schrieb|a écrit|escribió)\b.{0,80}:", re.DOTALL)
_TAIL = re.compile(r"-{2,}[ \t]*Original Message[ \t]*-{2,}|Reply to this email directly\b.*|Sent from my \w+.{0,40}")
_TAIL_WORDS = ("Original Message", "Reply to this email", "Sent from my")
_SIGNATURE = "-- "  # RFC 3676, 4.3
_SIGNATURE_LINES = 8  # at most: a line so far from the end begins something else


def without_mail_tail(text: str) -> str:
    """A comment sent by mail without the message it answers and the signature."""
    text = text.replace("\r\n", "\n")
    return "\n".join(without_mail(text.split("\n"))) if may_be_mail(text) else text


def may_be_mail(text: str) -> bool:
    """Whether there can be anything in a text that `without_mail` takes out."""
    quotes = text.startswith(">") or "\n>" in text or "\n >" in text
    return quotes or "-- \n" in text or "-- \r" in text or any(word in text for word in _TAIL_WORDS)


def without_mail(lines: list[str]) -> list[str]:
    """The lines without quoted messages (those with a line above that says who wrote), footers and signature."""
    end = next((at for at in range(len(lines)) if _is_tail(lines, at)), len(lines))
    kept: list[str] = []
    at = 0
    while at < end:
        if lines[at].startswith((">", " >")):
            stop = at
            while stop < end and (not lines[stop].strip() or lines[stop].lstrip().startswith(">")):
                stop += 1
            above = _wrote_above(kept)
            if above:
                del kept[-above:]
            else:
                kept += lines[at:stop]
            at = stop
        else:
            kept.append(lines[at])
            at += 1
    return kept


def _is_tail(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if line == _SIGNATURE:
        return len(lines) - at <= _SIGNATURE_LINES + 1
    return any(word in line for word in _TAIL_WORDS) and _TAIL.fullmatch(line.strip()) is not None


def _wrote_above(lines: list[str]) -> int:
    """How many lines at the end say who wrote what is quoted below them, with the empty ones behind them."""
    last = len(lines)
    while last and not lines[last - 1].strip():
        last -= 1
    if not last or not lines[last - 1].rstrip().endswith(":"):
        return 0
    for above in (1, 2):  # mail programs break that line in two
        if last >= above and _WROTE.fullmatch("\n".join(lines[last - above : last]).strip()):
            return len(lines) - last + above
    return 0
