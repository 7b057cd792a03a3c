"""Bodies that slow down careless patterns and parsers: what they repeat, or begin and never end."""

import time
from collections.abc import Callable

from stscurate.methods.mail import without_mail_tail
from stscurate.methods.markdown import without_code
from stscurate.methods.references import find_claims, find_references, gives_label_away, mark_references
from stscurate.methods.secrets import find_secrets
from stscurate.methods.templates import LineCounts, without_template
from stscurate.methods.texts import clean_issue, normalise
from stscurate.records import Tally
from stscurate.sources.comments import duplicate_links
from stscurate.sources.dumps import issue_of

LONGEST = 65_536  # characters that GitHub takes

PARTS = {
    "quotes in quotes": ["> ", ">", "> >\n", " > a\n"],
    "backticks": ["`", "``` ", "`a``b", "```\n", "~~~\n", "``\n`", "`@a "],
    "comments and tags": ["<!--", "-->", "<!-- -->", "<!--\n", "<", "<img ", "<pre>\n", "<summary", "<a <", "</pre>\n"],
    "brackets": ["[", "]", "![", "[](", "![a](", "[a](<", "(", "[[a]", "- [x] ", "- [ ]\n", "\\[", "[a]:", "![x]("],
    "emphasis": ["*", "**a ", "_", "a_b", "~~", "~~a ", "*a_", "&", "&amp", "\\", "<b>*"],
    "lists": ["- ", "1. ", "* a\n ", "- - ", "-\n", "+ 1) ", "#", "# \n", "=\n", "---\n", "|", "|-|\n", "\t", "a: "],
    "spaces": [" ", "\n", "\r", "\t \n", "\u00a0 ", "a ", " \n>", "  a\n"],
    "mentions and addresses": ["@", "@a", "a@", "a@b.", "a.", "@a-", "@a/", "-@", "a@a@", "+a", "git@"],
    "numbers": ["1", "1.", "1.1.1.1.", ".1.1.", "2:", "2001:", ":a:", "2001:db8:", "12:00:00\n", "1: a\n"],
    "references": ["#", "#1", "#1 ", "a/b#1", "a/", "GH-", "github.com/a/b/issues/1", "http://", "o/r#1, "],
    "claims": ["dup ", "dup of #1 ", "dup of ", "duplicate of #1, ", "a dup as #1 and ", "not dup #1 ", "重复 "],
    "sentences": [".", "? ", "is this dup of #1 ", "a, b dup #1 ", "dup.", "与 #1 ", "as dup (", "n't a ", "maybe "],
    "secrets": ["ghp_", "sk-", "sk-a1B", "eyJ", "eyJ.", ".eyJaaaaaaaa", "xox", "AKIA", "secret_key=", "://a:", "://a:b@"],
    "keys": [
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA\n",
        "-----END PRIVATE KEY-----",
        "PRIVATE KEY",
    ],
    "mail": ["On ", "On a\n", "On wrote:\n> ", "a wrote:\n", "On Mon a wrote:\n> b\n", "-- \n", "Sent from my "],
    "logs": ["at a\n", 'File "', '  File "a", line 1\n', "[1.0] a\n", "#0 a(", "a.go:", ".rb:", "a(", "INFO ", "ab12 "],
    "long words": ["a", "QUJD", "é", "漢", "x" * 199 + " ", "a\u0301", "/home/", "C:\\Users\\", "/home/a/", "\\"],
    "templates": ["a:", "a?b:", "os: x\n", "- os:\n", "**a**\n", "## a\n", "_No response_\n", "1. \n", "a b c d e\n"],
}  # fmt: skip


def body(part: str, length: int) -> str:
    """The part again and again, `length` characters of it."""
    return (part * (length // len(part) + 1))[:length]


def _counted(text: str) -> None:
    counts = LineCounts()
    for _ in range(5):
        counts.add("o/r", text)
    without_template(f"t\n\n{text}", counts.templates()["o/r"]) if counts.templates() else None


def _linked(text: str) -> None:
    row = {"repository": "o/r", "number": 9, "title": "t", "comments": [{"body": f"dup of #1\n{text}"}]}
    duplicate_links(issue_of(row, "", None, Tally()), Tally())


READERS: dict[str, Callable[[str], object]] = {
    "cleaning": lambda text: clean_issue(text, text),
    "templates": _counted,
    "secrets": find_secrets,
    "code": without_code,
    "mail": without_mail_tail,
    "references": lambda text: list(find_references(text, "o/r")),
    "claims": lambda text: list(find_claims(*mark_references(text, "o/r"))),
    "labels in texts": lambda text: gives_label_away(f"dup {text}", "o/r"),
    "comments": _linked,
    "normal form": normalise,
}


def seconds(reader: Callable[[str], object], text: str, times: int) -> float:
    """Of this process, the least of so many runs."""
    least = float("inf")
    for _ in range(times):
        began = time.process_time()
        reader(text)
        least = min(least, time.process_time() - began)
    return least
