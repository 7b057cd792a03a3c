from __future__ import annotations

import pytest

from stscurate.methods.overlap import overlap


def test_shared_words_over_all_words() -> None:
    assert overlap("A man plays the guitar.", "a man plays a piano") == pytest.approx(3 / 6)
    assert overlap("Same words", "words same, SAME") == 1.0
    assert overlap("猫在睡觉", "狗在睡觉") == pytest.approx(3 / 5)


@pytest.mark.parametrize("other", ["", "...", "else"])
def test_texts_without_words_share_none(other: str) -> None:
    assert overlap("", other) == 0.0
