import pytest

from stscurate.methods.markdown import Part, parts_of, without_code


def test_parts_are_prose_and_blocks_in_their_order() -> None:
    lines = ["a", "```py", "x", "```", "~~~", "y", "~~~", "b", "<pre>", "z #1", "</pre>", "c", "```", "open"]
    assert parts_of(lines) == [
        Part(False, ["a"]),
        Part(True, ["```py", "x", "```"]),
        Part(True, ["~~~", "y", "~~~"]),
        Part(False, ["b"]),
        Part(True, ["<pre>", "z #1", "</pre>"]),
        Part(False, ["c"]),
        Part(True, ["```", "open"]),
    ]
    assert [part.inside for part in parts_of(lines) if part.is_code] == [(1, 2), (1, 2), (1, 2), (1, 2)]


@pytest.mark.parametrize(
    ("markdown", "kept"),
    [
        ("a #1\n```\n#2\n```\nb <!-- #3 -->#4", "a #1\nb #4"),
        ("plain #1", "plain #1"),
        ("<pre>#1</pre> in one line", "<pre>#1</pre> in one line"),
        ("<pre>\nnever closed #1", "<pre>\nnever closed #1"),
        ("<PRE class=x>\n#1\n</PRE>\n#2", "#2"),
        ("`inline` ```not a fence``` #1", "`inline` ```not a fence``` #1"),
    ],
)
def test_without_code_leaves_prose(markdown: str, kept: str) -> None:
    assert without_code(markdown) == kept
