"""Search: qualifiers and phrases against a slow reading of all issues, and the 1,000 results that it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.local_github import LocalGitHub
from tests.local_github.asking import graphql
from tests.local_github.pages import ApiError
from tests.local_github.searching import search_issues
from tests.local_github.seeds import fill, read_dump
from tests.local_github.store import Store
from tests.local_github.things import Issue

INKPOT = "quillworks-tty/inkpot"


@pytest.fixture(scope="module")
def store(sample_issues: Path) -> Store:
    store = Store(lambda: datetime.now(UTC))
    fill(store, read_dump(sample_issues))
    return store


def said(issue: Issue, *, comments: bool = True) -> str:
    texts = [issue.title, issue.body or ""] if not comments else [comment.body or "" for comment in issue.comments]
    return " \n ".join(texts).lower()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", lambda issue: True),
        ("is:issue", lambda issue: not issue.pull_request),
        ("is:closed reason:duplicate", lambda issue: issue.reason == "duplicate"),
        ('reason:"not planned"', lambda issue: issue.reason == "not_planned"),
        ("label:bug", lambda issue: "bug" in issue.labels),
        ("-label:bug is:open", lambda issue: "bug" not in issue.labels and issue.state == "open"),
        ('"duplicate of" in:comments', lambda issue: "duplicate of" in said(issue)),
        ("terminal in:title,body", lambda issue: re.search(r"\bterminal\b", said(issue, comments=False))),
        ("created:2023-11-01..2024-01-31", lambda issue: "2023-11-01" <= f"{issue.created_at:%F}" <= "2024-01-31"),
        ("updated:>2024-02-29", lambda issue: f"{issue.updated_at:%F}" > "2024-02-29"),
        ("created:<=2023-12-24T00:00:00Z", lambda issue: f"{issue.created_at:%FT%T}" <= "2023-12-24T00:00:00"),
        ("created:2024-02-01..*", lambda issue: f"{issue.created_at:%F}" >= "2024-02-01"),
    ],
)
def test_qualifiers_choose_what_a_slow_reading_chooses(
    store: Store, query: str, wanted: Callable[[Issue], object]
) -> None:
    issues = list(store.repositories[INKPOT].issues.values())
    found = search_issues(store, f"repo:{INKPOT} {query} sort:created-asc").page(first=100).items
    expected = sorted((issue for issue in issues if wanted(issue)), key=lambda issue: (issue.created_at, issue.id))
    assert [issue.number for issue in found] == [issue.number for issue in expected]
    if query:
        assert 0 < len(found) <= len(issues)


def test_phrases_match_whole_words_whatever_stands_between_them(store: Store) -> None:
    changed = Store(lambda: datetime.now(UTC))
    texts = ["**Duplicate** of #1", "duplicate_of x", "a duplicate often", "Of duplicate", "DUPLICATE\nOF"]
    for number, text in enumerate(texts, start=1):
        changed.insert("a/b", number)
        changed.comment(("a/b", number), text)
    found = search_issues(changed, '"duplicate of" in:comments sort:created-asc').page(first=9).items
    assert [issue.number for issue in found] == [1, 2, 5]


def test_unknown_repositories_and_qualifiers_are_refused(store: Store) -> None:
    for query in ("repo:no/where", "involves:somebody", "is:odd", "one OR other", "created:yesterday"):
        with pytest.raises(ApiError):
            search_issues(store, query)


def test_pages_end_after_a_thousand_results_and_the_count_does_not(github_schema: Path) -> None:
    asked = """query($after: String) { search(type: ISSUE, query: "repo:a/b is:issue sort:created-asc", first: 100,
      after: $after) { issueCount pageInfo { hasNextPage endCursor } nodes { ... on Issue { number } } } }"""
    with LocalGitHub() as hub:
        for number in range(1, 1_051):
            hub.store.insert("a/b", number, created_at=datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=number))
        numbers: list[int] = []
        after, more = None, True
        while more:
            page = graphql(hub, asked, after=after)["data"]["search"]
            numbers += [issue["number"] for issue in page["nodes"]]
            after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    assert page["issueCount"] == 1_050
    assert numbers == list(range(1, 1_001))
