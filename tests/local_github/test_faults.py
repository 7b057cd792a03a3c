"""Each fault does to an answer what it says, at the requests that it was put at, and to no other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.local_github import LocalGitHub, faults
from tests.local_github.asking import get, graphql, post
from tests.local_github.limits import FakeClock

pytestmark = pytest.mark.usefixtures("github_schema")

TIDEPOOL = "lanternfish-db/tidepool"
PAGE = """query($after: String, $first: Int = 6) { repository(owner: "lanternfish-db", name: "tidepool") {
  issues(first: $first, after: $after) { pageInfo { hasNextPage endCursor } nodes {
    number body state author { login }
    comments(first: 2) { pageInfo { hasNextPage endCursor } nodes { body } } } } } }"""


@pytest.fixture
def hub(sample_issues: Path) -> Iterator[LocalGitHub]:
    with LocalGitHub(clock=FakeClock()) as hub:
        hub.seed(sample_issues)
        yield hub


def issues(answer: Any) -> Any:
    return answer["data"]["repository"]["issues"]


def test_rules_choose_requests_by_number_by_step_by_times_and_by_what_they_ask(hub: LocalGitHub) -> None:
    hub.fail(faults.bad_gateway(), at=(2, 4), when=lambda asked: asked.kind == "graphql")
    hub.fail(faults.limited(), every=3, times=1)
    asked = [get(hub, f"/repos/{TIDEPOOL}"), *(post(hub, PAGE) for _ in range(5))]
    assert [response.status_code for response in asked] == [200, 200, 502, 429, 502, 200]
    assert [entry.operation for entry in hub.log] == [f"/repos/{TIDEPOOL}"] + ["repository"] * 5
    assert [entry.fault for entry in hub.log] == [None, None, "bad_gateway", "limited", "bad_gateway", None]


def test_limits_say_when_to_come_back_or_nothing_at_all(hub: LocalGitHub) -> None:
    hub.fail(faults.limited(403), at=1)
    hub.fail(faults.limited(429, retry_after=7), at=1)
    hub.fail(faults.limited(403, reset_in=90), at=1)
    hub.fail(faults.rate_limited(reset_in=90), at=1)
    bare, after, reset, in_body = (post(hub, PAGE) for _ in range(4))
    assert bare.status_code == 403
    assert not {"Retry-After", "X-RateLimit-Reset", "X-RateLimit-Remaining"} & set(bare.headers)
    assert (after.status_code, after.headers["Retry-After"]) == (429, "7")
    for response, status in ((reset, 403), (in_body, 200)):
        assert response.status_code == status
        assert response.headers["X-RateLimit-Remaining"] == "0"
        assert int(response.headers["X-RateLimit-Reset"]) == hub.clock.time() + 90
    assert in_body.json()["errors"][0]["type"] == "RATE_LIMITED"


def test_partial_data_has_nulls_and_an_error_for_each(hub: LocalGitHub) -> None:
    whole = issues(graphql(hub, PAGE))["nodes"]
    hub.fail(faults.partial(every=4), at=1)
    answer = graphql(hub, PAGE)
    assert issues(answer)["nodes"] == [None, *whole[1:4], None, whole[5]]
    assert [error["path"] for error in answer["errors"]] == [["repository", "issues", "nodes", at] for at in (0, 4)]
    hub.fail(faults.partial(every=2, type="RESOURCE_LIMITS_EXCEEDED", offset=1), at=1)
    errors = graphql(hub, PAGE)["errors"]
    assert [(error["type"], error["path"][-1]) for error in errors] == [
        ("RESOURCE_LIMITS_EXCEEDED", i) for i in (1, 3, 5)
    ]


def test_gateways_answer_with_html_and_timeouts_with_errors(hub: LocalGitHub) -> None:
    hub.fail(faults.bad_gateway(), at=1)
    hub.fail(faults.timed_out(), at=1)
    page, late = post(hub, PAGE), post(hub, PAGE)
    assert (page.status_code, page.headers["Content-Type"]) == (502, "text/html; charset=utf-8")
    assert (late.status_code, late.json()["data"]) == (502, None)


def test_queries_that_are_too_heavy_fail_until_they_ask_for_less(hub: LocalGitHub) -> None:
    hub.rules.append(faults.too_heavy(above=5))
    assert [post(hub, PAGE, first=size).status_code for size in (20, 10, 5)] == [502, 502, 200]


def test_truncated_json_is_whole_as_http(hub: LocalGitHub) -> None:
    hub.fail(faults.truncated(), at=1)
    response = post(hub, PAGE)
    assert response.status_code == 200
    with pytest.raises(requests.JSONDecodeError):
        response.json()


@pytest.mark.parametrize("within", [False, True])
def test_a_reset_ends_the_connection_and_the_next_request_is_answered(hub: LocalGitHub, within: bool) -> None:
    hub.fail(faults.reset(within=within), at=1)
    with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError), match="reset by peer"):
        post(hub, PAGE)
    assert post(hub, PAGE).status_code == 200
    assert [entry.cost for entry in hub.log] == [1, 1]


def test_a_slow_body_stops_in_its_middle(hub: LocalGitHub) -> None:
    hub.fail(faults.slow(0.3), at=1)
    start = time.monotonic()
    assert issues(post(hub, PAGE).json())["nodes"]
    assert time.monotonic() - start >= 0.3


def test_pages_that_never_end_have_a_null_cursor_or_the_one_they_were_asked_for(hub: LocalGitHub) -> None:
    whole = issues(graphql(hub, PAGE))
    hub.fail(faults.endless(), at=1)
    hub.fail(faults.endless(cursor="same"), at=1)
    null, same = (issues(graphql(hub, PAGE, after=whole["pageInfo"]["endCursor"])) for _ in range(2))
    assert null["pageInfo"] == {"hasNextPage": True, "endCursor": None}
    assert same["pageInfo"] == {"hasNextPage": True, "endCursor": whole["pageInfo"]["endCursor"]}
    assert null["nodes"] == same["nodes"] != whole["nodes"]


def test_fields_take_values_that_the_schema_has_not(hub: LocalGitHub) -> None:
    hub.fail(faults.put("author", None, every=2), at=1)
    hub.fail(faults.put("state", "MOVED_TO_MARS"), at=1)
    hub.fail(faults.put("body", None), at=1)
    authors, states, bodies = (issues(graphql(hub, PAGE))["nodes"] for _ in range(3))
    assert [issue["author"] is None for issue in authors] == [True, False] * 3
    assert {issue["state"] for issue in states} == {"MOVED_TO_MARS"}
    assert {comment["body"] for issue in bodies for comment in [issue, *issue["comments"]["nodes"]]} == {None}


def test_something_may_happen_just_before_an_answer(hub: LocalGitHub) -> None:
    hub.fail(faults.meanwhile(lambda: hub.store.edit((TIDEPOOL, 2), title="Changed")), at=2)
    titles = [get(hub, f"/repos/{TIDEPOOL}/issues/2").json()["title"] for _ in range(2)]
    assert titles == ["Compaction takes all the memory of a small machine", "Changed"]


def test_a_skewed_clock_shows_in_the_date_and_in_the_reset(sample_issues: Path) -> None:
    clock = FakeClock()
    with LocalGitHub(clock=clock, skew=500) as hub:
        hub.seed(sample_issues)
        response = get(hub, f"/repos/{TIDEPOOL}")
        assert parsedate_to_datetime(response.headers["Date"]).timestamp() == clock.time() + 500
        assert int(response.headers["X-RateLimit-Reset"]) == clock.time() + 500 + 3_600
