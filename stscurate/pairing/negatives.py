"""Pairs that aren't duplicates: same repository, same split, another component, no reference to each other.

A share of them join an issue that has a duplicate to a near one, by BM25 or by an encoder, so that neither shared words
nor a shared subject alone give the answer, and so that having a duplicate somewhere doesn't either. The nearest three
neighbours are left alone: among them unnoticed duplicates are most likely. The others are drawn at random.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from math import comb
from random import Random
from typing import Any

from stscurate.errors import InputError
from stscurate.methods.calibration.saved import Calibration
from stscurate.pairing.corpus import Corpus
from stscurate.pairing.neighbours import Encoded, Ranking, by_words
from stscurate.records import Tally

_PASSED_OVER, _RANKS = 3, 20  # neighbours left alone, and the last rank used
_TRIES = 200  # random pairs looked at for each one wanted

Allowed = Callable[[int, int], bool]
Candidates = Iterator[tuple[int, int]]
Group = tuple[str, str]  # repository and split


@dataclass(frozen=True)
class Mix:
    """How many negatives there are for each positive, and the shares of those that are neighbours, 0 to 1.

    ceiling: where an encoder finds neighbours, no negative's similarity is as high, however it was drawn: such pairs
    are too often duplicates that nobody has marked. It is a cosine, or a similarity by `calibration`, of any scale.
    """

    ratio: float
    lexical_share: float
    encoder_share: float
    ceiling: float
    calibration: Calibration | None = None

    @property
    def settings(self) -> dict[str, float]:
        """What shapes the negatives; without an encoder there is no ceiling."""
        settings = {"negatives": self.ratio, "lexical_share": self.lexical_share, "encoder_share": self.encoder_share}
        return settings | ({"ceiling": self.ceiling} if self.encoder_share else {})

    def check(self) -> None:
        """InputError for numbers out of range."""
        if not 0 <= self.ratio < math.inf:
            raise InputError(
                f"negatives is {self.ratio}: give the number of negative pairs per positive one, 0 or more."
            )
        for name in ("lexical_share", "encoder_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}: give a share of the negative pairs, 0 to 1.")
        if self.lexical_share + self.encoder_share > 1 + 1e-9:
            raise InputError(
                f"lexical_share {self.lexical_share} and encoder_share {self.encoder_share} are more than all negative "
                "pairs: give two shares that add up to 1 or less."
            )
        scaled = self.calibration is not None and not self.calibration.method.maps
        if not (math.isfinite(self.ceiling) if scaled else 0 < self.ceiling <= 1):
            raise InputError(
                f"ceiling is {self.ceiling}: give a {'number' if scaled else 'cosine above 0, at most 1'}."
            )


@dataclass(frozen=True)
class Kind:
    """Hard negatives of one kind: its name in their origin, its share of all negatives, and who is near whom."""

    name: str
    share: float
    rank: Ranking


def negative_pairs(
    corpus: Corpus,
    positives: Sequence[Mapping[str, Any]],
    pools: Mapping[Group, list[int]],
    component: Sequence[int],
    tally: Tally,
    *,
    mix: Mix,
    encoded: Encoded | None,
    seed: int,
) -> Iterator[list[tuple[int, int, str, str]]]:
    """For each repository and split: (smaller index, larger index, kind, split) of its negatives.

    positives: rows of `pairs`; encoded: None where the mix wants no neighbours by an encoder.
    """
    used = {corpus.key(corpus.index[row["id1"].lower()], corpus.index[row["id2"].lower()]) for row in positives}
    sizes = Counter(component)
    told: dict[str, tuple[str, int]] = {}
    before: Counter[str] = Counter()  # positives of the split: rounding in many repositories must not add up
    for group, count in sorted(Counter((row["repository"], row["split"]) for row in positives).items()):
        split = group[1]
        wanted = round(mix.ratio * (before[split] + count)) - round(mix.ratio * before[split])
        before[split] += count
        kinds = [Kind("lexical", mix.lexical_share, by_words(corpus, pools[group]))]
        if encoded:
            kinds.append(Kind("encoder", mix.encoder_share, encoded.ranking(pools[group])))
            told.setdefault(group[0], encoded.ranked_by(group[0]))

        def allowed(one: int, other: int) -> bool:
            return (
                component[one] != component[other]
                and not corpus.refer_to_each_other(one, other)
                and corpus.key(one, other) not in used
                and (encoded is None or encoded.similarity(one, other) < mix.ceiling)
            )

        drawn = []
        anchors = [at for at in pools[group] if sizes[component[at]] > 1] or pools[group]
        for low, high, kind in draw(pools[group], anchors, allowed, wanted, kinds, Random(f"{seed} {group}")):
            used.add(corpus.key(low, high))
            drawn.append((low, high, kind, split))
        if len(drawn) < wanted:
            tally.count("negatives", "wanted_but_not_found", wanted - len(drawn))
        yield drawn
    for name, texts in told.values():
        tally.count("encoder", f"issues_ranked_by_{name}", texts)


def draw(
    pool: Sequence[int], anchors: Sequence[int], allowed: Allowed, wanted: int, kinds: Sequence[Kind], random: Random
) -> Iterator[tuple[int, int, str]]:
    """Up to `wanted` allowed pairs of two issues of the pool, the smaller index first, and their kind.

    Random pairs take the place of those that a kind lacks. `allowed` must no longer allow a pair that was given.
    """
    chance = random.random()  # rounded by chance: many small pools add up to the shares
    ends = [min(wanted, int(wanted * end + chance)) for end in accumulate(kind.share for kind in kinds)]
    quotas = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    taken = 0
    for kind, quota in zip(kinds, quotas, strict=True):
        found = _allowed(_near(anchors, kind.rank, allowed, random), allowed)
        for pair in islice(found, quota) if quota else ():
            taken += 1
            yield (*pair, kind.name)
    tries = _TRIES * min(wanted, comb(len(pool), 2))  # more than all pairs may be wanted
    for pair in islice(_allowed(_random(pool, tries, random), allowed), wanted - taken):
        yield (*pair, "random")


def _allowed(pairs: Candidates, allowed: Allowed) -> Candidates:
    return (pair for pair in pairs if allowed(*pair))


def _random(pool: Sequence[int], tries: int, random: Random) -> Candidates:
    for _ in range(tries if len(pool) > 1 else 0):
        low, high = sorted(random.sample(pool, 2))
        yield low, high


def _near(anchors: Sequence[int], rank: Ranking, allowed: Allowed, random: Random) -> Candidates:
    """For each anchor, in random order, a pair with one of its allowed neighbours; then with another, and so on."""
    order = list(anchors)
    random.shuffle(order)
    left = []
    for anchor, neighbours in rank(order):
        near = list(islice((other for other in neighbours if allowed(anchor, other)), _RANKS))
        left.append((anchor, near[_PASSED_OVER:] or near[-1:]))
        yield from _one_of(*left[-1], random)
    while any(near for _, near in left):
        for anchor, near in left:
            yield from _one_of(anchor, near, random)


def _one_of(anchor: int, near: list[int], random: Random) -> Candidates:
    if near:
        low, high = sorted((anchor, near.pop(random.randrange(len(near)))))
        yield low, high
