"""Dear annotators asked only about the pairs where the cheap ones disagree or doubt: less money for nearly the same.

The doubt of a pair, from the cheap annotators' votes alone, is the sum of four things that are 0 where nobody doubts:

- the population standard deviation of their numbers, placed on one scale of 0 to 1 as `aggregate` places them without
  gold (two can differ by .5 at most); where fewer than two have voted, the mean of it over the other pairs;
- half the widest `entropy` of a vote, in parts of that of a guess over its scale's whole numbers: a vote spread over
  all of the scale is as doubtful as two that differ as far as they can;
- the most probability that a vote lacks (`missing_mass`);
- the widest gap between an annotator's two orders.

With a curve of relevance twice p (1 - p) is added, p being the probability that it gives the pair: .5 at even odds.

A pair that no cheap annotator has voted on comes first, pairs of equal doubt come in an order drawn by the seed. So a
single cheap annotator that tells no probabilities leaves it to chance, or to the curve. The choice depends on the cheap
votes, the curve, the share and the seed alone, and a smaller share's pairs are among a larger one's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from stscurate.annotators.base import Pair, Plan
from stscurate.annotators.specs import Spec
from stscurate.errors import InputError
from stscurate.methods.doubt import own_doubt
from stscurate.methods.known_relevance import Relevance
from stscurate.methods.numbers import Flags, Floats, numbers_of, placed
from stscurate.methods.pair_similarity import distinct
from stscurate.progress import Progress
from stscurate.services.answers import Answers

_DEAR_KINDS = ("openai", "http")


@dataclass(frozen=True)
class Cascade:
    """share: of the pairs, 0 to 1, that dear annotators are asked about. dear: their names; the others are cheap.

    relevance: a curve, whose models are among those named `models`, or found by the names that it has.
    """

    share: float
    dear: frozenset[str]
    relevance: Relevance | None = None
    models: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """What shapes the votes."""
        told = {"relevance": self.relevance.settings} if self.relevance else {}
        return {"share": self.share, "dear": sorted(self.dear), **told}

    @property
    def inputs(self) -> dict[str, str]:
        """The curve's hash."""
        return {"relevance": self.relevance.fingerprint} if self.relevance else {}

    def open_question(
        self, pairs: Iterable[Pair], answers: Answers, progress: Progress, *, accept_corpus: bool = False
    ) -> Floats | None:
        """How far the curve leaves each pair open, (pairs,) from 0 to .5; None without one.

        InputError where its models aren't found, or its calibration is of another corpus.
        """
        if self.relevance is None:
            return None
        texts = [(pair.text1, pair.text2) for pair in pairs]
        models = self.relevance.opened(self.models, answers)
        chance = self.relevance.probability(texts, models, accept_corpus=accept_corpus, progress=progress)
        return np.asarray(2 * chance * (1 - chance))

    def check_question(self, pairs: Iterable[Pair], *, accept_corpus: bool = False) -> None:
        """InputError where `open_question` would refuse the curve; nothing is encoded."""
        if self.relevance is None:
            return
        encoder, reranker = self.relevance.opened(self.models)
        if self.relevance.calibration:
            texts, _ = distinct([(pair.text1, pair.text2) for pair in pairs])
            model = reranker.model if reranker else None
            self.relevance.hold_to(encoder.model, encoder.reads, texts, reranker=model, accept_corpus=accept_corpus)

    def count(self, pairs: int) -> int:
        """How many of so many pairs the dear ones are asked about."""
        return round(self.share * pairs)

    def chosen(self, doubt: Floats, *, seed: int) -> Flags:
        """(pairs,) which of them: the most doubtful."""
        shuffled = np.random.default_rng(seed).permutation(len(doubt))
        flags = np.zeros(len(doubt), dtype=np.bool_)
        flags[np.lexsort((shuffled, -doubt))[: self.count(len(doubt))]] = True
        return flags

    def planned(self, plan: Plan, asks: int) -> Plan:
        """The most that a dear annotator has yet to be asked, from its plan for all pairs, to which it gives `asks`
        votes: nobody knows yet which are chosen, nor which of those are asked in the same words.

        What is answered is taken to be of chosen pairs, as it is after a call with a smaller share.
        """
        paid = plan.known + plan.under_way
        due = max(min(round(self.share * asks), plan.due + paid) - paid, 0)
        part = due / plan.due if plan.due else 0.0
        tokens = None if plan.tokens is None else round(plan.tokens * part)
        cost, hours = (None if value is None else value * part for value in (plan.cost, plan.hours))
        return plan._replace(due=due, tokens=tokens, cost=cost, hours=hours)


def cascade_of(
    specs: Sequence[Spec], share: float | None, dear: Sequence[str], relevance: Relevance | None = None
) -> Cascade | None:
    """The cascade that is wanted, dear being endpoints unless annotators are named; None where none is.

    InputError for a share outside 0..1, names that no annotator has, or where none is cheap or none is dear.
    """
    if share is None:
        if dear:
            raise InputError("--dear names the annotators that --cascade asks less: give --cascade SHARE too.")
        if relevance:
            raise InputError("--relevance says which pairs --cascade asks about: give --cascade SHARE too.")
        return None
    if not 0 <= share <= 1:
        raise InputError(f"--cascade {share:g}: give the share of the pairs to ask the dear annotators, 0 to 1.")
    names = {spec.name: spec.kind for spec in specs}
    for name in dear:
        if name not in names:
            raise InputError(f"--dear {name}: no --llm has that name; there are {', '.join(names)}.")
        if names[name] == "file":
            raise InputError(f"--dear {name}: what stands in a file costs nothing more; name another annotator.")
    chosen = frozenset(dear or [name for name, kind in names.items() if kind in _DEAR_KINDS])
    if not chosen or chosen == names.keys():
        raise InputError(
            "--cascade needs cheap annotators and dear ones (endpoints, or those that --dear names): "
            f"all of {', '.join(names)} are {'dear' if chosen else 'cheap'}."
        )
    models = tuple(spec.model for spec in specs if spec.kind in ("embedding", "reranker"))
    return Cascade(share, chosen, relevance, models)


def doubts(votes: pa.Table, pair_ids: Sequence[str]) -> Floats:
    """(pairs,) how far the cheap annotators doubt each pair, inf where none has a number. votes: of schema VOTES."""
    place = {pair_id: number for number, pair_id in enumerate(pair_ids)}
    numbers = numbers_of(votes)
    at = np.array([place[pair_id] for pair_id in numbers.pair_ids], dtype=np.int64)[numbers.pair]
    value = placed(numbers)
    count = np.bincount(at, minlength=len(place))
    mean = np.bincount(at, weights=value, minlength=len(place)) / np.maximum(count, 1)
    spread = np.sqrt(np.bincount(at, weights=(value - mean[at]) ** 2, minlength=len(place)) / np.maximum(count, 1))
    several = count > 1
    spread[~several] = spread[several].mean() if several.any() else 0.0
    return np.asarray(np.where(count > 0, spread + own_doubt(votes, pair_ids).total, np.inf))
