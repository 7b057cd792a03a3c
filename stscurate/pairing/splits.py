"""Dealing whole components to the splits, so that no issue and no text stands in two of them.

Each way gives component -> split. The shares are those of the positive pairs; components without any, which give
negatives only, follow.
"""

import math
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, permutations
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
    splits = list(ends)
    until = dict.fromkeys(ends, -math.inf)
    dealt: Dealt = {}
    before, now = 0, 0
    for left, name in zip(range(len(order), 0, -1), order, strict=True):
        middle = before + pairs[name] / 2  # a component falls where its middle falls, but no split stays empty for it
        if before and (left < len(splits) - now or (middle >= ends[splits[now]] and now < len(splits) - 1)):
            now += 1
        dealt[name] = splits[now]
        until[splits[now]] = latest[name]
        before += pairs[name]
    for name in set(component) - dealt.keys():
        dealt[name] = next((at for at, end in until.items() if end >= latest[name]), splits[-1])
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
    """Large ones are dealt first, each where most is lacking, and then evened out; no split is left empty for no need.

    What a split holds too much or too little is less than the largest size, unless it would have been empty, and no
    move of one nor exchange of two would bring two splits nearer to their shares.
    """
    order = sorted(sizes)
    random.shuffle(order)
    order.sort(key=lambda name: -sizes[name])  # stable: equal sizes stay shuffled
    wanted = {split: share * sizes.total() for split, share in zip(SPLITS, shares, strict=True) if share > 0}
    held: dict[str, dict[int, list[_Name]]] = {split: defaultdict(list) for split in wanted}  # split -> size -> names
    over = {split: -share for split, share in wanted.items()}
    for left, name in zip(range(len(order), 0, -1), order, strict=True):
        empty = [split for split in held if not held[split]]
        split = min(empty if left <= len(empty) else held, key=lambda split: over[split])
        held[split][sizes[name]].append(name)
        over[split] += sizes[name]
    _even_out(held, over)
    return {name: split for split, by_size in held.items() for names in by_size.values() for name in names}


def _even_out(held: dict[str, dict[int, list[_Name]]], over: dict[str, float]) -> None:
    """Move one to another split, or exchange two, as long as that brings these two splits nearer to their shares.

    over: what each split holds too much. What moves is less than the difference between the two, so neither gets
    further from its share than one of them was.
    """
    while moves := [move for pair in permutations(held, 2) for move in _moves(held, over, *pair)]:
        _, one, other, given, returned = max(moves)
        for source, target, what in ((one, other, given), (other, one, returned)):
            if what:
                held[target][what].append(held[source][what].pop())
                if not held[source][what]:
                    del held[source][what]
                over[source] -= what
                over[target] += what


def _moves(
    held: dict[str, dict[int, list[_Name]]], over: dict[str, float], one: str, other: str
) -> Iterator[tuple[float, str, str, int, int]]:
    """(gain, one, other, size given, size returned or 0): of each size that one has, what best comes back."""
    gap = over[one] - over[other]
    alone = sum(map(len, held[one].values())) == 1  # a split isn't emptied
    back = sorted(held[other]) if alone else [0, *sorted(held[other])]
    for given in held[one]:
        at = bisect(back, given - gap / 2)  # of half the gap, most is gained
        for returned in back[max(at - 1, 0) : at + 1]:
            gain = (given - returned) * (gap - (given - returned))
            if gain > 1e-6:  # less is rounding
                yield gain, one, other, given, returned
