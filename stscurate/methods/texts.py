"""What a text is when spelling, case and spaces don't count."""

import unicodedata


def normalise(text: str) -> str:
    """NFKC, casefolded, runs of whitespace as one space, none at the ends: equal texts are copies of each other."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
