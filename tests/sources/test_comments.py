import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stscurate.records import Tally
from stscurate.sources.comments import duplicate_links, paragraphs
from stscurate.sources.dumps import Comment, Issue

CLOSED = datetime(2024, 1, 1, 12, tzinfo=UTC)


def comment(body: str, **fields: Any) -> Comment:
    values: dict[str, Any] = {
        "author": "user-maintainer",
        "is_bot": False,
        "association": "MEMBER",
        "at": CLOSED,
        "body": body,
    }
    return Comment(**(values | fields))


def issue(*comments: Comment, closings: list[tuple[str | None, datetime]] | None = None) -> Issue:
    return Issue(
        repository="o/r",
        number=1,
        title="t",
        body="",
        state="closed",
        state_reason=None,
        labels=[],
        author="user-reporter",
        association="NONE",
        created_at=None,
        closed_at=CLOSED,
        url=None,
        comments=list(comments),
        closings=[] if closings is None else closings,
    )


def links(*comments: Comment, closings: list[tuple[str | None, datetime]] | None = None) -> list[tuple[str, int, int]]:
    return [
        (link.repository, link.number, link.tier)
        for link in duplicate_links(issue(*comments, closings=closings), Tally())
    ]


@pytest.mark.parametrize(
    ("body", "tier"),
    [
        ("Duplicate of #5", 1),
        ("duplicate of #5.", 1),
        ("Thanks!\n\n**Duplicate of o/r#5**\n\nSee there.", 1),
        ("Thanks for the report.\nDuplicate of https://github.com/o/r/issues/5\nbye", 1),
        ("dup of #5", 2),
        ("Duplicate of #5, please upgrade.", 2),
        ("Duplicate: #5", 2),
        ("/duplicate of GH-5", 2),
        ("Closing as a duplicate of [this one](https://github.com/o/r/issues/5)", 2),
        ("[Dupe](https://github.com/o/r/issues/5)", 2),
        ("It is not a bug. This is a dup of #5", 2),
        ("As I said in #7, this is a dupe of #5.", 2),
        ("Confirmed as unrelated to #15, dupe of #5, can close.", 2),
        ("Almost certainly a dup of #5", 2),
        ("Possibly a duplicate of #5", 3),
        ("This might be a dup of #5.", 3),
        ("The second example is a dup of #5", 3),
        ("Dup of #5, I think.", 3),
        ("Looks like a dup of #5", 3),
        ("这个和 #5 重复了", 2),
        ("可能与 #5 重复", 3),
    ],
)
def test_what_a_member_says_gives_a_link_of_its_tier(body: str, tier: int) -> None:
    assert links(comment(body)) == [("o/r", 5, tier)]


@pytest.mark.parametrize(
    "body",
    [
        "> Duplicate of #5\n\nNo.",
        "> Duplicate of #5\nNo.",
        "I wanted to say `Duplicate of #5`",
        "```\nDuplicate of #5\n```",
        "    Duplicate of #5",
        "<!-- Duplicate of #5 -->",
        "<!--\nDuplicate of #5\n-->\nHello",
        "<div>\nDuplicate of #5\n</div>",
        "![Duplicate of #5](x.png)",
        "~~Duplicate of #5~~",
        "<del>Duplicate of #5</del>",
        "Thanks.\n\nOn Mon, 3 Apr 2023, Jo wrote:\n> Duplicate of #5",
        "Thanks.\n\n-----Original Message-----\nDuplicate of #5",
        "not a duplicate of #5",
        "This is **NOT** a duplicate of #5",
        "It isn't a dup of #5: that was memory.",
        "I don’t think that this is really a dupe of #5",
        "no longer a duplicate of #5",
        "This is related to, rather than a duplicate of #5",
        "Unmark as duplicate of #5",
        "Is this a duplicate of #5?",
        "Duplicate of #5?",
        "Duplicate of #5 ?",
        "(dup of #5?)",
        "is this a dup of #5",
        "I wonder if it is a dup of #5.",
        "不是 #5 的重复，与 #6 不同",
        "是不是与 #5 重复",
        "#7 is a duplicate of #5",
        "I closed #7 as dupe of #5",
        "#7 (the other one) was a dup of #5.",
        "Duplicate of #1",
        "Duplicate of o/r#1",
        "Duplicate of https://github.com/o/r/pull/5",
        "The setup of #5 is alike",
        "See #5",
    ],
)
def test_what_gives_no_link(body: str) -> None:
    assert links(comment(body)) == []


def test_others_are_believed_less_unless_they_close_the_issue() -> None:
    passer_by = {"author": "user-other", "association": "CONTRIBUTOR"}
    for body, tier in (
        ("Duplicate of #5", 1),
        ("dup of #5", 2),
        ("Looks like a dup of #5", 2),
        ("Maybe a dup of #5", 3),
    ):
        said = comment(body, **passer_by)
        assert links(said) == [("o/r", 5, 3)]
        for minutes, expected in ((0, tier), (9, tier), (11, 3), (-5, 3)):
            when = CLOSED + timedelta(minutes=minutes)
            assert links(said, closings=[(None, when)]) == [("o/r", 5, expected)]
            assert links(said, closings=[("user-other", when)]) == [("o/r", 5, expected)]
            assert links(said, closings=[("user-somebody", when)]) == [("o/r", 5, 3)]


def test_an_author_who_seems_to_close_the_issue_is_not_believed_more() -> None:
    said = comment("Duplicate of #5", author="user-reporter", association="NONE")
    assert links(said, closings=[(None, CLOSED)]) == [("o/r", 5, 3)]


def test_the_surest_of_several_comments_counts_and_all_targets_stay() -> None:
    found = links(comment("Maybe a dup of #5"), comment("Duplicate of #5"), comment("dup of #6, #7 and x/y#8"))
    assert found == [("o/r", 5, 1), ("o/r", 6, 2), ("o/r", 7, 2), ("x/y", 8, 2)]


def test_a_denial_lowers_a_link_and_removes_an_unsure_one() -> None:
    assert links(comment("Duplicate of #5"), comment("I don't think it's a dup of #5.")) == [("o/r", 5, 3)]
    assert links(comment("Possibly a dup of #5"), comment("This is not a dup of #5.")) == []


def test_bots_are_left_out() -> None:
    assert links(comment("Duplicate of #5", is_bot=True)) == []


def test_what_is_left_out_is_counted() -> None:
    tally = Tally()
    bodies = ["Duplicate of #5", "Duplicate of #1", "not a dup of #6", "Dup of #7?", "#8 is a dup of #9", "hello"]
    duplicate_links(issue(*map(comment, bodies), comment("dup of #5", is_bot=True)), tally)
    assert tally.as_dict()["counts"] == {
        "claims": {"about_another_issue": 1, "alone": 2, "negation": 1, "question": 1, "self_link": 1},
        "comments": {"by_bots_left_out": 1, "parsed": 5},
    }


def test_paragraphs_are_those_that_github_shows_as_the_author_s_own() -> None:
    markdown = "# Head\n\n- one `code` two\n\n> quoted\n\n[text](https://github.com/a/b/issues/3) end"
    assert list(paragraphs(markdown)) == ["Head", "one   two", " a/b#3  end"]


@pytest.mark.parametrize(
    "part",
    ["dup of #5 ", "dup ", "> dup\n", "[dup](", "*dup", "`dup", "<!--dup", "not dup of ", "dup of #5\n", "dup of #5? "],
)
def test_the_longest_comment_takes_linear_time(part: str) -> None:
    began = time.process_time()
    links(comment((part * 65_536)[:65_536]))
    assert time.process_time() - began < 5
