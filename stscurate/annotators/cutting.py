"""Long texts are cut behind their head, which keeps the title of an issue: it stands first. The cut is marked."""

import math
import re

MARK = " [...]"  # behind a text whose end is left out, for models that are told about it
_LETTERS = 4  # ASCII characters counted as one token: an endpoint's tokenizer isn't known here
_WORD_END = re.compile(r"\s+\S{0,40}\Z")


def head(text: str, max_tokens: int) -> tuple[str, int]:
    """The text up to about `max_tokens` tokens, at the end of a word, with MARK; and the tokens left out.

    Four ASCII characters count as a token, and each other character as one.
    """
    limit = _LETTERS * max_tokens
    if len(text) <= max_tokens or _letters(text) <= limit:
        return text, 0
    used = stop = 0
    for stop, character in enumerate(text):  # noqa: B007 - where it stops is what is wanted
        used += 1 if character.isascii() else _LETTERS
        if used > limit:
            break
    kept = text[:stop]
    if not text[stop].isspace():
        kept = _WORD_END.sub("", kept) or kept
    return kept.rstrip() + MARK, math.ceil(_letters(text[len(kept) :]) / _LETTERS)


def tokens(text: str) -> float:
    """About how many tokens the text has, by the same count."""
    return _letters(text) / _LETTERS


def _letters(text: str) -> int:
    """The length in ASCII characters, others counted as four."""
    return len(text) if text.isascii() else sum(1 if character.isascii() else _LETTERS for character in text)
