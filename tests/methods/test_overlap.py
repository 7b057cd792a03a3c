from __future__ import annotations

import pytest

from stscurate.methods.overlap import overlap


def test_shared_runs_of_three_characters_over_all() -> None:
    # abc bcd cde / abc bcx cxe
    assert overlap("abcde", "abcxe") == pytest.approx(1 / 5)
    assert overlap("Same  Words", "same words") == 1.0
    assert overlap("猫在睡觉", "狗在睡觉") == pytest.approx(1 / 3)
    assert overlap("one", "two") == 0.0


def test_short_texts_are_one_run() -> None:
    assert overlap("ab", "AB") == 1.0
    assert overlap("ab", "abc") == 0.0
    assert overlap("", "") == 1.0
    assert overlap("", "abc") == 0.0
