import random
import string
from itertools import pairwise

import pytest

from stscurate.methods.words import word_spans, words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, it's  x=1...\n", ["Hello", ",", "it", "'", "s", "x", "=", "1", "..."]),
        ("我喜欢Python编程。", ["我", "喜", "欢", "Python", "编", "程", "。"]),
        ("カナ がな", ["カ", "ナ", "が", "な"]),
        ("हिन्दी में", ["हिन्दी", "में"]),  # vowel signs stay with their letters
        ("e\u0301te\u0301 naïve", ["e\u0301te\u0301", "naïve"]),
        ("か\u3099な", ["か\u3099", "な"]),
        ("שלום, עולם", ["שלום", ",", "עולם"]),
        ("👍🏽! ok", ["👍🏽!", "ok"]),
        (" \n\t", []),
    ],
)
def test_words_of_any_script(text: str, words: list[str]) -> None:
    assert [text[start:stop] for start, stop in word_spans(text)] == words


def test_nothing_but_spaces_lies_between_words() -> None:
    text = "".join(chr(code) for code in range(1, 0x3400) if not 0xD800 <= code < 0xE000)
    spans = word_spans(text)
    between = [text[left[1] : right[0]] for left, right in pairwise(spans)]
    assert not "".join(between).strip()
    assert all(start < stop for start, stop in spans)


def test_words_for_comparing_leave_case_width_and_punctuation_out() -> None:
    assert words("Don't PANIC -- ｉｔ's 3.5 __init__!") == ["don", "t", "panic", "it", "s", "3", "5", "__init__"]
    assert words("程序 crashes。") == ["程", "序", "crashes"]
    assert words("ไฟล์ empty") == [*"ไฟล์", "empty"]
    assert words("... !") == []


def test_ascii_texts_have_the_same_words_as_in_a_text_of_another_script() -> None:
    generator = random.Random(0)
    for _ in range(300):
        text = "".join(generator.choices(string.printable, k=40))
        assert words(text) == words(f"{text} \u05d0")[:-1]
