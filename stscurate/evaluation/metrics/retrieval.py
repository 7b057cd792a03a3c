"""How well each text finds the others of its group among all texts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TIED = 1e-6  # similarities this near are equal: float32 sums of equal texts differ by less
_BLOCK = 4_000_000  # similarities held at once
_STRICT, _RECALL, _GAIN = (5, 10), (1, 5, 10), 10


def retrieval_numbers(vectors: NDArray[np.float32], groups: Ints) -> tuple[Ints, dict[str, Floats]]:
    """The q texts whose group holds another, as places, and metric -> (q,) within 0 and 1.

    vectors: (n, d), rows of unit length or of zeros; groups: (n,). Of each text, all others are ranked by cosine, and
    those of its group are relevant; see `numbers_of`.
    """
    members: dict[int, list[int]] = {}
    for place, group in enumerate(groups.tolist()):
        members.setdefault(group, []).append(place)
    queries = np.array([place for place, group in enumerate(groups.tolist()) if len(members[group]) > 1], np.int64)
    rows: list[dict[str, float]] = []
    step = max(1, _BLOCK // len(vectors))
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        for query, similarities in zip(part.tolist(), vectors[part] @ vectors.T, strict=True):
            own = members[int(groups[query])]
            relevant = [place for place in own if place != query]
            rows.append(numbers_of(relevant_ranks(similarities[relevant], np.delete(similarities, own))))
    return queries, {name: np.array([row[name] for row in rows]) for name in rows[0]}


def relevant_ranks(relevant: NDArray[np.float32], others: NDArray[np.float32]) -> Ints:
    """Ranks, from 1 and rising, of m relevant texts among all, by their similarities, (m,), and those of the others.

    Ties count against the model: any other that is as similar (within 1e-6) stands before the relevant one.
    """
    falling = -np.sort(-relevant.astype(np.float64))
    before = (others[None].astype(np.float64) >= falling[:, None] - _TIED).sum(axis=1)
    return np.asarray(before + np.arange(1, len(falling) + 1), dtype=np.int64)


def numbers_of(ranks: Sequence[int] | Ints) -> dict[str, float]:
    """What the ranks of one query's m relevant texts, rising, are worth.

    strict accuracy: whether they are the first m (AnglE, Li and Li 2024, on captions in fives: the top five and the
    five are the same); @k: whether all are in the first k, never where there are more. recall@k: their share there.
    MRR: 1 over the first one's rank. nDCG@10: Järvelin and Kekäläinen 2002, gains 1, log2(rank + 1).
    """
    found, m = np.asarray(ranks, np.float64), len(ranks)
    ideal = (1 / np.log2(np.arange(1, min(m, _GAIN) + 1) + 1)).sum()
    return {
        "strict accuracy": float(found[-1] == m),
        **{f"strict accuracy@{k}": float(found[-1] <= k) for k in _STRICT},
        **{f"recall@{k}": float((found <= k).mean()) for k in _RECALL},
        "MRR": float(1 / found[0]),
        "nDCG@10": float((1 / np.log2(found[found <= _GAIN] + 1)).sum() / ideal),
    }
