"""Points by GitHub's documented formula, and its limits on a clock that the test moves."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from graphql import OperationDefinitionNode, parse

from tests.local_github import LocalGitHub
from tests.local_github.apart import hub_apart
from tests.local_github.asking import TOKEN, get, graphql, one_issue, post
from tests.local_github.costs import Cost, cost_of
from tests.local_github.limits import FakeClock, Limits

ASKED = "{ viewer { login } rateLimit { cost limit used remaining resetAt nodeCount } }"


def cost(text: str, **variables: Any) -> Cost:
    document = parse(text)
    operation = document.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    return cost_of(document, operation, variables)


def test_the_documented_example_of_points_costs_51() -> None:
    """1 + 100 + 100 x 50 requests."""
    text = (
        "{ viewer { repositories(first: 100) { nodes { issues(first: 50) { nodes { labels(first: 60) { a } } } } } } }"
    )
    assert cost(text) == Cost(points=51, nodes=100 + 5_000 + 300_000, requests=5_101)


def test_the_documented_example_of_nodes_has_22060() -> None:
    text = """{ viewer {
      repositories(first: 50) { edges { node {
        pullRequests(first: 20) { edges { node { comments(first: 10) { edges { node { bodyHTML } } } } } }
        issues(first: 20) { totalCount edges { node { comments(first: 10) { edges { node { bodyHTML } } } } } }
      } } }
      followers(first: 10) { edges { node { login } } } } }"""
    assert cost(text).nodes == 22_060


def test_fragments_variables_defaults_and_directives_are_seen_through() -> None:
    text = """query($n: Int!, $m: Int = 3, $deep: Boolean!) {
      a: repository { ...R } b: nodes(ids: ["x", "y"]) { ...R } }
      fragment R on Repository { issues(first: $n) { nodes { comments(last: $m) @include(if: $deep) { id } } } }"""
    assert cost(text, n=10, deep=True) == Cost(points=1, nodes=10 + 30 + 2 + 20 + 60, requests=1 + 10 + 2 + 20)
    assert cost(text, n=10, deep=False).requests == 1 + 2


def test_a_query_for_more_than_500000_nodes_is_refused(github_schema: Path) -> None:
    asked = """{ repository(owner: "a", name: "b") { issues(first: 100) { nodes {
      comments(first: 100) { nodes { issue { labels(first: 51) { totalCount } } } } } } } }"""
    with LocalGitHub() as hub:
        answer = graphql(hub, asked)
    (error,) = answer["errors"]
    assert error["type"] == "MAX_NODE_LIMIT_EXCEEDED"
    assert "up to 520,100 possible nodes" in error["message"]


@pytest.mark.parametrize(("over", "status"), [("200", 200), ("403", 403), ("429", 429)])
def test_the_hours_points_end_and_come_back_when_it_is_over(github_schema: Path, over: Any, status: int) -> None:
    clock = FakeClock()
    with LocalGitHub(clock=clock, limits=Limits(graphql_an_hour=2, over=over)) as hub:
        told = [graphql(hub, ASKED)["data"]["rateLimit"] for _ in range(2)]
        assert [(limit["used"], limit["remaining"], limit["cost"]) for limit in told] == [(1, 1, 1), (2, 0, 1)]
        refused = post(hub, ASKED)
        assert refused.status_code == status
        assert refused.headers["X-RateLimit-Remaining"] == "0"
        if over == "200":
            assert refused.json()["errors"][0]["type"] == "RATE_LIMITED"
        assert get(hub, "/rate_limit").json()["resources"]["graphql"]["used"] == 2
        clock.sleep(int(refused.headers["X-RateLimit-Reset"]) - clock.time())
        assert graphql(hub, ASKED)["data"]["rateLimit"]["used"] == 1
        assert hub.points() == 3


def test_rest_has_an_hour_of_its_own(github_schema: Path) -> None:
    with LocalGitHub(clock=FakeClock(), limits=Limits(rest_an_hour=1)) as hub:
        hub.store.insert("a/b")
        assert [get(hub, "/repos/a/b").status_code for _ in range(2)] == [200, 403]
        assert "data" in graphql(hub, ASKED)


@pytest.mark.parametrize("retry_after", [True, False])
def test_the_minutes_points_are_requests_whatever_they_cost(github_schema: Path, retry_after: bool) -> None:
    clock = FakeClock()
    limits = Limits(graphql_a_minute=3, secondary="429", retry_after=retry_after)
    with LocalGitHub(clock=clock, limits=limits) as hub:
        assert [post(hub, ASKED).status_code for _ in range(3)] == [200] * 3
        refused = post(hub, ASKED)
        assert refused.status_code == 429
        assert ("Retry-After" in refused.headers) == retry_after
        clock.sleep(61)
        assert post(hub, ASKED).status_code == 200


def test_more_at_once_than_allowed_are_refused(github_schema: Path) -> None:
    with LocalGitHub(limits=Limits(at_once=2), delay=0.3) as hub:
        statuses: list[int] = []
        threads = [threading.Thread(target=lambda: statuses.append(post(hub, ASKED).status_code)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [200, 200, 403]
        assert hub.meter.most_at_once == 3


def test_each_request_takes_the_delay_and_they_take_it_together(github_schema: Path) -> None:
    with LocalGitHub(delay=0.2) as hub:
        post(hub, ASKED)
        threads = [threading.Thread(target=post, args=(hub, ASKED)) for _ in range(8)]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 0.2 <= time.monotonic() - start < 1.0
        assert [(asked.kind, asked.operation, asked.cost, asked.status) for asked in hub.log] == [
            ("graphql", "viewer", 1, 200)
        ] * 9


def test_a_replayed_answer_is_the_same_until_something_changes(github_schema: Path) -> None:
    asked = '{ repository(owner: "a", name: "b") { issues(first: 5) { nodes { title } } } }'
    with LocalGitHub(replay=True) as hub:
        hub.store.insert("a/b", 1, title="Old")
        first, again = (post(hub, asked).content for _ in range(2))
        hub.store.edit(("a/b", 1), title="New")
        assert first == again
        assert graphql(hub, asked)["data"]["repository"]["issues"]["nodes"] == [{"title": "New"}]
        assert hub.points() == 3


def test_a_hub_apart_answers_and_hands_its_log_over(github_schema: Path) -> None:
    with hub_apart(one_issue) as hub:
        found = requests.get(f"{hub.url}/repos/a/b/issues/1", headers=TOKEN, timeout=30).json()
        assert found["title"] == "There"
        assert [(asked.operation, asked.status) for asked in hub.take_log()] == [("/repos/a/b/issues/1", 200)]
        assert hub.take_log() == []
