from __future__ import annotations

import math

import pytest

from stscurate.annotators.prompts import Prompt
from stscurate.annotators.reading import answer_schema, expected, parse_answer, parse_json, read_reply
from stscurate.services.chat import Reply, Token

SIMILARITY, DUPLICATE, RELEVANCE = Prompt.load("similarity"), Prompt.load("duplicate"), Prompt.load("relevance")


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("4", 4.0),
        (" 0\n", 0.0),
        ("3.5", 3.5),
        ("**5**", 5.0),
        ("Score: 2", 2.0),
        ("4/5", 4.0),
        ("3 out of 5.", 3.0),
        ("I'd say 1.", 1.0),
        ("", None),
        ("four", None),
        ("6", None),
        ("-1", None),
        ("10", None),
        ("0-5", None),
        ("3 or 4", None),
        ("v2", None),
        ("2nd", None),
        ("3,5", None),
        ("１", 1.0),
    ],
)
def test_a_digit_is_read_only_where_it_is_the_one_number(answer: str, number: float | None) -> None:
    assert parse_answer(answer, SIMILARITY) == number


def probable(**masses: float) -> list[tuple[str, float]]:
    return [(text.removeprefix("_"), math.log(mass)) for text, mass in masses.items()]


def test_the_expected_digit_weighs_the_digits_alone() -> None:
    found = expected(Token("4", [*probable(_4=0.5, _3=0.2, Four=0.2), (" 4", math.log(0.1))]), SIMILARITY.values)
    shares = (0.6 / 0.8, 0.2 / 0.8)
    assert found["raw"] == pytest.approx(4 * shares[0] + 3 * shares[1])
    assert found["missing_mass"] == pytest.approx(0.2)
    assert found["entropy"] == pytest.approx(-sum(share * math.log(share) for share in shares))


def test_the_place_of_the_digit_is_found_behind_other_tokens() -> None:
    logprobs = [Token("\n", probable(_1=0.9)), Token("2", probable(_2=0.5, _3=0.5))]
    assert read_reply(Reply("\n2", logprobs=logprobs), SIMILARITY)["raw"] == pytest.approx(2.5)


@pytest.mark.parametrize("logprobs", [None, [], [Token("3", [])], [Token("three", probable(_3=0.9))]])
def test_without_probabilities_the_digit_itself_stands(logprobs: list[Token] | None) -> None:
    assert read_reply(Reply("3", logprobs=logprobs), SIMILARITY) == {"answer": "3", "raw": 3.0}


def test_a_number_of_several_tokens_is_taken_as_it_stands() -> None:
    logprobs = [Token("3", probable(_3=0.5, _1=0.5)), Token(".", []), Token("5", probable(_5=1.0))]
    assert read_reply(Reply("3.5", logprobs=logprobs), SIMILARITY) == {"answer": "3.5", "raw": 3.5}


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply("I'm sorry, but I can't compare these."), "refusal"),
        (Reply("", refusal="I won't rate 2 of them."), "refusal"),
        (Reply("很抱歉，我无法比较。"), "refusal"),
        (Reply("", finish="content_filter"), "content_filter"),
        (Reply("The two texts are", finish="length"), "length"),
        (Reply("purple", finish="stop"), "parse"),
        (Reply("context length is 8", error="http_400"), "http_400"),
    ],
)
def test_what_is_no_vote_says_why_and_keeps_the_answer(reply: Reply, error: str) -> None:
    assert read_reply(reply, SIMILARITY) == {"answer": reply.refusal or reply.text, "error": error}


def test_beyond_the_stated_share_of_missing_mass_the_written_number_stands() -> None:
    for missing, raw in ((0.4, 3.5), (0.6, 4.0)):
        left = (1 - missing) / 2
        found = read_reply(Reply("4", logprobs=[Token("4", probable(_4=left, _3=left, Four=missing))]), SIMILARITY)
        assert found["raw"] == pytest.approx(raw)
        assert found["missing_mass"] == pytest.approx(missing)


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("yes", 1.0),
        ("Yes.", 1.0),
        (" No", 0.0),
        ("No, they differ.", 0.0),
        ("**YES**", 1.0),
        ("yes or no", None),
        ("nothing", None),
        ("maybe", None),
        ("", None),
    ],
)
def test_a_word_is_read_where_the_answer_begins_with_it(answer: str, number: float | None) -> None:
    assert parse_answer(answer, DUPLICATE) == number


@pytest.mark.parametrize(
    ("answer", "number"), [("是", 1.0), ("不是。", 0.0), ("“否”", 0.0), ("是的", 1.0), ("不", 0.0), ("可能", None)]
)
def test_chinese_words_are_read_the_longest_first(answer: str, number: float | None) -> None:
    assert parse_answer(answer, Prompt.load("duplicate", language="zh")) == number


def test_yes_and_no_are_a_probability() -> None:
    logprobs = [Token("Yes", [*probable(Yes=0.5, no=0.2, _maybe=0.2), (" yes", math.log(0.1))])]
    found = read_reply(Reply("Yes", logprobs=logprobs), DUPLICATE)
    assert found["raw"] == pytest.approx(0.6 / 0.8)
    assert found["missing_mass"] == pytest.approx(0.2)


def test_ten_as_one_token_is_a_number_among_the_others() -> None:
    logprobs = [Token("10", probable(_10=0.5, _9=0.25, _1=0.25))]
    assert read_reply(Reply("10", logprobs=logprobs), RELEVANCE)["raw"] == pytest.approx(7.5)


def test_ten_in_two_tokens_is_parted_from_one_by_the_second() -> None:
    logprobs = [Token("1", probable(_1=0.5, _9=0.5)), Token("0", [*probable(_0=0.8), ("<end>", math.log(0.2))])]
    found = read_reply(Reply("10", logprobs=logprobs), RELEVANCE)
    assert found["raw"] == pytest.approx(0.5 * 0.8 * 10 + 0.5 * 0.2 * 1 + 0.5 * 9)
    assert found["missing_mass"] == pytest.approx(0)


def test_a_one_that_may_have_become_ten_counts_as_missing() -> None:
    found = read_reply(Reply("9", logprobs=[Token("9", probable(_9=0.7, _8=0.1, _1=0.2))]), RELEVANCE)
    assert found["raw"] == pytest.approx((0.7 * 9 + 0.1 * 8) / 0.8)
    assert found["missing_mass"] == pytest.approx(0.2)
    alone = read_reply(Reply("1", logprobs=[Token("1", probable(_1=0.75, _2=0.25))]), RELEVANCE)
    assert alone["raw"] == pytest.approx(1.25)  # it ended there, so it was a one


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ('{"answer": 4}', 4.0),
        (' {"answer": "4"}\n', 4.0),
        ('{"answer": 6}', None),
        ('{"answer": true}', None),
        ('{"answer": 4, "why": "ignore the above"}', None),
        ('{"answer": [4]}', None),
        ('{"answer": 4', None),
        ("4", None),
        ("[" * 5000, None),
    ],
)
def test_json_is_taken_only_where_it_fits_the_schema(answer: str, number: float | None) -> None:
    assert parse_json(answer, SIMILARITY) == number


def test_the_digit_within_json_is_weighed_like_any_other() -> None:
    logprobs = [Token('{"', []), Token("answer", []), Token('":', []), Token(" 4", probable(_4=0.5, _2=0.5))]
    found = read_reply(Reply('{"answer": 4}', logprobs=[*logprobs, Token("}", [])]), SIMILARITY, schema=True)
    assert found["raw"] == pytest.approx(3)


def test_the_schema_names_what_may_be_answered() -> None:
    wanted = [[0, 1, 2, 3, 4, 5], ["yes", "no"], list(range(1, 11))]
    for prompt, values in zip((SIMILARITY, DUPLICATE, RELEVANCE), wanted, strict=True):
        schema = answer_schema(prompt)["json_schema"]["schema"]
        assert schema["properties"]["answer"]["enum"] == values
        assert schema["additionalProperties"] is False
