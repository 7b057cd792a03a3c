"""How many words two texts share: what a careless annotator takes for similarity."""

from stscurate.methods.words import words


def overlap(text1: str, text2: str) -> float:
    """Jaccard similarity of the two sets of words, 0..1; 0 where neither has any.

    >>> overlap("A cat sleeps.", "The cat sleeps!")
    0.5
    """
    one, two = set(words(text1)), set(words(text2))
    return len(one & two) / len(one | two) if one or two else 0.0
