"""Texts that stand on both sides of a boundary, and the rows that they spoil."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.texts import normalise

# In a model's folder: the text_digest of each text that it was trained on, one a line.
TRAINING_TEXTS = "training_texts.sha256"


def shared_texts(left: Iterable[str], right: Iterable[str]) -> set[str]:
    """The texts that stand in both, in their normalised form (methods.texts.normalise)."""
    return {normalise(text) for text in left} & {normalise(text) for text in right}


def leaked_rows(
    pairs: Sequence[tuple[str, str]], texts: Collection[str], *, key: Callable[[str], str] = normalise
) -> NDArray[np.bool_]:
    """Whether either text of each pair is one of `texts`, which hold `key` of each text; (n,) booleans."""
    known = frozenset(texts)
    return np.array([any(key(text) in known for text in pair) for pair in pairs], dtype=bool)


def text_digest(text: str) -> str:
    """SHA-256 of the normalised text, in hexadecimal: tells that a text was trained on without telling the text."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()
