"""Positive pairs and a model -> triplets with hard negatives, whose similarity is calibrated."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.methods.calibration import FEWEST, METHODS, Method, Texts, checked
from stscurate.methods.calibration.saved import Calibration, lengths_of
from stscurate.methods.hard_negatives import nearest_allowed
from stscurate.mining.positives import Positives, positives_of
from stscurate.progress import Progress, silent
from stscurate.records import TRIPLETS, Tally
from stscurate.services.answers import Answers
from stscurate.services.encoders import open_encoder
from stscurate.services.reranker import Reranker
from stscurate.store import Run, Stage
from stscurate.tables import Source, text_id

_SHARD = 2_000  # anchors
_SAMPLE = 2_000  # anchors whose negatives' lengths are told
_RERANKED = 4  # candidates that a reranker sees for each negative wanted

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rules:
    """Which negatives are taken.

    number: of each anchor. margin: a negative's similarity is at most p - |p| margin, p that of the anchor's least
    similar positive; None for any. ranks: the nearest and the farthest of the allowed ones, from 1. draw: the nearest
    of these, or by chance. near: Jaccard of near duplicates, which are never negatives. positive_score: from which on
    a pair is positive. both_sides: whether first texts are candidates too.
    """

    number: int = 3
    margin: float | None = 0.05
    ranks: tuple[int, int] = (1, 50)
    draw: Literal["top", "random"] = "top"
    near: float = 0.8
    positive_score: float = 0.8
    both_sides: bool = False

    def __post_init__(self) -> None:
        """Refuse what no negative can be taken by."""
        if self.number < 1:
            raise InputError(f"{self.number} negatives are none: give 1 or more.")
        if not 1 <= self.ranks[0] <= self.ranks[1] - self.number + 1:
            raise InputError(
                f"Ranks {self.ranks[0]} to {self.ranks[1]} hold no {self.number} negatives: give a wider range, from 1."
            )
        if self.margin is not None and self.margin < 0:
            raise InputError(f"A margin of {self.margin:g} would take negatives above the positive: give 0 or more.")

    @property
    def settings(self) -> dict[str, Any]:
        """As a stage's settings."""
        return {**vars(self), "ranks": list(self.ranks)}


def mine(
    run: Run,
    pairs: Source,
    *,
    corpus: Source | None = None,
    model: str = "all-MiniLM-L6-v2",
    tokenizer: str | None = None,
    rules: Rules | None = None,
    calibration: Calibration | None = None,
    similarity: Literal["auto", "cosine"] = "auto",
    accept_corpus: bool = False,
    reranker: str | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Entry:
    """A triplet for each positive pair and each of its anchor's negatives; the stage `triplets`.

    Similarity is that of `calibration`; else by s-norm, fitted to the texts themselves where they are 400 or more;
    else, or with similarity="cosine", the cosine: the counts say which. reranker: a cross-encoder that drops a
    negative to which it gives more than to the positive less the margin. Dropped: pairs that aren't positive, of other
    splits, or without any negative left. Embeddings and finished shards survive a kill.
    """
    rules = rules or Rules()
    found = positives_of(
        pairs, corpus, both_sides=rules.both_sides, positive_score=rules.positive_score, near=rules.near
    )
    with Answers(run.folder / "answers.sqlite", synced=False) as answers:
        encoder = open_encoder(model, answers=answers, tokenizer=tokenizer)
        judge = Reranker(reranker, answers=answers) if reranker else None
        inputs = pairs.inputs | (corpus.inputs if corpus else {}) | {encoder.model.name: encoder.model.fingerprint}
        inputs |= {judge.model.name: judge.model.fingerprint} if judge else {}
        inputs |= {"calibration": calibration.fingerprint} if calibration else {}
        settings = {"by": "mining", "model": encoder.model.name, "similarity": similarity, **rules.settings}
        settings |= {"reranker": judge.model.name} if judge else {}
        settings |= {"calibration": calibration.settings} if calibration else {}
        stage = run.stage("triplets", tables=["triplets"], inputs=inputs, settings=settings, seed=seed)
        if stage.entry:
            return stage.entry
        if calibration:  # before the vectors, which take long
            calibration.hold_to(encoder.model, encoder.reads, found.texts, accept_corpus=accept_corpus)
        lengths = lengths_of(encoder, found.texts)
        vectors = encoder.encode(found.texts, progress=progress)
        if calibration:
            method = calibration.method
        else:
            name = "s-norm" if similarity == "auto" and len(found.texts) >= FEWEST else "cosine"
            method = METHODS[name].fit(*checked(vectors, lengths))
        miner = Miner(found, rules, method, method.texts(vectors, lengths), judge, seed)
        told = miner.tally(lengths, Texts(vectors, np.zeros((len(vectors), 0))))
        _write(stage, miner, told, progress)
        return stage.commit()


def _write(stage: Stage, miner: "Miner", told: Tally, progress: Progress) -> None:
    anchors = miner.anchors
    for shard, start in enumerate(range(0, len(anchors), _SHARD)):
        progress("mined anchors", start, len(anchors))
        if stage.has(shard):
            continue
        tally = Tally()
        if shard == 0:
            tally.add(told)
        rows = list(miner.triplets(anchors[start : start + _SHARD], tally))
        columns = {name: [row.get(name) for row in rows] for name in TRIPLETS.names}
        stage.write(shard, {"triplets": pa.table(columns, schema=TRIPLETS)}, tally)
    progress("mined anchors", len(anchors), len(anchors))


class Miner:
    """Finds the negatives of anchors among the candidates, by one similarity."""

    def __init__(
        self, found: Positives, rules: Rules, method: Method, texts: Texts, reranker: Reranker | None, seed: int
    ):
        self.found, self.rules, self.method, self.texts = found, rules, method, texts
        self.reranker, self.seed = reranker, seed
        self.positives: dict[int, list[int]] = {}
        for anchor, positive in found.pairs:
            self.positives.setdefault(anchor, []).append(positive)
        self.anchors = list(self.positives)

    def triplets(self, anchors: list[int], tally: Tally) -> Iterator[dict[str, Any]]:
        """Rows of schema TRIPLETS without spans: each anchor's positives with each of its negatives."""
        chosen, above = self._negatives(anchors)
        tally.count("candidates", "above the margin", above)
        texts = self.found.texts
        for anchor, negatives in zip(anchors, self._judged(anchors, chosen, tally), strict=True):
            own = self.positives[anchor]
            tally.count("negatives", "mined", len(negatives) * len(own))
            if len(negatives) < self.rules.number:
                tally.count("negatives", "too few to be had", (self.rules.number - len(negatives)) * len(own))
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
        tally.count("texts by similarity", self.method.name, len(self.texts))
        places = np.linspace(0, len(self.anchors) - 1, min(len(self.anchors), _SAMPLE)).astype(np.int64)
        sample = [self.anchors[place] for place in places.tolist()]
        bare = METHODS["cosine"].fit(plain.vectors, lengths)
        miners = {"cosine": Miner(self.found, self.rules, bare, plain, None, self.seed), self.method.name: self}
        tally.count("mean tokens", "candidates", _mean(lengths[self.found.candidates]))
        for name, miner in miners.items():
            chosen, _ = miner._negatives(sample)
            taken = np.array([place for row in chosen for place in row[: self.rules.number]], dtype=np.int64)
            tally.count("mean tokens", f"negatives by {name}", _mean(lengths[taken]))
        return tally

    def _negatives(self, anchors: list[int]) -> tuple[list[list[int]], int]:
        """Of each anchor its candidates in the order they are taken, and how many lay above the margin."""
        first, last = self.rules.ranks
        wanted = self.rules.number * (_RERANKED if self.reranker else 1)
        if self.rules.draw == "top":
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
        chosen = []
        for anchor, row in zip(anchors, nearest.places, strict=True):
            there = candidates[row[row >= 0]].tolist()
            if self.rules.draw == "random":
                chance = np.random.default_rng([self.seed, int(text_id(self.found.texts[anchor]), 16)])
                there = [there[place] for place in chance.permutation(len(there))[:wanted].tolist()]
            chosen.append(there)
        return chosen, int(nearest.above.sum())

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
        """Without those that the reranker takes for positives."""
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
            left = [negative for negative in negatives if said[anchor, negative] <= level]
            tally.count("reranker", "taken for positives", len(negatives) - len(left))
            kept.append(left[: self.rules.number])
        return kept


def _mean(lengths: Ints) -> int:
    return round(float(lengths.mean())) if len(lengths) else 0
