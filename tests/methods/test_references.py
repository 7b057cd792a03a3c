import time

import pytest

from stscurate.methods.references import find_claims, find_references, gives_label_away, mark_references

HERE = "owner/name"


def found(text: str, moved: dict[str, str] | None = None) -> list[tuple[str, str, int]]:
    return [(text[r.start : r.stop], r.repository, r.number) for r in find_references(text, HERE, moved)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see #26.", [("#26", HERE, 26)]),
        ("(GH-26)", [("GH-26", HERE, 26)]),
        ("other/repo.js#26", [("other/repo.js#26", "other/repo.js", 26)]),
        ("Owner/Name#26", [("Owner/Name#26", HERE, 26)]),
        (
            "https://github.com/a/b/issues/7#issuecomment-99 x",
            [("https://github.com/a/b/issues/7#issuecomment-99", "a/b", 7)],
        ),
        ("http://www.github.com/a/b/issues/7", [("http://www.github.com/a/b/issues/7", "a/b", 7)]),
        ("https://github.com/a/b/pull/7", []),
        ("#1, #2 and #3", [("#1", HERE, 1), ("#2", HERE, 2), ("#3", HERE, 3)]),
        ("&#39; C#7 page.html/#7 #7b #1.5 #0 #x", []),
        ("#1  0x00007f in main ()", []),
        ("https://example.org/a/b#7", []),
    ],
)
def test_references_are_found_in_github_s_forms(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert found(text) == expected


def test_a_repository_that_moved_is_known_by_its_old_name() -> None:
    assert found("Old/Home#5", {"old/home": HERE}) == [("Old/Home#5", HERE, 5)]


def targets(text: str) -> list[list[int]]:
    return [[number for _, number in claim.targets] for claim in find_claims(*mark_references(text, HERE))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Duplicate of #5", [[5]]),
        ("dup of: #5", [[5]]),
        ("a dupe of the older issue #5", [[5]]),
        ("closing as a duplicate, in favour of #5", [[5]]),
        ("/duplicate of #5", [[5]]),
        ("Duplicate: #5", [[5]]),
        ("This duplicates #5 and #6", [[5, 6]]),
        ("Dup #5", [[5]]),
        ("closing as dup   #5", [[5]]),
        ("dups of #5, #6 & #7", [[5, 6, 7]]),
        ("与 #5 重复", [[5]]),
        ("重复问题：#5", [[5]]),
        ("I filed a duplicate #5", []),
        ("Duplicates: #5, #6", []),
        ("closed #5 as a duplicate of this", []),
        ("duplicated by #5", []),
        ("deduplication of #5", []),
        ("the setup of #5", []),
    ],
)
def test_claims_name_what_this_is_a_duplicate_of(text: str, expected: list[list[int]]) -> None:
    assert targets(text) == expected
    assert gives_label_away(text, HERE) == bool(expected)


@pytest.mark.parametrize(
    "part",
    ["dup of #5 ", "dup ", "dup of ", "duplicate of the ", "a/", "a/b#", "#1,", "github.com/", "dup\n", "#1 重复"],
)
def test_the_longest_text_takes_linear_time(part: str) -> None:
    text = (part * 65_536)[:65_536]
    began = time.process_time()
    list(find_claims(*mark_references(text, HERE)))
    assert time.process_time() - began < 2
