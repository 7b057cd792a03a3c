"""Texts that are nearly the same, by the share of word sequences that they have in common, without comparing all pairs.

Exact, so that a split can be proved free of them: prefix filtering (Chaudhuri et al. 2006; Bayardo et al. 2007)
rules out only pairs that can't reach the threshold, where MinHash would miss some. Of two sets whose Jaccard similarity
is t or more, the rarest (1 - t) of each share a member, and most of the rarest sequences stand in one text alone.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.words import words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LEAST = 0.5  # below, texts aren't nearly the same, and few pairs could be ruled out
_WORDS = 5  # of a sequence
_BLOCK = 1_024  # texts compared with all at a time
_WORDS_KEPT = 500_000  # whose numbers are remembered
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
    flat, sizes = _joined(_hashed(texts))
    ranks, common = _by_rarity(flat, sizes)
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


class NearTexts:
    """Texts held to find those near to others, as `near_duplicates` does, where the others don't fit into memory.

    texts: read once, in blocks; what is held of them is their shingles' numbers. The order that the prefixes need is by
    how many of these texts hold a shingle; one that none of them holds is rarer than all.
    """

    def __init__(self, texts: Iterable[str], *, threshold: float):
        self._threshold = threshold
        shingles, self._sizes = _joined(_hashed(texts))
        self._known, ids, counts = np.unique(shingles, return_inverse=True, return_counts=True)
        del shingles
        self._rank = np.empty(len(counts), dtype=np.int32)
        self._rank[np.argsort(counts, kind="stable")] = np.arange(len(counts), dtype=np.int32)
        self._whole, rare = self._matrices(self._rank[ids], self._sizes, np.zeros(len(self._sizes), dtype=np.int64))
        self._rare = rare.T.tocsr()

    def near(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """(places among `texts`, places among those held, similarities) of all pairs that are near, in order."""
        flat, sizes = _joined(_hashed(texts))
        place = np.minimum(np.searchsorted(self._known, flat), max(len(self._known) - 1, 0))
        known = self._known[place] == flat if len(self._known) else np.zeros(len(flat), dtype=bool)
        owner = np.repeat(np.arange(len(texts)), sizes)
        held = np.bincount(owner[known], minlength=len(texts))
        whole, rare = self._matrices(self._rank[place[known]], held, sizes - held)
        sharing = (rare @ self._rare).tocoo()
        rows, others = sharing.row.astype(np.int64), sharing.col.astype(np.int64)
        smaller, larger = np.sort(np.stack([sizes[rows], self._sizes[others]]), axis=0)
        kept = smaller >= self._threshold * larger - 1e-9
        rows, others = rows[kept], others[kept]
        values = np.empty(len(rows))
        for start in range(0, len(rows), _PAIRS):
            part = slice(start, start + _PAIRS)
            shared = np.asarray(whole[rows[part]].multiply(self._whole[others[part]]).sum(axis=1)).ravel()
            values[part] = shared / (sizes[rows[part]] + self._sizes[others[part]] - shared)
        order = np.lexsort((others, rows))
        order = order[values[order] >= self._threshold]
        return rows[order], others[order], values[order]

    def _matrices(self, ranks: NDArray[np.int32], held: Pairs, unheld: Pairs) -> "tuple[csr_array, csr_array]":
        """Texts by all of their shingles that are held, and by those in their prefixes; each text's ranks stand
        together, `held` of them, and it has `unheld` others, which stand before them in its prefix.
        """
        from scipy.sparse import csr_array

        ends = np.concatenate([[0], np.cumsum(held)])
        whole = csr_array((np.ones(len(ranks), dtype=np.int8), ranks, ends), shape=(len(held), len(self._known)))
        whole.sort_indices()
        sizes = held + unheld
        # 1e-9: rounding must not shorten a prefix
        prefix = sizes - np.ceil(self._threshold * sizes - 1e-9).astype(np.int64) + 1 - unheld
        first = np.arange(len(ranks)) - np.repeat(ends[:-1], held) < np.repeat(prefix, held)
        counts = np.bincount(np.repeat(np.arange(len(held)), held)[first], minlength=len(held))
        ends = np.concatenate([[0], np.cumsum(counts)])
        return whole, csr_array(
            (np.ones(int(ends[-1]), dtype=np.int32), whole.indices[first], ends), shape=(len(held), len(self._known))
        )


def shingles(text: str) -> set[tuple[str, ...]]:
    """The sequences of five words in a text; of a shorter text, all its words as one.

    Case, punctuation and white space don't count; in scripts written without spaces each character is a word.

    >>> sorted(shingles("The file's size: 0 bytes."))
    [('file', 's', 'size', '0', 'bytes'), ('the', 'file', 's', 'size', '0')]
    """
    found = words(text)
    return {tuple(found[at : at + _WORDS]) for at in range(max(len(found) - _WORDS + 1, min(len(found), 1)))}


def _hashed(texts: Iterable[str]) -> Iterator[tuple[NDArray[np.uint64], Pairs]]:
    """The shingles of each text as sorted numbers of 64 bits: among a million, two fall together once in 30 million.

    A block of texts at a time: their numbers one after another, and how many each text has.
    """
    left = iter(texts)
    numbers: dict[str, int] = {}
    while block := list(islice(left, _BLOCK)):
        if len(numbers) > _WORDS_KEPT:
            numbers.clear()
        found = [words(text) for text in block]
        flat = [word for one in found for word in one]
        for word in set(flat) - numbers.keys():
            digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            numbers[word] = int.from_bytes(digest, "little")
        coded = np.fromiter((numbers[word] for word in flat), np.uint64, len(flat))
        yield _sequences(coded, np.array([len(one) for one in found], dtype=np.int64))


def _sequences(coded: NDArray[np.uint64], lengths: Pairs) -> tuple[NDArray[np.uint64], Pairs]:
    """Of the words of texts of these lengths, one after another, the sequences of five, each once; and their counts."""
    width = np.minimum(_WORDS, lengths)
    counts = np.where(width, lengths - width + 1, 0)
    owner = np.repeat(np.arange(len(lengths)), counts)
    begin = np.repeat(np.cumsum(lengths) - lengths - np.cumsum(counts) + counts, counts) + np.arange(len(owner))
    total = width[owner].astype(np.uint64)
    for at in range(_WORDS):
        longer = at < width[owner]
        total[longer] = total[longer] * _FACTOR + coded[begin[longer] + at]
    order = np.lexsort((total, owner))
    total, owner = total[order], owner[order]
    new = np.ones(len(total), dtype=bool)
    new[1:] = (total[1:] != total[:-1]) | (owner[1:] != owner[:-1])
    return total[new], np.bincount(owner[new], minlength=len(lengths))


def _by_rarity(flat: NDArray[np.uint64], sizes: Pairs) -> tuple[Pairs, NDArray[np.bool_]]:
    """The shingles of all texts, one after another, as ranks: rarest first within each text; and which stand in two."""
    _, ids, counts = np.unique(flat, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(counts))  # equally rare ones in the order of their numbers
    ranks = rank[ids]
    order = np.lexsort((ranks, np.repeat(np.arange(len(sizes)), sizes)))
    return ranks[order], (counts > 1)[ids][order]


def _joined(blocks: Iterable[tuple[NDArray[np.uint64], Pairs]]) -> tuple[NDArray[np.uint64], Pairs]:
    flat, sizes = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.int64)]
    for shingles, counts in blocks:
        flat.append(shingles)
        sizes.append(counts)
    return np.concatenate(flat), np.concatenate(sizes)
