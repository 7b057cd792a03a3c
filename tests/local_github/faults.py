"""What may go wrong between a client and GitHub. A fault takes the request and the way to its true answer.

`LocalGitHub.fail(fault, at=3)` says when; each function here makes one fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.local_github.answers import Asked, Fault, Response, as_json, refusal

Answering = Callable[[], Response]
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
PRIMARY = "API rate limit exceeded for user ID 1."


def limited(status: int = 429, *, retry_after: int | None = None, reset_in: int | None = None) -> Fault:
    """A limit that the client can't foresee. retry_after, reset_in: seconds; the latter as a spent primary limit
    tells it. Without either, no header says anything."""

    def fault(asked: Asked, answer: Answering) -> Response:
        response = refusal(status, SECONDARY if reset_in is None else PRIMARY)
        if retry_after is not None:
            response.headers["Retry-After"] = str(retry_after)
        if reset_in is not None:
            response.headers.update(_spent(asked, reset_in))
        return response

    return fault


def rate_limited(*, reset_in: int = 60) -> Fault:
    """The hour's points are spent, said with status 200."""

    def fault(asked: Asked, answer: Answering) -> Response:
        response = as_json({"errors": [{"type": "RATE_LIMITED", "message": PRIMARY}]})
        response.headers.update(_spent(asked, reset_in))
        return response

    return fault


def _spent(asked: Asked, seconds: int) -> dict[str, str]:
    return {
        "X-RateLimit-Limit": "5000",
        "X-RateLimit-Used": "5000",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int(asked.at) + seconds),
    }


def partial(every: int = 3, *, type: str | None = None, offset: int = 0) -> Fault:  # noqa: A002 - GitHub's own name
    """Every `every`-th of the outermost nodes is null, with an error at its place: a timeout, or of a given type."""
    message = "Something went wrong while executing your query. This may be the result of a timeout, or it could be a "

    def fault(asked: Asked, answer: Answering) -> Response:
        response = answer()
        value = response.json
        errors = []
        for path, nodes in _outermost(value.get("data"), "nodes", ["data"]):
            for index in range(offset, len(nodes) if isinstance(nodes, list) else 0, every):
                nodes[index] = None
                told = {"type": type} if type else {}
                errors.append({**told, "path": [*path[1:], index], "message": f"{message}GitHub bug."})
        value["errors"] = [*value.get("errors", ()), *errors]
        return _with(response, value)

    return fault


def bad_gateway(status: int = 502) -> Fault:
    """An answer that isn't JSON, from the machine in front of GitHub."""

    def fault(asked: Asked, answer: Answering) -> Response:
        page = b"<html><head><title>Unicorn!</title></head><body>This page is taking too long to load.</body></html>"
        return Response(status, page, {"Content-Type": "text/html; charset=utf-8"})

    return fault


def timed_out() -> Fault:
    """GitHub gave the query up after ten seconds: status 502, JSON without a `data` worth having."""

    def fault(asked: Asked, answer: Answering) -> Response:
        message = "Something went wrong while executing your query. This may be the result of a timeout."
        return as_json({"data": None, "errors": [{"message": message}]}, 502)

    return fault


def too_heavy(above: int) -> Callable[[Asked], Fault | None]:
    """A rule, not a fault: 502 for any query that asks for more than `above` items at once by a variable."""

    def rule(asked: Asked) -> Fault | None:
        sizes = [value for name, value in asked.variables.items() if isinstance(value, int) and name != "number"]
        sizes += [len(value) for value in asked.variables.values() if isinstance(value, list)]
        return bad_gateway() if max(sizes, default=0) > above else None

    return rule


def truncated(keep: float = 0.5) -> Fault:
    """The JSON ends early, with a Content-Length that fits."""

    def fault(asked: Asked, answer: Answering) -> Response:
        response = answer()
        response.body = response.body[: int(len(response.body) * keep)]
        return response

    return fault


def reset(*, within: bool = False) -> Fault:
    """The connection is reset instead of an answer, or within its body; GitHub has counted the request by then."""

    def fault(asked: Asked, answer: Answering) -> Response:
        response = answer()
        response.cut = "within" if within else "before"
        return response

    return fault


def slow(seconds: float) -> Fault:
    """The body stops in its middle for so long, by the machine's own clock."""

    def fault(asked: Asked, answer: Answering) -> Response:
        response = answer()
        response.pause = seconds
        return response

    return fault


def endless(*, cursor: str | None = None) -> Fault:
    """The outermost page says that more follow, behind a null cursor, or behind the one it was asked for ("same")."""

    def fault(asked: Asked, answer: Answering) -> Response:
        response = answer()
        value = response.json
        for _, info in _outermost(value.get("data"), "pageInfo"):
            info["hasNextPage"] = True
            info["endCursor"] = _cursor_of(asked) or info["endCursor"] if cursor == "same" else None
        return _with(response, value)

    return fault


def _cursor_of(asked: Asked) -> str | None:
    found = [value for name, value in asked.variables.items() if "after" in name.lower() or "cursor" in name.lower()]
    return next((value for value in found if value), None)


def put(field: str, value: Any, *, every: int = 1) -> Fault:
    """Every `every`-th field of that name (as the query calls it) has this value, whatever the schema says: a null
    author, an enum's value that nobody knows."""

    def fault(asked: Asked, answer: Answering) -> Response:
        response = answer()
        whole = response.json
        for place in [*_holders(whole, field)][::every]:
            place[field] = value
        return _with(response, whole)

    return fault


def meanwhile(change: Callable[[], object]) -> Fault:
    """Something happens just before the request is answered; the answer is right."""

    def fault(asked: Asked, answer: Answering) -> Response:
        change()
        return answer()

    return fault


def _with(response: Response, value: Any) -> Response:
    response.body = json.dumps(value).encode()
    return response


def _holders(value: Any, field: str) -> Iterator[dict[str, Any]]:
    """All objects that have the field, in the order of the answer."""
    if isinstance(value, dict):
        if field in value:
            yield value
        for below in value.values():
            yield from _holders(below, field)
    elif isinstance(value, list):
        for below in value:
            yield from _holders(below, field)


def _outermost(value: Any, field: str, path: list[str] | None = None) -> Iterator[tuple[list[str], Any]]:
    """(path, value) of the field where no field of that name stands above it."""
    path = path or []
    if not isinstance(value, dict):
        return
    if field in value:
        yield [*path, field], value[field]
        return
    for name, below in value.items():
        yield from _outermost(below, field, [*path, name])
