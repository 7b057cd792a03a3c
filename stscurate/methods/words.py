"""Words of any script, by Unicode, for work that needs no model's tokens."""

import re
import unicodedata
from functools import cache

# Han, Kana and Bopomofo are written without spaces: each character stands for itself.
_SINGLE = "\u3041-\u30ff\u3105-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"


def word_spans(text: str) -> list[tuple[int, int]]:
    """(start, stop) in characters of each word, run of punctuation, or single Chinese or Japanese character."""
    return [match.span() for match in _pattern().finditer(text)]


@cache
def _pattern() -> re.Pattern[str]:
    # \w lacks the marks that belong to the letter before (vowel signs, accents); re has no class for them.
    marks = "".join(char for char in map(chr, range(0x300, 0x20000)) if unicodedata.category(char)[0] == "M")
    single, letters = rf"[{_SINGLE}][{marks}]*", rf"[^\W{_SINGLE}]"
    return re.compile(rf"{single}|{letters}+(?:[{marks}]+{letters}*)*|[^\w\s]+")
