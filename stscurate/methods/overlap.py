"""How much of their wording two texts share: what a careless annotator takes for similarity."""

from stscurate.methods.texts import normalise

_LETTERS = 3


def overlap(text1: str, text2: str) -> float:
    """Jaccard similarity of the two sets of three characters in a row, case and spaces evened out; 0..1.

    A text of fewer characters counts as one run. Letters rather than words: "play" and "playing" share most.

    >>> overlap("A cat", "a  rat")
    0.2
    """
    one, two = _runs(text1), _runs(text2)
    return len(one & two) / len(one | two)


def _runs(text: str) -> set[str]:
    text = normalise(text)
    return {text[at : at + _LETTERS] for at in range(max(len(text) - _LETTERS + 1, 1))}
