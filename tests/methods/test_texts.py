import time

import pytest

from stscurate.methods.texts import clean_line, clean_markdown, normalise, without_code, without_mail_tail


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Ａ\u00a0B\n\tc ", "a b c"),
        ("Straße ﬁle", "strasse file"),
        ("日本\u3000語", "日本 語"),
        ("", ""),
    ],
)
def test_normalise_joins_what_differs_in_form_only(text: str, expected: str) -> None:
    assert normalise(text) == expected
    assert normalise(expected) == expected


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("a <!-- hidden --> b", "a b"),
        ("<!-- over\nseveral\n``` lines\n-->\nkept", "kept"),
        ("<!-- form one --><!-- form two -->\nkept", "kept"),
        ("kept\n\n<!-- never closed\nhidden", "kept"),
        ("x <!-- never closed, in a line", "x <!-- never closed, in a line"),
        ("- [x] I searched\n- [ ] I did not\n- [link](url) stays\n* [X] gone", "- [link](url) stays"),
        ('see ![the window](https://example.org/a.png "t") here', "see the window here"),
        ('<img width="200" alt="the window" src="x.png">', "the window"),
        ("<img src='x.png'/>", ""),
        ("ping @some-one and @org/team, not a@b", "ping @user and @user, not a@b"),
        ("use `@property` or foo(@Override())", "use `@property` or foo(@Override())"),
        ("mail me: jo.doe+x@mail.example.com!", "mail me: [email]!"),
        ("a  b   c\n\n\n\nd\r\ne", "a b c\n\nd\ne"),
        ("```html\n<!-- code   stays -->\n- [x] too\n```", "```html\n<!-- code   stays -->\n- [x] too\n```"),
        ("```\nroot@host.example.com:~# ls", "```\n[email]:~# ls"),
        ("مرحبا 👩‍👩‍👧 שלום", "مرحبا 👩‍👩‍👧 שלום"),
        ("", ""),
    ],
)
def test_clean_markdown_keeps_what_the_reporter_wrote(markdown: str, expected: str) -> None:
    assert clean_markdown(markdown) == expected


def test_long_code_is_cut_and_says_so() -> None:
    inside = [f"frame {i}" for i in range(42)]
    for close in (["```", "after"], []):
        cleaned = clean_markdown("\n".join(["log:", "```text", *inside, *close])).split("\n")
        assert cleaned == ["log:", "```text", *inside[:30], "[... 12 lines]", *close]
    whole = "\n".join(["~~~", *inside[:30], "~~~"])
    assert clean_markdown(whole) == whole


def test_two_blocks_in_a_row_are_cut_each_for_itself() -> None:
    block = "\n".join(["```", *["x"] * 20, "```"])
    assert clean_markdown(f"{block}\n{block}") == f"{block}\n{block}"


@pytest.mark.parametrize(
    ("mail", "kept"),
    [
        ("Yes.\n\nOn Mon, 3 Apr 2023 at 10:00, Jo <jo@example.org> wrote:\n\n> Is it?\n> Really?\n", "Yes.\n"),
        ("Yes.\nOn Mon, 3 Apr 2023 at 10:00, Jo\n<notifications@example.org> wrote:\n> Is it?", "Yes."),
        ("Yes.\n-----Original Message-----\nFrom: Jo\nIs it?", "Yes."),
        ("Yes.\n\nReply to this email directly or view it on GitHub:\nhttps://...", "Yes.\n"),
        ("> quoted\n\nNo mail, an answer below.", "> quoted\n\nNo mail, an answer below."),
        ("The manual says:\n> so", "The manual says:\n> so"),
    ],
)
def test_tails_of_mail_go_and_other_quotations_stay(mail: str, kept: str) -> None:
    assert without_mail_tail(mail) == kept


def test_without_code_leaves_prose() -> None:
    assert without_code("a #1\n```\n#2\n```\nb <!-- #3 -->#4") == "a #1\nb #4"
    assert without_code("plain #1") == "plain #1"


@pytest.mark.parametrize(
    "part", ["<!--", "-->", "![", "[](", "@a", "a@", "a.", "```\n", "> \n", "<img ", " ", "\n", "- [x]"]
)
def test_cleaning_the_longest_body_takes_linear_time(part: str) -> None:
    body = (part * 65_536)[:65_536]
    began = time.process_time()
    clean_markdown(body)
    clean_line(body)
    without_code(body)
    assert time.process_time() - began < 3
