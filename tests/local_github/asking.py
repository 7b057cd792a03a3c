"""How this package's own tests ask the local GitHub."""

from __future__ import annotations

from typing import Any

import requests

from tests.local_github.server import LocalGitHub

TOKEN = {"Authorization": "bearer t"}


def graphql(hub: LocalGitHub, query: str, **variables: Any) -> Any:
    """The whole answer of a query."""
    return post(hub, query, **variables).json()


def post(hub: LocalGitHub, query: str, **variables: Any) -> requests.Response:
    body = {"query": query, "variables": variables}
    return requests.post(f"{hub.url}/graphql", json=body, headers=TOKEN, timeout=30)


def get(hub: LocalGitHub, path: str, **headers: str) -> requests.Response:
    """path: or a whole URL, as links give it."""
    url = path if path.startswith("http") else hub.url + path
    return requests.get(url, headers={**TOKEN, **headers}, timeout=30, allow_redirects=False)


def one_issue() -> LocalGitHub:
    """Here, since another process imports it by its name."""
    hub = LocalGitHub()
    hub.store.insert("a/b", 1, title="There")
    return hub
