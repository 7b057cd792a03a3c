from __future__ import annotations

import numpy as np
import pytest

from stscurate.ensemble import aggregate
from stscurate.ensemble.categorical import Votes, binned, dawid_skene, expected, mace, trust
from stscurate.errors import InputError
from tests.ensemble.made import table, vote


def made(
    seed: int, pairs: int = 120, annotators: int = 4, bins: int = 3, missing: float = 0.2
) -> tuple[Votes, np.ndarray]:
    """Votes of annotators who are right with 90, 75, 60 ... %, and the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(bins, size=pairs)
    right = rng.random((pairs, annotators)) < np.maximum(0.9 - 0.15 * np.arange(annotators), 0.4)
    label = np.where(right, truth[:, None], rng.integers(bins, size=(pairs, annotators)))
    pair, annotator = np.nonzero(rng.random(label.shape) >= missing)
    return Votes(pair, annotator, label[pair, annotator], pairs, annotators, bins), truth


@pytest.mark.filterwarnings("ignore:The (inplace|copy) keyword")  # crowd-kit 1.4.2 on pandas 3.1
@pytest.mark.parametrize("seed", range(2))
def test_dawid_skene_equals_crowd_kits(seed: int) -> None:
    aggregation = pytest.importorskip("crowdkit.aggregation", reason="crowd-kit isn't installed")
    import pandas as pd

    votes, _ = made(seed)
    frame = pd.DataFrame({"task": votes.pair, "worker": votes.annotator, "label": votes.label})
    peer = aggregation.DawidSkene(n_iter=100, tol=-1e9).fit_predict_proba(frame).sort_index(axis=0).sort_index(axis=1)
    seen = np.unique(votes.pair)
    assert dawid_skene(votes)[seen] == pytest.approx(peer.to_numpy(), abs=1e-3)


def slow_round(votes: Votes, classes: np.ndarray) -> np.ndarray:
    """One round of expectation and maximisation by loops over votes."""
    prior = classes.sum(axis=0) / classes.sum()
    confusion = np.zeros((votes.annotators, votes.bins, votes.bins))
    for pair, annotator, label in zip(votes.pair, votes.annotator, votes.label, strict=True):
        confusion[annotator, :, label] += classes[pair]
    confusion = np.maximum(confusion, 1e-10)
    confusion /= confusion.sum(axis=2, keepdims=True)
    found = np.tile(prior, (votes.pairs, 1))
    for pair, annotator, label in zip(votes.pair, votes.annotator, votes.label, strict=True):
        found[pair] *= confusion[annotator, :, label]
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def test_the_end_stays_as_it_is_in_one_more_round_of_a_slow_loop() -> None:
    votes, truth = made(5, pairs=300)
    classes = dawid_skene(votes)
    assert slow_round(votes, classes) == pytest.approx(classes, abs=1e-4)
    assert np.mean(classes.argmax(axis=1) == truth) > 0.85


def test_a_thousand_votes_on_a_pair_dont_underflow() -> None:
    rng = np.random.default_rng(0)
    pair, annotator = np.repeat(np.arange(4), 1000), np.tile(np.arange(1000), 4)
    votes = Votes(pair, annotator, (pair + (rng.random(4000) < 0.3)) % 2, 4, 1000, 2)
    classes = dawid_skene(votes)
    assert np.isfinite(classes).all()
    assert classes.argmax(axis=1).tolist() == [0, 1, 0, 1]


def test_bins_are_the_digits_and_a_tie_goes_to_the_even_class() -> None:
    value = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 0.1, 0.3, 0.29])
    at = np.arange(len(value))
    found = binned(at, np.zeros_like(at), value, pairs=len(value), annotators=1, bins=6)
    assert found.label.tolist() == [0, 1, 2, 3, 4, 5, 0, 2, 1]
    with pytest.raises(InputError, match="--bins 1: votes are cut into two classes at least"):
        binned(at, at, value, pairs=9, annotators=9, bins=1)


def test_unanimous_votes_win_whatever_the_model_says() -> None:
    votes = Votes(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 0]), np.array([2, 2, 0, 1, 1]), 4, 2, 3)
    classes = np.full((4, 3), 1 / 3)
    assert expected(votes, classes)[:3].tolist() == pytest.approx([1.0, 0.5, 0.5])
    assert np.isnan(expected(votes, classes)[3])


@pytest.mark.parametrize("method", ["dawid-skene", "mace"])
def test_through_aggregate_unanimous_and_lone_votes_keep_their_class(method: str) -> None:
    rng = np.random.default_rng(1)
    rows = [vote(f"p{pair}", name, float(rng.integers(6))) for pair in range(60) for name in "abc"]
    rows += [vote("all", name, 4.0) for name in "abc"] + [vote("alone", "b", 1.0), vote("none", "a", None)]
    found = {row["pair_id"]: row for row in aggregate(table(rows), method=method).to_pylist()}
    assert found["all"]["score"] == pytest.approx(0.8)
    assert found["alone"]["score"] == pytest.approx(0.2)
    assert found["alone"]["spread"] is None
    assert "none" not in found
    assert all(0 <= row["score"] <= 1 for row in found.values())


def test_one_class_alone_stays_that_class() -> None:
    rows = [vote(f"p{pair}", name, 3.0) for pair in range(5) for name in "ab"]
    assert aggregate(table(rows), method="dawid-skene")["score"].to_pylist() == pytest.approx([0.6] * 5)


def likelihood(votes: Votes, knows: np.ndarray, habit: np.ndarray) -> float:
    """log p(votes) by MACE's story, by loops."""
    total = 0.0
    for pair in range(votes.pairs):
        own = [i for i in range(len(votes.pair)) if votes.pair[i] == pair]
        by_class = []
        for true in range(votes.bins):
            product = 1.0
            for i in own:
                annotator, label = votes.annotator[i], votes.label[i]
                product *= knows[annotator] * (label == true) + (1 - knows[annotator]) * habit[annotator, label]
            by_class.append(product)
        total += np.log(sum(by_class) / votes.bins)
    return total


@pytest.mark.filterwarnings("ignore:The (inplace|copy) keyword")  # crowd-kit 1.4.2 on pandas 3.1
def test_mace_is_as_likely_as_crowd_kits_best_restart() -> None:
    aggregation = pytest.importorskip("crowdkit.aggregation", reason="crowd-kit isn't installed")
    import pandas as pd

    votes, truth = made(2, pairs=150, bins=4)
    frame = pd.DataFrame({"task": votes.pair, "worker": votes.annotator, "label": votes.label})
    peer = aggregation.MACE(n_restarts=2, n_iter=50, method="em", smoothing=0.1)
    theirs = peer.fit_predict_proba(frame).sort_index(axis=0).sort_index(axis=1).to_numpy()
    classes = mace(votes)
    assert (
        np.mean(classes.argmax(axis=1) == truth) > np.mean(theirs.argmax(axis=1) == truth[np.unique(votes.pair)]) - 0.02
    )
    knows, habit = trust(votes)
    assert likelihood(votes, knows, habit) > likelihood(votes, peer.spamming_[:, 1], peer.thetas_) - 1


def test_mace_finds_the_one_who_always_says_the_same() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=200)
    good = np.where(rng.random((200, 2)) < 0.8, truth[:, None], rng.integers(3, size=(200, 2)))
    label = np.column_stack([good, np.zeros((200, 3), dtype=int)])  # three spammers, who outvote the two
    pair, annotator = np.divmod(np.arange(label.size), 5)
    classes = mace(Votes(pair, annotator, label.ravel(), 200, 5, 3))
    both = good[:, 0] == good[:, 1]
    assert np.mean(classes.argmax(axis=1)[both] == truth[both]) > 0.9
