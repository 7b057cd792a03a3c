"""Dealing whole components to the splits, so that no issue and no text stands in two of them.

Each way gives component -> split. The shares are those of the positive pairs; components without any, which give
negatives only, follow.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import TypeVar

from stscurate.errors import InputError
from stscurate.pairing.corpus import Corpus
from stscurate.records import SPLITS

SPLIT_BY = ("component", "time", "repository")

Dealt = dict[int, str]
_Name = TypeVar("_Name", int, str)


def deal(component: Sequence[int], pairs: Counter[int], shares: Sequence[float], *, seed: int) -> Dealt:
    """By chance, so that the splits' shares of the pairs come as near to `shares` as components allow.

    component: each issue's component; pairs: how many positive pairs each component holds. The others are dealt by
    their issues.
    """
    random = Random(seed)
    others = Counter({name: size for name, size in Counter(component).items() if name not in pairs})
    return _fill(pairs, shares, random) | _fill(others, shares, random)


def deal_by_time(corpus: Corpus, component: Sequence[int], pairs: Counter[int], shares: Sequence[float]) -> Dealt:
    """By each component's latest issue: the oldest train, the newest test, each with its share of the pairs.

    Components without pairs are cut at the same moments; those without a date count as the oldest.
    """
    latest: dict[int, float] = defaultdict(lambda: -math.inf)
    for name, created in zip(component, corpus.created, strict=True):
        latest[name] = max(latest[name], created.timestamp() if created else -math.inf)
    order = sorted(pairs, key=lambda name: (latest[name], name))
    ends = {
        split: end * pairs.total()
        for split, share, end in zip(SPLITS, shares, accumulate(shares), strict=True)
        if share > 0
    }
    last = list(ends)[-1]
    until = dict.fromkeys(ends, -math.inf)
    dealt: Dealt = {}
    before = 0
    for name in order:
        middle = before + pairs[name] / 2  # a component falls where its middle falls
        split = next((at for at, end in ends.items() if middle < end), last)
        dealt[name] = split
        until[split] = latest[name]
        before += pairs[name]
    for name in set(component) - dealt.keys():
        dealt[name] = next((at for at, end in until.items() if end >= latest[name]), last)
    return dealt


def deal_by_repository(
    corpus: Corpus, component: Sequence[int], pairs: Counter[str], shares: Sequence[float], *, seed: int
) -> Dealt:
    """Whole repositories by chance; a component that stands in repositories of two splits is in none.

    pairs: positive pairs of each repository. InputError where fewer repositories have pairs than there are splits.
    """
    wanted = sum(share > 0 for share in shares)
    if len(pairs) < wanted:
        raise InputError(
            f"Duplicates are in {len(pairs)} repositories, too few for {wanted} splits: collect more of them, or split "
            "by component or by time."
        )
    random = Random(seed)
    others = Counter({name: size for name, size in Counter(corpus.repositories).items() if name not in pairs})
    home = _fill(pairs, shares, random) | _fill(others, shares, random)
    homes: dict[int, set[str]] = defaultdict(set)
    for name, repository in zip(component, corpus.repositories, strict=True):
        homes[name].add(home[repository])
    return {name: splits.pop() for name, splits in homes.items() if len(splits) == 1}


def _fill(sizes: Counter[_Name], shares: Sequence[float], random: Random) -> dict[_Name, str]:
    """Large ones are dealt first, each where most is lacking."""
    order = sorted(sizes)
    random.shuffle(order)
    order.sort(key=lambda name: -sizes[name])  # stable: equal sizes stay shuffled
    held = dict.fromkeys(SPLITS, 0)
    wanted = {split: share * sizes.total() for split, share in zip(SPLITS, shares, strict=True) if share > 0}
    dealt = {}
    for name in order:
        split = max(wanted, key=lambda split: wanted[split] - held[split])
        dealt[name] = split
        held[split] += sizes[name]
    return dealt
