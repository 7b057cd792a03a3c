import random
import time
from itertools import combinations, product

import numpy as np
import pytest

from stscurate.errors import InputError
from stscurate.methods.near_duplicates import NearTexts, near_duplicates, shingles


def all_pairs(texts: list[str], threshold: float) -> dict[tuple[int, int], float]:
    """The slow way: every pair of sets of word sequences."""
    sets = [shingles(text) for text in texts]
    found = {}
    for i, j in combinations(range(len(texts)), 2):
        union = sets[i] | sets[j]
        if union and len(sets[i] & sets[j]) / len(union) >= threshold:
            found[i, j] = len(sets[i] & sets[j]) / len(union)
    return found


def edited(generator: random.Random, words: list[str], vocabulary: list[str]) -> list[str]:
    """The words with a few replaced, left out and put in."""
    words = list(words)
    for _ in range(generator.randrange(4)):
        at = generator.randrange(len(words) + 1)
        words[at : at + generator.randrange(2)] = generator.choices(vocabulary, k=generator.randrange(2))
    return words


def made_up(seed: int, n: int) -> list[str]:
    """Texts of which many are edited copies of one before, long and short ones, English and Chinese."""
    generator = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(300)] + list("的一是在不了有和人这")
    texts = [generator.choices(vocabulary, k=50)]
    for _ in range(n - 1):
        if generator.random() < 0.6:
            texts.append(edited(generator, generator.choice(texts), vocabulary))
        else:
            texts.append(generator.choices(vocabulary, k=generator.choice([1, 3, 6, 30, 100])))
        texts[-1] = texts[-1] or ["one"]
    return [" ".join(words) for words in texts]


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_exactly_the_pairs_of_the_slow_way_are_found(seed: int, threshold: float) -> None:
    texts = made_up(seed, 400)
    pairs, similarity = near_duplicates(texts, threshold=threshold)
    expected = all_pairs(texts, threshold)
    assert len(expected) > 30
    assert list(map(tuple, pairs.tolist())) == sorted(expected)
    np.testing.assert_allclose(similarity, [expected[one, other] for one, other in pairs.tolist()], rtol=1e-12)


@pytest.mark.parametrize(("seed", "threshold"), [(0, 0.5), (1, 0.8), (2, 1.0)])
def test_texts_in_parts_find_the_same_among_those_held(seed: int, threshold: float) -> None:
    texts = made_up(seed, 400)
    held, others = [*texts[::4], "", "!!!"], [*(text for at, text in enumerate(texts) if at % 4), ""]
    sets, their_sets = [shingles(text) for text in others], [shingles(text) for text in held]
    expected = {}
    for i, j in product(range(len(others)), range(len(held))):
        union = sets[i] | their_sets[j]
        if union and len(sets[i] & their_sets[j]) / len(union) >= threshold:
            expected[i, j] = len(sets[i] & their_sets[j]) / len(union)
    assert len(expected) > 10
    index = NearTexts(iter(held), threshold=threshold)
    found: dict[tuple[int, int], float] = {}
    for start in range(0, len(others), 100):
        rows, places, values = (one.tolist() for one in index.near(others[start : start + 100]))
        found |= dict(zip(zip((row + start for row in rows), places, strict=True), values, strict=True))
    assert list(found) == sorted(expected)
    assert found == pytest.approx(expected, rel=1e-12)


def test_nothing_is_near_to_no_texts() -> None:
    for held in ([], ["", "?"]):
        assert [len(one) for one in NearTexts(held, threshold=0.8).near(["a b", ""])] == [0, 0, 0]
    assert [len(one) for one in NearTexts(["a b"], threshold=0.8).near([])] == [0, 0, 0]


def test_a_pair_at_the_threshold_itself_is_found() -> None:
    words = [f"w{i}" for i in range(100)]
    for threshold, shared in ((0.5, 4), (0.8, 16), (0.6, 9), (0.7, 14), (0.9, 36)):
        union = round(shared / threshold)  # the shorter text is the beginning of the longer one
        texts = [" ".join(words[: size + 4]) for size in (shared, union)]
        assert near_duplicates(texts, threshold=threshold)[1].tolist() == [shared / union]


def test_case_width_punctuation_and_spaces_do_not_count() -> None:
    texts = ["A man is playing the Guitar.", "a man is  playing the ｇｕｉｔａｒ", "A man is playing the flute."]
    pairs, similarity = near_duplicates(texts)
    assert (pairs.tolist(), similarity.tolist()) == ([[0, 1]], [1.0])


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    chinese = "程序在打开空文件的时候立刻崩溃并且没有任何错误提示信息请尽快修复"
    thai = "โปรแกรมหยุดทำงานทันทีเมื่อเปิดไฟล์ว่างโดยไม่มีข้อความแสดงข้อผิดพลาด"
    for text in (chinese, thai):
        assert near_duplicates([text, text + text[0], text[::-1]])[0].tolist() == [[0, 1]]


def test_texts_without_words_and_no_texts_are_near_to_none() -> None:
    assert near_duplicates([])[0].shape == (0, 2)
    assert near_duplicates(["", "!!!", "!!!", " "])[0].shape == (0, 2)
    assert near_duplicates(["word", "", "Word!"])[0].tolist() == [[0, 2]]


@pytest.mark.parametrize("threshold", [0.49, 1.01, float("nan")])
def test_a_threshold_out_of_range_is_named(threshold: float) -> None:
    with pytest.raises(InputError, match=r"from 0\.5 to 1"):
        near_duplicates(["a"], threshold=threshold)


def test_the_time_is_not_that_of_all_pairs() -> None:
    generator = random.Random(0)
    vocabulary = [f"w{i}" for i in range(5_000)]
    texts = [" ".join(generator.choices(vocabulary, k=40)) for _ in range(20_000)]
    texts += [f"{text} more" for text in texts[:100]]
    began = time.monotonic()
    pairs, _ = near_duplicates(texts)
    assert pairs.tolist() == [[at, 20_000 + at] for at in range(100)]
    assert time.monotonic() - began < 30  # 200 million pairs of sets would take minutes
