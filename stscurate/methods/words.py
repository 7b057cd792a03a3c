"""Words of any script, by Unicode, for work that needs no model's tokens."""

import re
import unicodedata
from functools import cache

from stscurate.methods.texts import normalise

# Han, Kana and Bopomofo are written without spaces: each character stands for itself.
_SINGLE = "\u3041-\u30ff\u3105-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# So are Thai, Lao, Burmese and Khmer, whose letters join into words that only a dictionary tells apart.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_ASCII_SPAN = re.compile(r"\w+|[^\w\s]+", re.ASCII)
_SPAN = re.Match.span


def word_spans(text: str) -> list[tuple[int, int]]:
    """(start, stop) in characters of each word, run of punctuation, or character of a script without spaces.

    >>> word_spans("a cat, 猫です")
    [(0, 1), (2, 5), (5, 6), (7, 8), (8, 9), (9, 10)]
    """
    if text.isascii():  # the same spans, in half of the time
        return list(map(_SPAN, _ASCII_SPAN.finditer(text)))
    spans = list(map(_SPAN, _pattern().finditer(text)))
    if _UNSPACED.search(text):
        parts = _characters()
        return [part.span() for start, stop in spans for part in parts.finditer(text, start, stop)]
    return spans


def words(text: str) -> list[str]:
    """The words of the normalised text, without punctuation; characters in scripts that are written without spaces.

    >>> words("The file's EMPTY?")
    ['the', 'file', 's', 'empty']
    """
    text = normalise(text)
    if text.isascii():  # the same words, in a tenth of the time
        return _ASCII_WORD.findall(text)
    found = [word for word in _pattern().findall(text) if word[0].isalnum() or word[0] == "_"]
    if _UNSPACED.search(text):
        return [part for word in found for part in (word if _UNSPACED.search(word) else [word])]
    return found


@cache
def _marks() -> str:
    # \w lacks the marks that belong to the letter before (vowel signs, accents); re has no class for them.
    return "".join(char for char in map(chr, range(0x300, 0x20000)) if unicodedata.category(char)[0] == "M")


@cache
def _characters() -> re.Pattern[str]:
    """A character of a script without spaces, with its marks; all else as it is."""
    unspaced = _UNSPACED.pattern
    return re.compile(rf"{unspaced}[{_marks()}]*|[^{unspaced[1:-1]}]+")


@cache
def _pattern() -> re.Pattern[str]:
    marks = _marks()
    single, letters = rf"[{_SINGLE}][{marks}]*", rf"[^\W{_SINGLE}]"
    return re.compile(rf"{single}|{letters}+(?:[{marks}]+{letters}*)*|[^\w\s]+")
