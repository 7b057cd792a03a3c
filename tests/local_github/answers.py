"""What goes back to a client, and what the server noted about it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

JSON = {"Content-Type": "application/json; charset=utf-8"}
DOCS = "https://docs.github.com"


@dataclass
class Asked:
    """A request as faults and the log see it: `number` counts from 1 over all kinds."""

    number: int
    kind: str  # graphql or rest
    operation: str  # the GraphQL operation's name, or the path
    variables: dict[str, Any]  # the GraphQL variables, or the query of the URL
    query: str = ""
    at: float = 0.0  # by the server's clock, as its headers tell it
    cost: int = 0  # points, or requests
    status: int | None = None
    fault: str | None = None


@dataclass
class Response:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0  # seconds in the middle of the body
    cut: Literal["before", "within"] | None = None  # the connection is reset instead of an answer, or in the body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Fault = Callable[[Asked, Callable[[], Response]], Response]


def as_json(value: Any, status: int = 200, **headers: str) -> Response:
    kept = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(status, json.dumps(value).encode(), {**JSON, **kept})


def refusal(status: int, message: str, **headers: str) -> Response:
    return as_json({"message": message, "documentation_url": f"{DOCS}/rest", "status": str(status)}, status, **headers)


# The operation's name, or the first field where it has none.
_NAMED = re.compile(r"(?:\bquery\s+|^\s*(?:query\b[^{]*)?\{\s*)(\w+)")


def asked_for(number: int, method: str, path: str, parameters: dict[str, Any], body: bytes) -> Asked:
    if method == "POST" and path == "/graphql":
        try:
            request = json.loads(body)
            name = request.get("operationName") or _NAMED.search(request["query"])[1]  # type: ignore[index]
            return Asked(number, "graphql", name, request.get("variables") or {}, request["query"])
        except (ValueError, LookupError, TypeError, AttributeError):
            return Asked(number, "graphql", "?", {})
    return Asked(number, "rest", path, parameters)
