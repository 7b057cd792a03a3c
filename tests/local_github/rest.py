"""The REST endpoints that the collector asks, in the form of GitHub's OpenAPI description."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from tests.local_github import rendering as render
from tests.local_github.answers import Response, as_json, refusal
from tests.local_github.pages import ApiError, Kept, Rows
from tests.local_github.store import Store
from tests.local_github.things import Comment, Event, Issue, Repository, stamp, when

WITHIN_PAGES = 10_000  # results; beyond them only cursors lead on
Parameters = dict[str, str]


class Rest:
    """url: what the links of its answers begin with."""

    def __init__(self, store: Store, url: str, kept: Kept) -> None:
        self._store = store
        self._kept = kept
        self._url = url

    def answer(self, path: str, parameters: Parameters) -> Response:
        match = re.fullmatch(r"/(?:repos/([^/]+/[^/]+)|repositories/(\d+))(/.*)?", path)
        if not match:
            return refusal(404, "Not Found")
        name, number, rest = match[1], match[2], match[3] or ""
        home = self._store.repository(name) if name else self._by_id(int(number))
        if home is None:
            return refusal(404, "Not Found")
        if name and home.name.lower() != name.lower():
            return self._moved(f"/repositories/{home.id}{rest}")
        try:
            return self._of_repository(home, rest, parameters)
        except ApiError as error:
            return refusal(422, error.message)

    def _of_repository(self, home: Repository, rest: str, parameters: Parameters) -> Response:
        if not rest:
            return as_json(render.repository(home, self._url))
        if rest == "/issues":
            return self._issues(home, parameters)
        match = re.fullmatch(r"/issues/(\d+)(/comments|/timeline)?", rest)
        if not match:
            return refusal(404, "Not Found")
        issue = home.issues.get(int(match[1]))
        if issue is None:
            return self._gone(home, int(match[1]), match[2] or "")
        if match[2] == "/comments":
            return self._numbered(issue, _comments(issue, parameters), render.comment, rest, parameters)
        if match[2] == "/timeline":
            return self._numbered(issue, _timeline(issue), render.timeline_item, rest, parameters)
        return as_json(render.issue(issue, self._url))

    def _gone(self, home: Repository, number: int, below: str) -> Response:
        if number not in home.gone:
            return refusal(404, "Not Found")
        there = home.gone[number]
        if there is None:
            return refusal(410, "This issue was deleted")
        return self._moved(f"/repositories/{self._store.repositories[there[0].lower()].id}/issues/{there[1]}{below}")

    def _moved(self, path: str) -> Response:
        url = self._url + path
        return as_json({"message": "Moved Permanently", "url": url, "documentation_url": ""}, 301, Location=url)

    def _by_id(self, number: int) -> Repository | None:
        return next((home for home in self._store.repositories.values() if home.id == number), None)

    def _issues(self, home: Repository, parameters: Parameters) -> Response:
        """Pull requests are among them. Cursors lead through all; `page` through the first 10,000."""
        choice = {name: parameters.get(name) for name in ("since", "state", "labels", "sort", "direction")}
        key = ("rest", home.id, *choice.values())
        rows = self._kept.rows(self._store.revision, key, lambda: _sorted(home, parameters))
        size, page = _size(parameters), int(parameters.get("page", 1))
        if "after" not in parameters and "before" not in parameters and page > 1:
            if page * size >= WITHIN_PAGES:
                return refusal(
                    422,
                    "Pagination with the page parameter is not supported for large datasets, please use cursor based "
                    "pagination (after/before)",
                )
            skipped = rows.page(first=(page - 1) * size)
            found = rows.page(first=size, after=skipped.cursors[-1] if skipped.cursors else None)
        elif "before" in parameters:
            found = rows.page(last=size, before=parameters["before"])
        else:
            found = rows.page(first=size, after=parameters.get("after"))
        links = {}
        others = {name: value for name, value in parameters.items() if name not in ("after", "before", "page")}
        if found.has_next and found.cursors:
            links["next"] = {**others, "after": found.cursors[-1], "page": str(page + 1)}
        if found.has_previous and found.cursors:
            links["prev"] = {**others, "before": found.cursors[0], "page": str(max(page - 1, 1))}
        rendered = [render.issue(issue, self._url) for issue in found.items]
        return self._linked(rendered, f"/repositories/{home.id}/issues", links)

    def _numbered(
        self,
        issue: Issue,
        items: Sequence[Any],
        form: Callable[[Any, str], Any],
        rest: str,
        parameters: Parameters,
    ) -> Response:
        """A page by its number, as comments and timelines have them."""
        size, page = _size(parameters), int(parameters.get("page", 1))
        links = {}
        if page * size < len(items):
            last = -(-len(items) // size)
            links = {"next": {**parameters, "page": str(page + 1)}, "last": {**parameters, "page": str(last)}}
        rendered = [form(item, self._url) for item in items[(page - 1) * size : page * size]]
        return self._linked(rendered, f"/repositories/{issue.repository.id}{rest}", links)

    def _linked(self, value: Any, path: str, links: dict[str, dict[str, str]]) -> Response:
        found = [f'<{self._url}{path}?{urlencode(query)}>; rel="{name}"' for name, query in links.items()]
        return as_json(value, Link=", ".join(found)) if found else as_json(value)


def with_etag(response: Response, asked_for: str | None) -> Response:
    """The answer with its ETag, or 304 where the client has that one."""
    if response.status != 200:
        return response
    etag = f'W/"{hashlib.sha256(response.body).hexdigest()}"'
    response.headers["ETag"] = etag
    return Response(304, b"", response.headers) if asked_for == etag else response


def _chosen(home: Repository, parameters: Parameters) -> list[Issue]:
    since = when(parameters["since"]) if "since" in parameters else None
    state, labels = parameters.get("state", "open"), {x.lower() for x in parameters.get("labels", "").split(",") if x}
    return [
        issue
        for issue in home.issues.values()
        if state in ("all", issue.state)
        and labels <= {label.lower() for label in issue.labels}
        and (since is None or issue.updated_at >= since)
    ]


def _sorted(home: Repository, parameters: Parameters) -> Rows:
    field = {"updated": "updated_at", "comments": "comments"}.get(parameters.get("sort", "created"), "created_at")
    descending = parameters.get("direction") != "asc"
    return Rows(_chosen(home, parameters), lambda issue: _sort_key(issue, field), descending=descending)


def _sort_key(issue: Issue, key: str) -> tuple[str | int, ...]:
    return (len(issue.comments) if key == "comments" else stamp(getattr(issue, key)), issue.id)


def _size(parameters: Parameters) -> int:
    return min(max(int(parameters.get("per_page", 30)), 1), 100)


def _comments(issue: Issue, parameters: Parameters) -> list[Comment]:
    since = when(parameters["since"]) if "since" in parameters else None
    return [comment for comment in issue.comments if since is None or comment.at >= since]


def _timeline(issue: Issue) -> list[Event | Comment]:
    return sorted([*issue.events, *issue.comments], key=lambda item: (item.at, item.id))
