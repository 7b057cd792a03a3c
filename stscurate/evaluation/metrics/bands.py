"""Rows by how long their texts are, by how much wording they share, and by subset: where a model is good or bad."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from stscurate.evaluation.scoring import Scored
from stscurate.methods.words import words

_TOKENS = (0, 16, 32, 64, 128, 256, 512)  # of the longer text; each band ends with the next number
_OVERLAP = (0.0, 0.2, 0.4, 0.6, 0.8)  # the last band ends with 1
Rows = NDArray[np.bool_]


def subsets(scored: Scored) -> Iterator[tuple[str, Rows]]:
    """Each subset of the set and its rows, (n,)."""
    names = np.array(scored.gold.subsets)
    for name in dict.fromkeys(scored.gold.subsets):
        yield name, names == name


def by_tokens(scored: Scored) -> Iterator[tuple[str, Rows]]:
    """Bands of the model's own tokens, special ones included, that the longer text of a pair has before any cut.

    None where tokens can't be counted.
    """
    if scored.tokens is None:
        return
    ends = (*_TOKENS[1:], np.inf)
    for low, high in zip(_TOKENS, ends, strict=True):
        name = f"up to {high}" if not low else f"above {low}" if high == np.inf else f"{low + 1}-{high}"
        yield name, (scored.tokens > low if low else scored.tokens >= 0) & (scored.tokens <= high)


def by_overlap(scored: Scored) -> Iterator[tuple[str, Rows]]:
    """Bands of the words that the two texts share: Jaccard similarity of their sets of words, 0 without any."""
    shares = word_overlap(scored.gold.pairs)
    for low in _OVERLAP:
        last = low == _OVERLAP[-1]
        high = 1.0 if last else round(low + 0.2, 1)
        yield f"{low:.1f}-{high:.1f}", (shares >= low) & ((shares <= high) if last else (shares < high))


def word_overlap(pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """Jaccard similarity of the two sets of words of each pair, (n,) within 0 and 1."""
    sets = {text: frozenset(words(text)) for pair in pairs for text in pair}
    return np.array([len(sets[one] & sets[two]) / max(len(sets[one] | sets[two]), 1) for one, two in pairs])
