"""Texts that stand on both sides of a boundary, and the rows that they spoil."""

import hashlib
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.texts import normalise

# In a model's folder: the text_digest of each text that it was trained on, one a line.
TRAINING_TEXTS = "training_texts.sha256"
_DIGEST = re.compile(rb"[0-9a-f]{64}")


def training_digests(folder: Path) -> set[str] | None:
    """What a model's folder has in TRAINING_TEXTS; None without that file.

    InputError where it holds none, or anything else: every row would pass for one that wasn't trained on.
    """
    path = folder / TRAINING_TEXTS
    if not path.is_file():
        return None
    lines = path.read_bytes().splitlines()
    if not lines or not all(map(_DIGEST.fullmatch, lines)):
        raise InputError(f"{path} is damaged, and tells nothing of what was trained on: copy the model again.")
    return {line.decode() for line in lines}


def leaked_rows(pairs: Sequence[tuple[str, str]], digests: Collection[str]) -> NDArray[np.bool_]:
    """Whether the `text_digest` of either text of each pair is one of `digests`; (n,) booleans."""
    known = frozenset(digests)
    return np.array([any(text_digest(text) in known for text in pair) for pair in pairs], dtype=bool)


def text_digest(text: str) -> str:
    """SHA-256 of the normalised text, in hexadecimal: tells that a text was trained on without telling the text."""
    return _sha256(text).hexdigest()


def text_key(text: str) -> bytes:
    """The first 16 bytes of the `text_digest`, to compare many texts by; of 2^32, two fall together once in 2^65."""
    return _sha256(text).digest()[:16]


def _sha256(text: str) -> "hashlib._Hash":
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass"))
