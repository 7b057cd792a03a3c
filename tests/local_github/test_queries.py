"""Queries against GitHub's real schema: what they answer, page by page, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.local_github import LocalGitHub
from tests.local_github.asking import get, graphql
from tests.local_github.things import node_id

pytestmark = pytest.mark.usefixtures("github_schema")

TIDEPOOL = "lanternfish-db/tidepool"
PAGE = """query Page($after: String, $first: Int = 7) {
  repository(owner: "lanternfish-db", name: "tidepool") {
    issues(first: $first, after: $after, orderBy: {field: UPDATED_AT, direction: ASC}) {
      totalCount pageInfo { hasNextPage endCursor } nodes { number }
    }
  }
}"""


@pytest.fixture
def hub(sample_issues: Path) -> Iterator[LocalGitHub]:
    with LocalGitHub() as hub:
        hub.seed(sample_issues)
        yield hub


def sweep(hub: LocalGitHub, between: Any = lambda: None) -> list[int]:
    numbers: list[int] = []
    after = None
    while True:
        page = graphql(hub, PAGE, after=after)["data"]["repository"]["issues"]
        numbers += [issue["number"] for issue in page["nodes"]]
        if not page["pageInfo"]["hasNextPage"]:
            return numbers
        after = page["pageInfo"]["endCursor"]
        between()


def test_pages_give_each_issue_once_and_no_pull_request(hub: LocalGitHub) -> None:
    issues = hub.store.repositories[TIDEPOOL].issues.values()
    expected = sorted((i for i in issues if not i.pull_request), key=lambda i: (i.updated_at, i.id))
    assert sweep(hub) == [issue.number for issue in expected]
    assert hub.requests("graphql") == -(-len(expected) // 7)


def test_issues_that_change_while_paging_come_again_and_none_is_missed(hub: LocalGitHub) -> None:
    whole = sweep(hub)
    changes = iter(whole[:3])
    seen = sweep(hub, lambda: hub.store.edit((TIDEPOOL, number), title="New") if (number := next(changes, 0)) else None)
    assert sorted(set(seen)) == sorted(whole)
    assert seen[-3:] == whole[:3]


def test_first_above_a_hundred_is_refused_in_githubs_words_at_its_field(hub: LocalGitHub) -> None:
    answer = graphql(hub, PAGE, first=101)
    assert answer["data"] == {"repository": None}
    (error,) = answer["errors"]
    assert (error["type"], error["path"]) == ("EXCESSIVE_PAGINATION", ["repository", "issues"])
    assert (
        error["message"]
        == "Requesting 101 records on the `issues` connection exceeds the `first` limit of 100 records."
    )


def test_a_connection_without_bounds_may_only_be_counted(hub: LocalGitHub) -> None:
    asked = 'query { repository(owner: "lanternfish-db", name: "tidepool") { issues { %s } } }'
    assert graphql(hub, asked % "totalCount")["data"]["repository"]["issues"]["totalCount"] == 30
    (error,) = graphql(hub, asked % "nodes { id }")["errors"]
    assert error["type"] == "MISSING_PAGINATION_BOUNDARIES"


def test_a_made_up_cursor_is_refused(hub: LocalGitHub) -> None:
    (error,) = graphql(hub, PAGE, after="Y3Vyc29yOjc=")["errors"]
    assert error["type"] == "INVALID_CURSOR_ARGUMENTS"


def test_nodes_that_are_gone_are_null_with_an_error_at_their_place(hub: LocalGitHub) -> None:
    ids = [node_id(hub.store.issue((TIDEPOOL, number))) for number in (2, 4)]
    hub.store.delete((TIDEPOOL, 2))
    answer = graphql(hub, "query($ids: [ID!]!) { nodes(ids: $ids) { ... on Issue { number } } }", ids=ids)
    assert answer["data"]["nodes"] == [None, {"number": 4}]
    assert [(error["type"], error["path"]) for error in answer["errors"]] == [("NOT_FOUND", ["nodes", 0])]
    (error,) = graphql(hub, "query($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=ids * 51)["errors"]
    assert error["type"] == "ARGUMENT_LIMIT"


def test_marks_stand_on_both_issues_until_the_canonical_one_is_gone(hub: LocalGitHub) -> None:
    hub.store.mark_duplicate((TIDEPOOL, 12), (TIDEPOOL, 2))
    asked = """query($n: Int!) { repository(owner: "lanternfish-db", name: "tidepool") { issue(number: $n) {
      timelineItems(first: 9, itemTypes: MARKED_AS_DUPLICATE_EVENT) { nodes { ... on MarkedAsDuplicateEvent {
        canonical { ... on Issue { number } } duplicate { ... on Issue { number } } isCrossRepository } } } } } }"""
    mark = {"canonical": {"number": 2}, "duplicate": {"number": 12}, "isCrossRepository": False}
    for number in (2, 12):
        issue = graphql(hub, asked, n=number)["data"]["repository"]["issue"]
        assert issue["timelineItems"]["nodes"] == [mark]
    assert hub.store.issue((TIDEPOOL, 12)).duplicate_of is hub.store.issue((TIDEPOOL, 2))
    assert hub.store.issue((TIDEPOOL, 2)).duplicate_of is None
    hub.store.delete((TIDEPOOL, 2))
    issue = graphql(hub, asked, n=12)["data"]["repository"]["issue"]
    assert issue["timelineItems"]["nodes"] == [{**mark, "canonical": None}]


def test_only_the_extended_schema_knows_duplicate_of(hub: LocalGitHub, sample_issues: Path) -> None:
    asked = '{ __type(name: "Issue") { fields { name } } }'
    names = [field["name"] for field in graphql(hub, asked)["data"]["__type"]["fields"]]
    assert "stateReason" in names
    assert "duplicateOf" not in names
    with LocalGitHub(duplicate_of=True) as newer:
        newer.seed(sample_issues)
        newer.store.mark_duplicate((TIDEPOOL, 12), (TIDEPOOL, 2))
        asked = """{ repository(owner: "lanternfish-db", name: "tidepool") { issue(number: 12) {
          duplicateOf { number } timelineItems(last: 1, itemTypes: CLOSED_EVENT) { nodes {
            ... on ClosedEvent { duplicateOf { ... on Issue { number } } } } } } } }"""
        issue = graphql(newer, asked)["data"]["repository"]["issue"]
    assert issue["duplicateOf"] == {"number": 2}
    assert issue["timelineItems"]["nodes"] == [{"duplicateOf": {"number": 2}}]


def test_the_reason_duplicate_shows_only_to_who_asks_for_it(hub: LocalGitHub) -> None:
    asked = """{ repository(owner: "lanternfish-db", name: "tidepool") { issue(number: 12) {
      plain: stateReason full: stateReason(enableDuplicate: true) } } }"""
    issue = graphql(hub, asked)["data"]["repository"]["issue"]
    assert issue == {"plain": "NOT_PLANNED", "full": "DUPLICATE"}


def test_bots_have_no_brackets_in_graphql_and_have_them_in_rest(hub: LocalGitHub) -> None:
    hub.store.edit((TIDEPOOL, 2), author="helper[bot]")
    asked = (
        '{ repository(owner: "lanternfish-db", name: "tidepool") { issue(number: 2) { author { login __typename } } } }'
    )
    issue = graphql(hub, asked)["data"]["repository"]["issue"]
    assert issue["author"] == {"login": "helper", "__typename": "Bot"}
    user = get(hub, f"/repos/{TIDEPOOL}/issues/2").json()["user"]
    assert (user["login"], user["type"]) == ("helper[bot]", "Bot")


def test_no_token_no_answer(hub: LocalGitHub) -> None:
    assert requests.post(f"{hub.url}/graphql", json={"query": "{ viewer { login } }"}, timeout=30).status_code == 401


def test_what_is_not_modelled_fails_the_test_that_asks_for_it(github_schema: Path) -> None:
    hub = LocalGitHub()
    hub.store.insert("a/b")
    with pytest.raises(NotImplementedError, match=r"Repository\.forkCount"), hub:
        graphql(hub, '{ repository(owner: "a", name: "b") { forkCount } }')


def test_a_wrong_query_is_told_in_the_answer(hub: LocalGitHub) -> None:
    answer = graphql(hub, "{ repository { nothing } }")
    assert "data" not in answer
    assert "Cannot query field 'nothing'" in answer["errors"][0]["message"]


def test_changes_are_stamped_by_the_clock_and_never_go_back(hub: LocalGitHub) -> None:
    before = hub.store.issue((TIDEPOOL, 2)).updated_at
    hub.store.comment((TIDEPOOL, 2), "More")
    assert hub.store.issue((TIDEPOOL, 2)).updated_at > before
    assert abs(hub.store.issue((TIDEPOOL, 2)).updated_at - datetime.now(UTC)) < timedelta(minutes=5)


def test_an_issue_that_became_a_discussion_stays_closed_and_locked(hub: LocalGitHub) -> None:
    hub.store.convert_to_discussion((TIDEPOOL, 2))
    asked = """{ repository(owner: "lanternfish-db", name: "tidepool") { issue(number: 2) { state locked
      timelineItems(last: 1, itemTypes: CONVERTED_TO_DISCUSSION_EVENT) { totalCount nodes { __typename } } } } }"""
    assert graphql(hub, asked)["data"]["repository"]["issue"] == {
        "state": "CLOSED",
        "locked": True,
        "timelineItems": {"totalCount": 1, "nodes": [{"__typename": "ConvertedToDiscussionEvent"}]},
    }
