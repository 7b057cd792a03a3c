"""Texts that are nearly the same, by the share of word sequences that they have in common, without comparing all pairs.

Exact, so that a split can be proved free of them: prefix filtering (Chaudhuri et al. 2006; Bayardo et al. 2007)
rules out only pairs that can't reach the threshold, where MinHash would miss some. Of two sets whose Jaccard similarity
is t or more, the rarest (1 - t) of each share a member, and most of the rarest sequences stand in one text alone.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.words import words

LEAST = 0.5  # below, texts aren't nearly the same, and few pairs could be ruled out
_WORDS = 5  # of a sequence
_BLOCK = 1_024  # texts compared with all at a time
_PAIRS = 65_536  # pairs verified at a time
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Pairs = NDArray[np.int64]


def near_duplicates(texts: Sequence[str], *, threshold: float = 0.8) -> tuple[Pairs, NDArray[np.float64]]:
    """All pairs of texts whose sets of `shingles` have a Jaccard similarity of `threshold` or more.

    Back come (m, 2) indices, the smaller first, in order, and the similarities (m,). A text without any word is near
    to none. The time grows with the texts' length and with the pairs found: give each text once.
    InputError where the threshold isn't within 0.5 and 1.
    """
    from scipy.sparse import csr_array

    if not LEAST <= threshold <= 1:
        raise InputError(f"The threshold of near duplicates is {threshold}: give a similarity from {LEAST} to 1.")
    sets = _hashed(texts)
    sizes = np.array([len(found) for found in sets], dtype=np.int64)
    ranks, common = _by_rarity(sets)
    owner = np.repeat(np.arange(len(texts)), sizes)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # 1e-9: rounding must not shorten a prefix
    prefix = sizes - np.ceil(threshold * sizes - 1e-9).astype(np.int64) + 1
    first = (place < prefix[owner]) & common

    def matrix(kept: NDArray[np.bool_]) -> csr_array:
        entries = (np.ones(int(kept.sum()), dtype=np.int32), (owner[kept], ranks[kept]))
        return csr_array(entries, shape=(len(texts), int(ranks.max(initial=-1)) + 1))

    whole, rare = matrix(common), matrix(first)
    turned = rare.T.tocsr()
    found = [np.empty((0, 2), dtype=np.int64)]
    similarity = [np.empty(0)]
    for start in range(0, len(texts), _BLOCK):
        sharing = (rare[start : start + _BLOCK] @ turned).tocoo()
        pairs = np.stack([sharing.row + start, sharing.col], axis=1).astype(np.int64)
        smaller, larger = np.sort(sizes[pairs], axis=1).T
        pairs = pairs[(pairs[:, 0] < pairs[:, 1]) & (smaller >= threshold * larger - 1e-9)]
        for part in (pairs[at : at + _PAIRS] for at in range(0, len(pairs), _PAIRS)):
            shared = np.asarray(whole[part[:, 0]].multiply(whole[part[:, 1]]).sum(axis=1)).ravel()
            jaccard = shared / (sizes[part].sum(axis=1) - shared)
            found.append(part[jaccard >= threshold])
            similarity.append(jaccard[jaccard >= threshold])
    pairs, values = np.concatenate(found), np.concatenate(similarity)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], values[order]


def shingles(text: str) -> set[tuple[str, ...]]:
    """The sequences of five words in a text; of a shorter text, all its words as one.

    Case, punctuation and white space don't count; in scripts written without spaces each character is a word.

    >>> sorted(shingles("The file's size: 0 bytes."))
    [('file', 's', 'size', '0', 'bytes'), ('the', 'file', 's', 'size', '0')]
    """
    found = words(text)
    return {tuple(found[at : at + _WORDS]) for at in range(max(len(found) - _WORDS + 1, min(len(found), 1)))}


def _hashed(texts: Sequence[str]) -> list[NDArray[np.uint64]]:
    """The shingles of each text as sorted numbers of 64 bits: among a million, two fall together once in 30 million."""
    numbers: dict[str, int] = {}
    sets = []
    for text in texts:
        found = words(text)
        for word in found:
            if word not in numbers:
                digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                numbers[word] = int.from_bytes(digest, "little")
        coded = np.array([numbers[word] for word in found], dtype=np.uint64)
        width = min(_WORDS, len(found))
        total = np.full(len(found) - width + 1 if width else 0, width, dtype=np.uint64)
        for at in range(width):
            total = total * _FACTOR + coded[at : len(coded) - width + 1 + at]
        sets.append(np.unique(total))
    return sets


def _by_rarity(sets: list[NDArray[np.uint64]]) -> tuple[Pairs, NDArray[np.bool_]]:
    """The shingles of all texts, one after another, as ranks: rarest first within each text; and which stand in two."""
    flat = np.concatenate([np.empty(0, dtype=np.uint64), *sets])
    _, ids, counts = np.unique(flat, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(counts))  # equally rare ones in the order of their numbers
    ranks = rank[ids]
    owner = np.repeat(np.arange(len(sets)), [len(found) for found in sets])
    order = np.lexsort((ranks, owner))
    return ranks[order], (counts > 1)[ids][order]
