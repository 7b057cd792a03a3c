import math
import random

import numpy as np
import pytest

from stscurate.methods.bm25 import Bm25
from stscurate.methods.words import words


def slow(texts: list[str], query: int, document: int, k1: float, b: float) -> float:
    """The formula, word by word."""
    split = [words(text) for text in texts]
    mean = sum(map(len, split)) / len(split)
    score = 0.0
    for word in set(split[query]):
        holders = sum(word in other for other in split)
        count = split[document].count(word)
        rarity = math.log(1 + (len(split) - holders + 0.5) / (holders + 0.5))
        if count:  # for an empty text and b = 1 the divisor would be 0
            score += rarity * count * (k1 + 1) / (count + k1 * (1 - b + b * len(split[document]) / mean))
    return score


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (1.2, 0.0), (0.9, 1.0)])
def test_scores_are_those_of_the_formula(k1: float, b: float) -> None:
    generator = random.Random(0)
    vocabulary = [*(f"w{i}" for i in range(30)), "x", "文", "件"]
    texts = [" ".join(generator.choices(vocabulary, k=generator.randrange(1, 20))) for _ in range(40)]
    texts.append("")
    queries = [3, 0, 40, 17]
    expected = [[slow(texts, query, at, k1, b) for at in range(len(texts))] for query in queries]
    np.testing.assert_allclose(Bm25(texts, k1=k1, b=b).scores(queries), expected, rtol=1e-12)


def test_a_hand_worked_score() -> None:
    # n = 2, "a" in both: log(1 + .5 / 2.5); each text has two words, the mean: 2.5 f / (f + 1.5) with f = 1 or 2
    scores = Bm25(["a b", "a a"]).scores([1])
    np.testing.assert_allclose(scores, [[math.log(1.2) * 2.5 / 2.5, math.log(1.2) * 5 / 3.5]])


def test_texts_without_words_score_nothing() -> None:
    assert Bm25(["", "!"]).scores([0, 1]).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_other_texts_are_answered_as_if_they_stood_in_the_collection() -> None:
    texts = ["the cat sleeps", "a dog runs and a dog barks", "猫 cat", ""]
    index = Bm25(texts)
    assert index.answer(["the cat sleeps", "dog dog unknown", ""])[0] == pytest.approx(index.scores([0])[0])
    assert index.answer(["a dog runs and a dog barks here"])[0] == pytest.approx(index.scores([1])[0])
    assert not Bm25(["", " "]).answer(["cat"]).any()
