"""A card edited by a person and published again: ours anew, theirs to the byte."""

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from stscurate.errors import InputError
from stscurate.publishing.card import merge

NEW = """---
license: cc-by-4.0
language:
- en
tags:
- semantic-textual-similarity
- stscurate
configs:
- config_name: pairs
  data_files:
  - split: train
    path: data/pairs/train-*
  default: true
- config_name: gis
  data_files:
  - split: train
    path: data/gis/train-*
---

<!-- stscurate: begin what -->

# Title

<!-- stscurate: end what -->
<!-- stscurate: begin limits -->

## Limits

new words
<!-- stscurate: end limits -->
"""
WHAT, LIMITS = re.findall(r"<!-- stscurate: begin .*?end [a-z]+ -->\n", NEW, re.DOTALL)


def with_crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def test_the_same_card_stays_as_it_is() -> None:
    assert merge(NEW, NEW) == NEW
    assert merge(with_crlf(NEW), NEW) == with_crlf(NEW)


def test_words_around_our_sections_stay_and_ours_are_replaced() -> None:
    old = NEW.replace("new words", "old words").replace(
        "<!-- stscurate: begin limits", "## Mine\n\n  odd  \n<!-- stscurate: begin limits"
    )
    assert (
        merge(old + "after, without line end", NEW)
        == NEW.replace("<!-- stscurate: begin limits", "## Mine\n\n  odd  \n<!-- stscurate: begin limits")
        + "after, without line end"
    )


def test_section_that_was_added_comes_behind_its_predecessor_and_one_that_is_gone_goes() -> None:
    old = NEW.replace(LIMITS, "mine\n<!-- stscurate: begin gone -->\nx\n<!-- stscurate: end gone -->\nmine too\n")
    assert merge(old, NEW) == NEW.replace(LIMITS, LIMITS + "mine\nmine too\n")
    old = NEW.replace(WHAT, "mine\n")
    assert merge(old, NEW) == NEW.replace(WHAT, "mine\n" + WHAT)


def test_card_without_our_marks_keeps_its_body_before_ours() -> None:
    front, ours = NEW[: NEW.index("<!--") - 1], WHAT + LIMITS
    assert merge("# My own card\n\n---\nends so", NEW) == front + "# My own card\n\n---\nends so\n\n" + ours
    assert merge("", NEW) == front + ours
    old = "---\r\nlicense: mit\r\nx: 1\r\n---\r\n# Mine\r\n"
    expected = with_crlf(front.replace("language:", "x: 1\nlanguage:") + "# Mine\n\n" + ours)
    assert merge(old, NEW) == expected.replace("\r\n\r\n# Mine", "\r\n# Mine")


def test_yaml_of_others_stays_with_its_comments_and_spelling() -> None:
    old = """---
# a person's first line
version: 1.10   # not 1.1
license: mit  # chosen by legal
"language": [en]   # the same value: untouched
annotations:
    - {by: 'me', at: 2026-01-02}
# about tags
tags: [mine, stscurate]
# the last line
---
"""
    assert (
        merge(old, NEW).partition("---\n<!--")[0]
        == """---
# a person's first line
version: 1.10   # not 1.1
# chosen by legal
license: cc-by-4.0
"language": [en]   # the same value: untouched
annotations:
    - {by: 'me', at: 2026-01-02}
# about tags
tags:
- mine
- stscurate
- semantic-textual-similarity
# the last line
"""
        + NEW[NEW.index("configs:") : NEW.index("---\n\n<!--")]
    )


def test_configs_and_descriptions_of_others_stay_and_so_does_the_default() -> None:
    old = """---
configs:
- config_name: mine  # made by hand
  data_files: mine/1.10.csv
  version: 1.10
- config_name: triplets
  data_files: data/triplets/*
- config_name: pairs
  description: what a person wrote
  data_files: old/*
  default: true
---
"""
    merged = merge(old, NEW)
    assert "# made by hand\nconfigs:\n- config_name: mine\n  data_files: mine/1.10.csv\n  version: 1.10\n" in merged
    configs = yaml.safe_load(merged.split("---\n")[1])["configs"]
    assert [config["config_name"] for config in configs] == ["mine", "pairs", "gis"]
    assert configs[1]["description"] == "what a person wrote"
    assert configs[1]["data_files"] == [{"split": "train", "path": "data/pairs/train-*"}]
    other = merge(old.replace("  default: true\n", "").replace("version: 1.10", "default: true"), NEW)
    configs = yaml.safe_load(other.split("---\n")[1])["configs"]
    assert [config.get("default") for config in configs] == [True, None, None]


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("---\nlicense: mit\nlicense: mit\n---\n", "key 'license' stands twice"),
        ("---\nlicense: [mit\n---\n", "can't be read"),
        ("---\n- mit\n---\n", "isn't lines of key: value"),
        ("---\nlicense: &a mit\nother: *a\n---\n", "can't be"),
        ("---\n{license: mit, other: 1}\n---\n", "can't be"),
        (NEW.replace("<!-- stscurate: end what -->\n", ""), "begin what --> has no counterpart"),
        (NEW.replace("<!-- stscurate: begin what -->\n", ""), "end what --> has no counterpart"),
        (NEW + WHAT, "begin what --> stands twice"),
    ],
)  # fmt: skip
def test_card_that_cannot_be_edited_safely_is_refused(old: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        merge(old, NEW)


# What a person may write: other keys in many styles, ours in other styles, comments, any text around the marks.
THEIRS = [
    "# a comment: with colon\n", "\n", "extra: 'it''s' # why\n", "version: 1.10\n",
    "nested:\n    a: {b: [1, 2]}\n    # in\n    c: x\n",
    "folded: >-\n  one\n\n  # no comment\n  two\n",
    "list:\n- 1\n- 2\n", "列: 値\n", '"quoted": "\\u00e9 # not"\n', "empty:\n",
]  # fmt: skip
OURS = [
    "license: mit\n", "license: [mit, other] # two\n", "license:\n# before\n- mit\n# between\n- other\n",
    "license: cc-by-4.0\n",
    "license:\n", "license: >\n  mit\n", 'license: "cc-by-4.0" # same\n',
]  # fmt: skip
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")).map(
    lambda text: text + "\n" if text else ""
)


@given(
    st.lists(st.sampled_from(THEIRS), unique=True),
    st.sampled_from(["", *OURS]),
    st.integers(0, 9),
    st.tuples(WORDS, WORDS, WORDS),
    st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_nothing_of_a_person_is_lost(
    theirs: list[str], ours: str, place: int, words: tuple[str, str, str], crlf: bool
) -> None:
    chunks = [*theirs[:place], ours, *theirs[place:]]
    first, middle, last = words
    old_limits = LIMITS.replace("new words", "old")
    old = "---\n" + "".join(chunks) + "---\n" + first + WHAT + middle + old_limits + last
    before, newline = (with_crlf(old), "\r\n") if crlf else (old, "\n")
    merged = merge(before, NEW)
    assert merge(merged, NEW) == merged
    assert not crlf or not re.search(r"(?<!\r)\n", merged)
    plain = merged.replace(newline, "\n")
    head, _, body = plain.removeprefix("---\n").partition("\n---\n")
    assert body == first + WHAT + middle + LIMITS + last
    at = 0
    for chunk in theirs:
        assert chunk.rstrip("\n") in head[at:]
        at = head.index(chunk.rstrip("\n"), at)
    for comment in re.findall(r"# (?:two|before|between|same)", ours):
        assert comment in head
    expected = {**(yaml.safe_load("".join(theirs)) or {}), **yaml.safe_load(NEW.split("---\n")[1])}
    assert yaml.safe_load(head) == expected
