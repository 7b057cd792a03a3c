"""What ensembles of three small annotators are worth, without gold, with a little of it, and as a cascade.

    PYTHONPATH=. python benchmarks/ensemble_sts.py FOLDER --answers answers.sqlite --static MODEL [--set stsb-dev] ...

FOLDER holds stsb, sick and sts12_16 as published; MODEL is what benchmarks/static_model.py writes. What the annotators
say is computed once and kept in --answers. Printed for each set, as Markdown: Spearman with gold of each member and
each way to put them together without gold, and by how much it is above the best member on the same rows (95 % interval
of 1,000 paired bootstrap resamples, seed 0); the same calibrated to some gold and tested on the other pairs, means of
20 draws; and the cascade, with the language model as the dear member, and with the best member as the dear one.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from benchmarks.local_annotators import Rows
from benchmarks.members import MEMBERS, SETS, Floats, Said, options, rows_of, said, votes_table
from stscurate.annotators.cascade import Cascade, doubts
from stscurate.ensemble import aggregate
from stscurate.ensemble.calibration import CURVES
from stscurate.ensemble.factor import factor_weights, loadings
from stscurate.methods.correlation import spearman
from stscurate.methods.numbers import mid_ranks
from stscurate.methods.overlap import overlap
from stscurate.methods.words import words
from stscurate.services.answers import Answers

RESAMPLES, DRAWS = 1000, 20
GOLD = (100, 300, 1000)
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def main() -> None:
    """Parse, measure, print."""
    parser = options()
    parser.add_argument("--set", action="append", choices=SETS, help="one set (default: all but stsb-train)")
    given = parser.parse_args()
    with Answers(given.answers) as answers:
        for name in given.set or SETS[:-1]:
            rows = rows_of(name, given.folder)
            found = said(rows, answers, given.static)
            print(f"\n## {name}, {len(rows)} pairs\n", flush=True)
            without_gold(rows, found)
            with_gold(found)
            for dear in MEMBERS[:2]:
                cascade(rows, found, dear)


def without_gold(rows: Rows, found: Said) -> None:
    """Members and all ways that were tried."""
    ranks = np.stack([mid_ranks(column) for column in found.votes.T], axis=1)
    own = [spearman(column, found.gold) for column in ranks.T]
    best = ranks[:, int(np.argmax(own))]
    print(f"Best member: {MEMBERS[int(np.argmax(own))]}.\n")
    print("| without gold | Spearman | minus the best member | weights |\n|---|---|---|---|")
    for name, number in zip(MEMBERS, own, strict=True):
        print(f"| {name} | {number:.4f} | | |")
    for name, (score, weights) in ways(rows, found, ranks).items():
        low, high = interval(score, best, found.gold)
        number = spearman(score, found.gold)
        shown = "" if weights is None else ", ".join(f"{weight:.2f}" for weight in weights / weights.sum())
        print(f"| {name} | {number:.4f} | {number - max(own):+.4f} ({low:+.4f} to {high:+.4f}) | {shown} |", flush=True)


def ways(rows: Rows, found: Said, ranks: Floats) -> dict[str, tuple[Floats, Floats | None]]:
    """Each way's scores, and its weights where it has some."""
    from scipy.stats import norm

    in_letters, in_words = common(rows, overlap), common(rows, word_overlap)
    normal = np.asarray(norm.ppf(ranks))
    others = np.array([spearman(ranks[:, k], np.delete(ranks, k, axis=1).mean(axis=1)) for k in range(len(MEMBERS))])
    factor = factor_weights(ranks)
    votes = votes_table(found.votes)
    made: dict[str, tuple[Floats, Floats | None]] = {
        "mean of ranks": (ranks.mean(axis=1), None),
        "median of ranks": (np.median(ranks, axis=1), None),
        "mean of normal scores": (normal.mean(axis=1), None),
    }
    weighings = {
        "one factor, ranks": factor,
        "one factor, normal scores": factor_weights(normal),
        "one factor, halfway to equal": (factor + 1 / len(factor)) / 2,
        "leave-one-out agreement": others,
        "leave-one-out agreement, odds": others / (1 - others**2),
        "embeddings as one member": np.array([1.0, 0.5, 0.5]),
    }
    for name, shared in (("words", in_words), ("letters", in_letters)):
        loading = loadings(ranks, overlap=shared)
        weighings[f"one factor beyond shared {name}, loadings alone"] = loading
        for power in (1.0, 1.5, 2.0, 3.0):
            weighings[f"one factor beyond shared {name}, power {power:g}"] = (loading / (1 - loading**2)) ** power
    made |= {name: (ranks @ weights, weights) for name, weights in weighings.items()}
    made |= {name: (by(votes, name), None) for name in ("dawid-skene", "mace")}
    shares = {str(number): value for number, value in enumerate(in_letters.tolist())}
    made["`--method weighted`"] = (aggregate(votes, method="weighted", overlap=shares)["score"].to_numpy(), None)
    return made


def by(votes: pa.Table, method: str) -> Floats:
    """Scores of a method of the package."""
    return np.asarray(aggregate(votes, method=method)["score"].to_numpy())


def common(rows: Rows, measure: Callable[[str, str], float]) -> Floats:
    """(pairs,) how much the two texts share."""
    return np.array([measure(one, two) for one, two, _ in rows])


def word_overlap(text1: str, text2: str) -> float:
    """Jaccard similarity of the sets of words."""
    one, two = set(words(text1)), set(words(text2))
    return len(one & two) / max(len(one | two), 1)


def interval(score: Floats, other: Floats, gold: Floats) -> tuple[float, float]:
    """95 % interval of Spearman(score) - Spearman(other), by paired resamples."""
    rng = np.random.default_rng(0)
    apart = []
    for _ in range(RESAMPLES):
        at = rng.integers(0, len(gold), len(gold))
        apart.append(spearman(score[at], gold[at]) - spearman(other[at], gold[at]))
    low, high = np.quantile(apart, [0.025, 0.975])
    return float(low), float(high)


def with_gold(found: Said) -> None:
    """Calibrated to some gold, cross-fitted, tested on the other pairs."""
    scaled = (found.gold - found.gold.min()) / np.ptp(found.gold)
    votes = votes_table(found.votes)
    methods = [(method, curve) for method in ("mean", "weighted") for curve in CURVES]
    heads = " | ".join(f"{method}, {curve}" for method, curve in methods)
    print(f"\n| gold pairs | tested on | best member there | {heads} |\n|---|---|---|{'---|' * len(methods)}")
    for count in GOLD:
        if count + 100 > len(scaled):
            continue
        numbers = []
        for draw in range(DRAWS):
            known = np.random.default_rng(draw).permutation(len(scaled))[:count]
            rest = np.setdiff1d(np.arange(len(scaled)), known)
            gold = {str(number): float(scaled[number]) for number in known}
            own = [max(spearman(column[rest], scaled[rest]) for column in found.votes.T)]
            for method, curve in methods:
                score = aggregate(votes, method=method, gold=gold, curve=curve, seed=draw)["score"].to_numpy()
                own.append(spearman(score[rest], scaled[rest]))
            numbers.append(own)
        cells = " | ".join(f"{number:.4f}" for number in np.mean(numbers, axis=0))
        print(f"| {count} | {len(scaled) - count} | {cells} |", flush=True)


def cascade(rows: Rows, found: Said, dear: str) -> None:
    """The share of the pairs that one member is asked about, against Spearman; also with pairs by chance."""
    shares = dict(zip(map(str, range(len(rows))), common(rows, overlap).tolist(), strict=True))
    full = {method: spearman(scores(found, None, dear, method, shares), found.gold) for method in ("mean", "weighted")}
    print(f"\n| asked of {dear} | mean | of full | weighted | of full | by chance, weighted | of full |")
    print("|---|---|---|---|---|---|---|")
    doubt = doubts(votes_table(found.votes, leave_out=dear), [str(number) for number in range(len(rows))])
    for share in SHARES:
        some = Cascade(share, frozenset([dear]))
        numbers = []
        for flags, method in (
            (some.chosen(doubt, seed=0), "mean"),
            (some.chosen(doubt, seed=0), "weighted"),
            (some.chosen(np.zeros(len(rows)), seed=0), "weighted"),
        ):
            number = spearman(scores(found, flags, dear, method, shares), found.gold)
            numbers += [f"{number:.4f}", f"{100 * number / full[method]:.1f} %"]
        print(f"| {100 * share:.0f} % | {' | '.join(numbers)} |", flush=True)


def scores(found: Said, flags: np.ndarray | None, dear: str, method: str, shares: dict[str, float]) -> Floats:
    """Scores where `dear` has seen the flagged pairs."""
    votes = votes_table(found.votes, dear=dear, asked=flags)
    late = () if flags is None else (dear,)
    return np.asarray(aggregate(votes, method=method, dear=late, overlap=shares)["score"].to_numpy())


if __name__ == "__main__":
    main()
