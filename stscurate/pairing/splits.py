"""Dealing whole components to the splits, so that no issue and no text stands in two of them."""

from collections import Counter
from collections.abc import Sequence
from random import Random

from stscurate.records import SPLITS


def deal(component: Sequence[int], pairs: Counter[int], shares: Sequence[float], *, seed: int) -> dict[int, str]:
    """Component -> split, so that the splits' shares of the pairs come as near to `shares` as components allow.

    component: each issue's component; pairs: how many positive pairs each component holds. The others, which give
    negatives only, are dealt by their issues. Large ones are dealt first, each where most is lacking.
    """
    issues = Counter(component)
    random = Random(seed)
    dealt: dict[int, str] = {}
    for sizes in (pairs, Counter({name: size for name, size in issues.items() if name not in pairs})):
        order = sorted(sizes)
        random.shuffle(order)
        order.sort(key=lambda name: -sizes[name])  # stable: equal sizes stay shuffled
        held = dict.fromkeys(SPLITS, 0)
        wanted = {split: share * sizes.total() for split, share in zip(SPLITS, shares, strict=True) if share > 0}
        for name in order:
            split = max(wanted, key=lambda split: wanted[split] - held[split])
            dealt[name] = split
            held[split] += sizes[name]
    return dealt
