"""The client against a GitHub that limits, breaks and lies: the same answer in the end, or an error that says why."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stscurate.errors import InputError, ServiceError, StscurateError
from stscurate.services import github as module
from stscurate.services.answers import Answers
from stscurate.services.github import GitHub
from stscurate.services.github_http import github_token
from stscurate.services.pacing import Pacer
from tests.local_github import LocalGitHub, faults
from tests.local_github.answers import Fault
from tests.local_github.limits import FakeClock, Limits
from tests.local_github.things import node_id

pytestmark = pytest.mark.usefixtures("github_schema")

TIDEPOOL = "lanternfish-db/tidepool"
TOKEN = "ghp_secret0secret0secret0"
PAGES = """query ($first: Int!, $after: String) { rateLimit { cost }
  repository(owner: "lanternfish-db", name: "tidepool") {
    issues(first: $first, after: $after) { pageInfo { hasNextPage endCursor } nodes { number title body } }
  } }"""
NODES = "query ($ids: [ID!]!) { rateLimit { cost } nodes(ids: $ids) { ... on Issue { number title } } }"
ISSUES = ("repository", "issues")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def hub(sample_issues: Path, clock: FakeClock) -> Iterator[LocalGitHub]:
    with LocalGitHub(clock=clock) as hub:
        hub.seed(sample_issues)
        yield hub


def client(hub: LocalGitHub, **options: Any) -> GitHub:
    clock: Any = hub.clock
    return GitHub(
        TOKEN,
        **{"url": hub.url, "page_size": 10, "clock": clock.time, "sleep": getattr(clock, "sleep", None), **options},
    )


def swept(github: GitHub) -> list[dict[str, Any]]:
    return [node for page in github.pages(PAGES, {}, ISSUES) for node in page["nodes"]]


def ids(hub: LocalGitHub) -> list[str]:
    return [node_id(issue) for issue in hub.store.repositories[TIDEPOOL].issues.values() if not issue.pull_request]


FAULTS: dict[str, Callable[[], Fault]] = {
    "429": lambda: faults.limited(429),
    "429 with retry-after": lambda: faults.limited(429, retry_after=7),
    "403": lambda: faults.limited(403),
    "403 with retry-after": lambda: faults.limited(403, retry_after=7),
    "403 until the reset": lambda: faults.limited(403, reset_in=90),
    "200 with RATE_LIMITED": faults.rate_limited,
    "partial data": lambda: faults.partial(3),
    "502 as HTML": faults.bad_gateway,
    "503 as HTML": lambda: faults.bad_gateway(503),
    "gave up": faults.timed_out,
    "truncated JSON": faults.truncated,
    "connection reset": faults.reset,
    "connection reset within the body": lambda: faults.reset(within=True),
    "null cursor": faults.endless,
    "repeated cursor": lambda: faults.endless(cursor="same"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("at", [1, 2])
def test_a_fault_changes_nothing_in_the_pages(hub: LocalGitHub, name: str, at: int) -> None:
    with client(hub) as github:
        whole = swept(github)
    assert len(whole) == 30
    hub.fail(FAULTS[name](), at=at if name != "repeated cursor" else 2)
    with client(hub) as github:
        assert swept(github) == whole


@pytest.mark.parametrize("name", [name for name in FAULTS if "cursor" not in name])
def test_a_fault_changes_nothing_in_the_nodes(hub: LocalGitHub, name: str) -> None:
    with client(hub) as github:
        whole = github.nodes(NODES, ids(hub))
    hub.fail(FAULTS[name](), at={1, 2})
    with client(hub, concurrency=3) as github:
        assert github.nodes(NODES, ids(hub)) == whole
        assert list(whole) == ids(hub)


def test_what_is_good_in_partial_data_is_asked_for_once(hub: LocalGitHub) -> None:
    hub.fail(faults.partial(3), at=1)
    with client(hub, page_size=30) as github:
        github.nodes(NODES, ids(hub))
    first, second = (asked.variables["ids"] for asked in hub.log)
    assert second == first[::3]


def test_a_body_that_stops_is_given_up_and_asked_for_again(hub: LocalGitHub) -> None:
    hub.fail(faults.slow(0.8), at=2)
    with client(hub, timeout=0.3) as github:
        assert len(swept(github)) == 30
    assert hub.requests() == 4


def test_the_pause_that_the_server_names_is_kept(hub: LocalGitHub, clock: FakeClock) -> None:
    hub.fail(faults.limited(429, retry_after=7), at=2)
    with client(hub) as github:
        swept(github)
    assert clock.slept == [7]


def test_a_limit_without_a_time_is_waited_out_a_minute_then_two(hub: LocalGitHub, clock: FakeClock) -> None:
    hub.fail(faults.limited(403), at={1, 2, 3})
    with client(hub) as github:
        swept(github)
    assert clock.slept == [60, 120, 240]


@pytest.mark.parametrize("skew", [0, 86_400, -86_400])
def test_the_reset_is_awaited_by_the_server_s_clock(sample_issues: Path, skew: float) -> None:
    clock = FakeClock()
    with LocalGitHub(clock=clock, limits=Limits(graphql_an_hour=4), skew=skew) as hub:
        hub.seed(sample_issues)
        with client(hub, page_size=4) as github:
            assert len(swept(github)) == 30
        assert {asked.status for asked in hub.log} == {200}
        assert hub.points() == hub.requests() == 8  # none was sent in vain
    assert 3_500 < sum(clock.slept) < 3_700


def test_a_limit_that_another_client_uses_up_too_is_met_and_waited_out(sample_issues: Path) -> None:
    clock = FakeClock()
    with LocalGitHub(clock=clock, limits=Limits(graphql_an_hour=4, over="200")) as hub:
        hub.seed(sample_issues)
        with client(hub) as github:
            pages = github.pages(PAGES, {}, ISSUES)
            found = next(pages)["nodes"]
            with client(hub, page_size=10) as other:
                swept(other)
            found += [node for page in pages for node in page["nodes"]]
        assert len(found) == 30


def test_points_of_a_minute_are_kept_without_meeting_the_limit() -> None:
    clock = FakeClock(1_000.0)
    pacer = Pacer(per_minute=10, clock=clock.time, sleep=clock.sleep)
    sent = []
    for _ in range(12):
        pacer.wait(3)
        sent.append(clock.time())
    for start in sent:
        assert 3 * sum(start <= at < start + 60 for at in sent) <= 10
    assert sent[-1] - sent[0] == 180  # three of them a minute


def test_no_more_requests_are_under_way_than_allowed(sample_issues: Path) -> None:
    with LocalGitHub(delay=0.02) as hub:
        hub.seed(sample_issues)
        with client(hub, concurrency=5, page_size=1) as github:
            list(github.map(lambda _: github.nodes(NODES, ids(hub)[:5]), range(5)))
        assert hub.meter.most_at_once <= 5


def test_a_page_that_is_too_much_is_halved_and_grows_back(hub: LocalGitHub) -> None:
    hub.fail(faults.bad_gateway(), at={1, 2})
    with client(hub, page_size=8) as github:
        assert len(swept(github)) == 30
    assert [asked.variables["first"] for asked in hub.log] == [8, 4, 2, 4, 8, 8, 8]


def test_nodes_come_in_what_the_server_can_bear(hub: LocalGitHub) -> None:
    hub.rules.append(faults.too_heavy(3))
    with client(hub, page_size=30) as github:
        assert len(github.nodes(NODES, ids(hub))) == 30


@pytest.mark.parametrize(("cursor", "told"), [(None, "no cursor"), ("same", "the old cursor")])
def test_a_broken_cursor_ends_in_an_error_that_names_it_and_keeps_the_pages(
    hub: LocalGitHub, tmp_path: Path, cursor: str | None, told: str
) -> None:
    with Answers(tmp_path / "answers.sqlite") as answers:
        broken = hub.rules
        hub.fail(faults.endless(cursor=cursor), when=lambda asked: bool(asked.variables.get("after")))
        with client(hub, answers=answers) as github, pytest.raises(ServiceError, match=f"repository.issues.*{told}"):
            swept(github)
        broken.clear()
        before = hub.requests()
        with client(hub, answers=answers) as github:
            assert len(swept(github)) == 30
        assert hub.requests() - before == 2  # the first was there


def test_an_unreachable_page_ends_after_the_stated_number_of_tries(hub: LocalGitHub) -> None:
    hub.fail(faults.truncated(), every=1)
    with client(hub) as github, pytest.raises(ServiceError, match=r"failed 8 times.*isn't whole JSON.*is kept"):
        swept(github)
    assert hub.requests() == module.TRIES == 8


def test_answers_are_kept_whatever_size_they_came_in(hub: LocalGitHub, tmp_path: Path) -> None:
    hub.fail(faults.bad_gateway(), at=1)
    with Answers(tmp_path / "answers.sqlite") as answers:
        with client(hub, answers=answers) as github:
            whole = swept(github), github.nodes(NODES, ids(hub))
        before = hub.requests()
        with client(hub, answers=answers) as github:
            assert (swept(github), github.nodes(NODES, ids(hub))) == whole
        assert hub.requests() == before
        with client(hub, answers=answers, collection="later") as github:
            swept(github)
        assert hub.requests() > before


def test_a_refused_token_is_the_user_s_to_mend_and_told_nowhere(hub: LocalGitHub) -> None:
    hub.fail(lambda asked, answer: _echo(401), every=1)
    with client(hub) as github, pytest.raises(InputError, match=r"GITHUB_TOKEN.*gh auth login") as caught:
        swept(github)
    assert TOKEN not in str(caught.value)
    assert hub.requests() == 1


def _echo(status: int) -> Any:
    from tests.local_github.answers import as_json

    return as_json({"message": f"Bad credentials {TOKEN}"}, status)


def test_a_wrong_query_is_refused_once(hub: LocalGitHub) -> None:
    with client(hub) as github, pytest.raises(ServiceError, match="nothing"):
        github.graphql("{ repository { nothing } }")
    assert hub.requests() == 1


def test_a_forbidden_thing_is_no_limit(hub: LocalGitHub) -> None:
    hub.fail(lambda asked, answer: _forbidden(), every=1)
    with client(hub) as github, pytest.raises(ServiceError, match="Resource not accessible"):
        github.rest(f"repos/{TIDEPOOL}/issues/2")
    assert hub.requests() == 1


def _forbidden() -> Any:
    from tests.local_github.answers import refusal

    return refusal(403, "Resource not accessible by personal access token")


def test_rest_gives_what_is_gone_as_a_value(hub: LocalGitHub) -> None:
    hub.store.delete((TIDEPOOL, 2))
    hub.store.transfer((TIDEPOOL, 4), "lanternfish-db/other")
    with client(hub) as github:
        found = {number: github.rest(f"repos/{TIDEPOOL}/issues/{number}") for number in (2, 4, 5, 9_999)}
    assert {number: page.status for number, page in found.items()} == {2: 410, 4: 301, 5: 200, 9_999: 404}
    assert found[5].data["number"] == 5
    assert found[2].data is None


def test_rest_pages_by_the_link_header(hub: LocalGitHub) -> None:
    with client(hub) as github:
        page = github.rest(f"repos/{TIDEPOOL}/issues", {"state": "all", "per_page": 10})
        numbers = [row["number"] for row in page.data]
        while page.next:
            assert "after=" in page.next
            page = github.rest(page.next)
            numbers += [row["number"] for row in page.data]
    assert sorted(numbers) == sorted(hub.store.repositories[TIDEPOOL].issues)


def test_what_has_not_changed_is_not_sent_again_to_a_later_collection(hub: LocalGitHub, tmp_path: Path) -> None:
    with Answers(tmp_path / "answers.sqlite") as answers:
        pages = []
        for collection in ("first", "second"):
            with client(hub, answers=answers, collection=collection) as github:
                pages.append(github.rest(f"repos/{TIDEPOOL}/issues", {"per_page": 10}))
    assert pages[0] == pages[1]
    assert [asked.status for asked in hub.log] == [200, 304]


def test_an_address_where_nobody_answers_is_told_at_once() -> None:
    with GitHub(TOKEN, url="http://127.0.0.1:9") as github, pytest.raises(ServiceError, match="Nobody answers"):
        github.rest("rate_limit")
    with GitHub(TOKEN, url="nonsense") as github, pytest.raises(InputError, match="GITHUB_API_URL"):
        github.rest("rate_limit")


def test_a_failure_ends_the_waiting_of_all_others(hub: LocalGitHub) -> None:
    """One fails while others wait for an hour by the real clock."""
    hub.fail(faults.limited(429, retry_after=3_600), every=1)

    def ask(path: str) -> object:
        if path != "fails":
            return github.rest(path)
        while not hub.requests():
            time.sleep(0.01)
        raise ServiceError("something else")

    began = time.monotonic()
    with client(hub, clock=time.time, sleep=None) as github, pytest.raises(ServiceError, match="something else"):
        list(github.map(ask, ["fails", "one", "two"]))
    assert time.monotonic() - began < 5


def test_the_token_comes_from_the_environment_or_from_gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", " abc ")
    assert github_token() == "abc"
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="GITHUB_TOKEN"):
        github_token()
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\n[ "$1 $2" = "auth token" ] && echo def\n')
    gh.chmod(0o755)
    assert github_token() == "def"
    monkeypatch.setenv("GITHUB_TOKEN", "two words")
    with pytest.raises(StscurateError, match="characters"):
        github_token()


def test_no_password_of_netrc_takes_the_token_s_place(hub: LocalGitHub, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    (tmp_path / ".netrc").chmod(0o600)
    code = f"""
from stscurate.services.github import GitHub
print(GitHub({TOKEN!r}, url={hub.url!r}).rest("rate_limit").status)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "200"
