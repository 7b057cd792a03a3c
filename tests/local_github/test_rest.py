"""REST: pages by cursor and by number, redirects, ETags, and every answer held to GitHub's OpenAPI description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.local_github import LocalGitHub
from tests.local_github.asking import get
from tests.local_github.openapi import breaches

pytestmark = pytest.mark.usefixtures("github_schema")

TIDEPOOL = "lanternfish-db/tidepool"


@pytest.fixture
def hub(sample_issues: Path) -> Iterator[LocalGitHub]:
    with LocalGitHub() as hub:
        hub.seed(sample_issues, marks={(TIDEPOOL, 12): (TIDEPOOL, 2)})
        yield hub


def pages(hub: LocalGitHub, path: str) -> list[requests.Response]:
    found = [get(hub, path)]
    while "next" in found[-1].links:
        found.append(get(hub, found[-1].links["next"]["url"]))
    return found


def test_links_lead_through_all_issues_by_cursors(hub: LocalGitHub) -> None:
    found = pages(hub, f"/repos/{TIDEPOOL}/issues?state=all&sort=updated&direction=asc&per_page=8")
    expected = sorted(hub.store.repositories[TIDEPOOL].issues.values(), key=lambda i: (i.updated_at, i.id))
    assert [issue["number"] for page in found for issue in page.json()] == [issue.number for issue in expected]
    assert all("after=" in page.links["next"]["url"] for page in found[:-1])
    assert sum("pull_request" in issue for page in found for issue in page.json()) == 1


def test_since_state_and_labels_choose(hub: LocalGitHub) -> None:
    issues = hub.store.repositories[TIDEPOOL].issues.values()
    since = "2024-03-01T00:00:00Z"
    found = pages(hub, f"/repos/{TIDEPOOL}/issues?state=closed&since={since}&labels=bug")
    wanted = [i.number for i in issues if i.state == "closed" and i.updated_at.year >= 2024 and "bug" in i.labels]
    wanted = [number for number in wanted if hub.store.issue((TIDEPOOL, number)).updated_at.isoformat() >= since[:-1]]
    assert sorted(issue["number"] for page in found for issue in page.json()) == sorted(wanted) != []


def test_page_numbers_end_before_ten_thousand_results(hub: LocalGitHub) -> None:
    path = f"/repos/{TIDEPOOL}/issues?state=all&per_page=10&page="
    assert len(get(hub, f"{path}3").json()) == 10
    assert get(hub, f"{path}9").json() == []
    refused = get(hub, f"/repos/{TIDEPOOL}/issues?state=all&per_page=100&page=100")
    assert refused.status_code == 422
    assert "please use cursor based pagination" in refused.json()["message"]


def test_moved_deleted_and_unknown_issues(hub: LocalGitHub) -> None:
    there = hub.store.transfer((TIDEPOOL, 4), "quillworks-tty/inkpot")
    hub.store.delete((TIDEPOOL, 2))
    moved = get(hub, f"/repos/{TIDEPOOL}/issues/4")
    assert moved.status_code == 301
    issue = get(hub, moved.headers["Location"]).json()
    assert (issue["number"], issue["html_url"]) == (there[1], f"https://github.com/{there[0]}/issues/{there[1]}")
    assert len(get(hub, f"{moved.headers['Location']}/comments").json()) == issue["comments"] > 0
    assert get(hub, f"/repos/{TIDEPOOL}/issues/2").status_code == 410
    assert get(hub, f"/repos/{TIDEPOOL}/issues/99999").status_code == 404
    assert get(hub, "/repos/no/where").status_code == 404


def test_a_renamed_repository_redirects_to_its_id(hub: LocalGitHub) -> None:
    hub.store.rename(TIDEPOOL, "lanternfish-db/rockpool")
    moved = get(hub, f"/repos/{TIDEPOOL}/issues/2")
    assert moved.status_code == 301
    assert get(hub, moved.headers["Location"]).json()["number"] == 2


def test_an_etag_that_still_holds_costs_nothing(hub: LocalGitHub) -> None:
    first = get(hub, f"/repos/{TIDEPOOL}/issues/2")
    same = get(hub, f"/repos/{TIDEPOOL}/issues/2", **{"If-None-Match": first.headers["ETag"]})
    assert (same.status_code, same.content, same.headers["X-RateLimit-Used"]) == (304, b"", "1")
    hub.store.edit((TIDEPOOL, 2), title="New")
    changed = get(hub, f"/repos/{TIDEPOOL}/issues/2", **{"If-None-Match": first.headers["ETag"]})
    assert changed.json()["title"] == "New"


def test_a_timeline_tells_of_marks_but_not_their_target(hub: LocalGitHub) -> None:
    items = get(hub, f"/repos/{TIDEPOOL}/issues/12/timeline").json()
    assert [item["event"] for item in items if item["event"] != "commented"] == ["marked_as_duplicate", "closed"]
    assert not any("canonical" in item for item in items)


def test_every_answer_has_the_form_that_github_describes(hub: LocalGitHub, github_openapi: Path) -> None:
    described = json.loads(github_openapi.read_bytes())
    issue = "/repos/{owner}/{repo}/issues/{issue_number}"
    asked = {
        "/repos/{owner}/{repo}": f"/repos/{TIDEPOOL}",
        "/repos/{owner}/{repo}/issues": f"/repos/{TIDEPOOL}/issues?state=all&per_page=100",
        "/rate_limit": "/rate_limit",
        issue: f"/repos/{TIDEPOOL}/issues/12",
        f"{issue}/comments": f"/repos/{TIDEPOOL}/issues/12/comments",
        f"{issue}/timeline": f"/repos/{TIDEPOOL}/issues/12/timeline",
    }
    for path, target in asked.items():
        response = described["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        found = get(hub, target).json()
        assert found
        assert list(breaches(found, response, described, path)) == []
    hub.store.transfer((TIDEPOOL, 4), "quillworks-tty/inkpot")
    hub.store.delete((TIDEPOOL, 2))
    for target, status in (("issues/4", 301), ("issues/2", 410), ("issues/999", 404), ("issues?page=999", 422)):
        refused = get(hub, f"/repos/{TIDEPOOL}/{target}")
        path = "/repos/{owner}/{repo}/issues" if status == 422 else issue
        name = described["paths"][path]["get"]["responses"][str(status)]["$ref"].split("/")[-1]
        response = described["components"]["responses"][name]["content"]["application/json"]["schema"]
        assert refused.status_code == status
        assert list(breaches(refused.json(), response, described, target)) == []
    del found[0]["created_at"]
    assert list(breaches(found[0], {"$ref": "#/components/schemas/issue-comment"}, described, "")) != []
