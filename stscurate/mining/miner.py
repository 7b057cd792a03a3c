"""The negatives of anchors among candidates, by one similarity, and what a reranker or a curve says against some."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration import METHODS, Method, Texts
from stscurate.methods.hard_negatives import nearest_allowed
from stscurate.methods.known_relevance import Relevance
from stscurate.mining.positives import Positives
from stscurate.mining.rules import Rules
from stscurate.records import Tally
from stscurate.services.reranker import Reranker
from stscurate.tables import text_id

_SAMPLE = 2_000  # anchors whose negatives' lengths are told
_RERANKED = 4  # candidates that a reranker sees for each negative wanted

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Likely:
    """What a curve takes for relevant: from the probability `most` on; of texts with these vectors and lengths."""

    relevance: Relevance
    most: float
    vectors: NDArray[np.float32]
    lengths: Ints

    @property
    def by_reranker(self) -> bool:
        """Whether it takes a reranker's numbers."""
        return self.relevance.of["reranker"] is not None

    def unlikely(self, anchor: int, others: list[int]) -> list[int]:
        """Those of the others that it doesn't take for relevant to the anchor, by their vectors."""
        one, two = np.full(len(others), anchor), np.array(others, dtype=np.int64)
        sides = (self.vectors[one], self.lengths[one], self.vectors[two], self.lengths[two])
        found = self.relevance.by_vectors(*sides)
        return [other for other, chance in zip(others, found.tolist(), strict=True) if chance < self.most]

    def allows(self, anchor: int, other: int, number: float) -> bool:
        """Whether it doesn't take the other for relevant to the anchor, by the reranker's number."""
        lengths = (self.lengths[[anchor]], self.lengths[[other]])
        return float(self.relevance.curve.probability(np.array([number]), *lengths)[0]) < self.most


class Miner:
    """Finds the negatives of anchors among the candidates, by one similarity."""

    def __init__(
        self,
        found: Positives,
        rules: Rules,
        method: Method,
        texts: Texts,
        reranker: Reranker | None,
        seed: int,
        likely: Likely | None = None,
    ):
        self.found, self.rules, self.method, self.texts = found, rules, method, texts
        self.reranker, self.seed, self.likely = reranker, seed, likely
        self.positives: dict[int, list[int]] = {}
        for anchor, positive in found.pairs:
            self.positives.setdefault(anchor, []).append(positive)
        self.anchors = list(self.positives)

    def triplets(self, anchors: list[int], tally: Tally) -> Iterator[dict[str, Any]]:
        """Rows of schema TRIPLETS without spans: each anchor's positives with each of its negatives."""
        chosen, above, relevant = self._negatives(anchors)
        tally.count("candidates", "above_the_margin", above)
        if self.likely and not self.likely.by_reranker:
            tally.count("neighbours", "likely_relevant", relevant)
        texts = self.found.texts
        for anchor, negatives in zip(anchors, self._judged(anchors, chosen, tally), strict=True):
            own = self.positives[anchor]
            tally.count("negatives", "mined", len(negatives) * len(own))
            if len(negatives) < self.rules.number:
                tally.count("negatives", "too_few_to_be_had", (self.rules.number - len(negatives)) * len(own))
            if not negatives:
                tally.drop("no_negative", len(own))
            for positive in own:
                for negative in negatives:
                    row = {"anchor": texts[anchor], "positive": texts[positive], "negative": texts[negative]}
                    yield {"text_id": text_id(texts[anchor]), **row}

    def tally(self, lengths: Ints, plain: Texts) -> Tally:
        """What reading dropped, which similarity it is, and mean lengths (tokens that the model sees).

        plain: the texts for the bare cosine, whose negatives are told beside those of the method.
        """
        tally = Tally()
        tally.add(self.found.tally)
        tally.count("texts_by_similarity", self.method.name, len(self.texts))
        places = np.linspace(0, len(self.anchors) - 1, min(len(self.anchors), _SAMPLE)).astype(np.int64)
        sample = [self.anchors[place] for place in places.tolist()]
        bare = METHODS["cosine"].fit(plain.vectors, lengths)
        miners = {
            "cosine": Miner(self.found, self.rules, bare, plain, None, self.seed, self.likely),
            self.method.name: self,
        }
        tally.count("mean_tokens", "candidates", _mean(lengths[self.found.candidates]))
        for name, miner in miners.items():
            chosen, _, _ = miner._negatives(sample)
            taken = np.array([place for row in chosen for place in row[: self.rules.number]], dtype=np.int64)
            tally.count("mean_tokens", f"negatives_by_{name}", _mean(lengths[taken]))
        return tally

    def _negatives(self, anchors: list[int]) -> tuple[list[list[int]], int, int]:
        """Of each anchor its candidates in the order they are taken.

        And how many lay above the margin, and how many of the neighbours a curve takes for relevant.
        """
        first, last = self.rules.ranks
        wanted = self.rules.number * (_RERANKED if self.reranker else 1)
        sieve = self.likely if self.likely and not self.likely.by_reranker else None
        if self.rules.draw == "top" and not sieve:  # a sieve may want more of them
            last = min(last, first + wanted - 1)
        candidates = self.found.candidates
        nearest = nearest_allowed(
            self.method,
            self.texts[np.array(anchors)],
            self.texts[candidates],
            anchor_groups=self.found.groups[anchors],
            candidate_groups=self.found.groups[candidates],
            ceilings=self._ceilings(anchors),
            first=first,
            last=last,
        )
        chosen, relevant = [], 0
        for anchor, row in zip(anchors, nearest.places, strict=True):
            there = candidates[row[row >= 0]].tolist()
            if sieve:
                near, there = len(there), sieve.unlikely(anchor, there)
                relevant += near - len(there)
            if self.rules.draw == "random":
                chance = np.random.default_rng([self.seed, int(text_id(self.found.texts[anchor]), 16)])
                there = [there[place] for place in chance.permutation(len(there))[:wanted].tolist()]
            chosen.append(there[:wanted])
        return chosen, int(nearest.above.sum()), relevant

    def _ceilings(self, anchors: list[int]) -> Floats:
        if self.rules.margin is None:
            return np.full(len(anchors), np.inf)
        owner = [(row, positive) for row, anchor in enumerate(anchors) for positive in self.positives[anchor]]
        rows = np.array([row for row, _ in owner])
        one, two = self.texts[np.array(anchors)[rows]], self.texts[np.array([positive for _, positive in owner])]
        cosines = np.einsum("ij,ij->i", one.vectors, two.vectors, dtype=np.float64)
        lowest = np.full(len(anchors), np.inf)
        np.minimum.at(lowest, rows, self.method.correct(cosines, one.own, two.own))
        return np.asarray(lowest - np.abs(lowest) * self.rules.margin)  # also below a similarity that is negative

    def _judged(self, anchors: list[int], chosen: list[list[int]], tally: Tally) -> list[list[int]]:
        """Without those that the reranker takes for positives: by the margin, or by the curve of its numbers."""
        if self.reranker is None:
            return chosen
        texts, margin = self.found.texts, self.rules.margin or 0.0
        asked = [(anchor, other) for anchor, found in zip(anchors, chosen, strict=True) for other in found]
        asked += [(anchor, other) for anchor in anchors for other in self.positives[anchor]]
        numbers, _ = self.reranker.score([(texts[one], texts[two]) for one, two in asked])
        said = dict(zip(asked, numbers.tolist(), strict=True))
        kept = []
        for anchor, negatives in zip(anchors, chosen, strict=True):
            lowest = min(said[anchor, positive] for positive in self.positives[anchor])
            level = lowest - abs(lowest) * margin
            if self.likely and self.likely.by_reranker:
                left = [other for other in negatives if self.likely.allows(anchor, other, said[anchor, other])]
            else:
                left = [other for other in negatives if said[anchor, other] <= level]
            tally.count("reranker", "taken_for_positives", len(negatives) - len(left))
            kept.append(left[: self.rules.number])
        return kept


def _mean(lengths: Ints) -> int:
    return round(float(lengths.mean())) if len(lengths) else 0
