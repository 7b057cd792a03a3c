from __future__ import annotations

from stscurate.annotators.chat import guessed_tokens


def test_tokens_are_guessed_by_letters_and_each_that_is_not_ascii_counts_as_one() -> None:
    assert guessed_tokens([{"content": "a" * 400}]) == 3 + 4 + 100
    assert guessed_tokens([{"content": "相似" * 50}, {"content": "ab"}]) == 3 + 8 + 100 + 0.5
