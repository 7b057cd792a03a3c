"""How alike the two texts of each pair are to an embedding model: by the cosine, or as a calibration corrects it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration.saved import Calibration, lengths_of
from stscurate.methods.similarity import pair_cosines
from stscurate.progress import Progress, silent
from stscurate.services.encoders import TextEncoder

Pairs = Sequence[tuple[str, str]]


def pair_similarity(
    encoder: TextEncoder,
    pairs: Pairs,
    calibration: Calibration | None = None,
    *,
    accept_corpus: bool = False,
    progress: Progress = silent,
) -> NDArray[np.float64]:
    """Of n pairs, (n,); each distinct text is encoded once. Errors as of `encode` and `Calibration.hold_to`."""
    texts, sides = distinct(pairs)
    left, right = sides.T
    if calibration is None:
        vectors = encoder.encode(texts, progress=progress)
        return pair_cosines(vectors[left], vectors[right])
    calibration.hold_to(encoder.model, encoder.reads, texts, accept_corpus=accept_corpus)
    lengths = lengths_of(encoder, texts)
    vectors = encoder.encode(texts, progress=progress)
    return calibration.method.similarity(vectors[left], lengths[left], vectors[right], lengths[right])


def pair_lengths(encoder: TextEncoder, pairs: Pairs) -> NDArray[np.int64]:
    """Tokens that the model sees of both texts of n pairs, (n, 2). InputError where nobody knows them."""
    texts, sides = distinct(pairs)
    return lengths_of(encoder, texts)[sides]


def distinct(pairs: Pairs) -> tuple[list[str], NDArray[np.int64]]:
    """The different texts of n pairs, in order, and the places of each pair's two among them, (n, 2)."""
    place: dict[str, int] = {}
    sides = [[place.setdefault(text, len(place)) for text in pair] for pair in pairs]
    return list(place), np.array(sides, dtype=np.int64).reshape(-1, 2)
