"""The server: takes a request, counts and limits it, lets faults have their way, and answers out of the store."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from graphql import GraphQLError

from tests.local_github import seeds
from tests.local_github.answers import JSON, Asked, Fault, Response, as_json, asked_for, refusal
from tests.local_github.execution import Query, in_github_form
from tests.local_github.limits import Limits, Meter
from tests.local_github.listening import listen
from tests.local_github.pages import Kept
from tests.local_github.resolvers import Context
from tests.local_github.rest import Rest, with_etag
from tests.local_github.schema import github_schema
from tests.local_github.store import Store
from tests.local_github.things import Place


class Clock(Protocol):
    def time(self) -> float: ...


class LocalGitHub:
    """A GitHub on loopback: `with LocalGitHub() as hub: ... hub.url`; GraphQL is at hub.url + "/graphql".

    clock: what limits, stamps and the Date header go by; the machine's own unless given. limits: GitHub's unless
    given. delay: seconds that every answer takes. duplicate_of: with the schema that knows that field. skew: seconds
    that the clock of the headers is ahead. replay: a query that was answered before, with nothing changed since, gets
    the same bytes again (its rateLimit too), so that the server's own work doesn't count where time is measured.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        limits: Limits | None = None,
        delay: float = 0.0,
        duplicate_of: bool = False,
        skew: float = 0.0,
        replay: bool = False,
    ) -> None:
        self.clock: Clock = clock or _MachineClock()
        self.store = Store(lambda: datetime.fromtimestamp(int(self.clock.time()), UTC))
        self.meter = Meter(limits or Limits())
        self.delay = delay
        self.skew = skew
        self.log: list[Asked] = []
        self.rules: list[Callable[[Asked], Fault | None]] = []
        self._schema = github_schema(duplicate_of=duplicate_of)
        self._kept = Kept()
        self._replay = replay
        self._answers: dict[tuple[int, bytes], bytes] = {}
        self._broken: list[Exception] = []
        self._lock = threading.Lock()
        self._server = listen(self.handle, lambda: self.clock.time() + self.skew)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._rest = Rest(self.store, self.url, self._kept)

    def __enter__(self) -> LocalGitHub:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._broken and error is None:
            raise self._broken[0]  # a field that isn't modelled, or a mistake here

    # -- what tests do with it

    def seed(self, issues: Iterable[Mapping[str, Any]] | Path, *, marks: Mapping[Place, Place] | None = None) -> None:
        """Fill in issues with REST's names, or a file of them. marks: duplicate -> canonical, by events."""
        seeds.fill(self.store, seeds.read_dump(issues) if isinstance(issues, Path) else issues, marks)

    def fail(
        self,
        fault: Fault,
        *,
        at: int | Collection[int] | None = None,
        every: int | None = None,
        times: int | None = None,
        when: Callable[[Asked], bool] = lambda asked: True,
    ) -> None:
        """Let a fault happen at those requests that `when` holds for: at the k-th of them (or several), at every
        k-th, or at all; `times` at most. The first rule that acts is the only one to see the request."""
        places = {at} if isinstance(at, int) else at
        seen = done = 0

        def rule(asked: Asked) -> Fault | None:
            nonlocal seen, done
            if not when(asked):
                return None
            seen += 1
            due = seen in places if places is not None else seen % (every or 1) == 0
            if not due or (times is not None and done >= times):
                return None
            done += 1
            return fault

        self.rules.append(rule)

    def requests(self, kind: str | None = None) -> int:
        """How many there were, of a kind or in all."""
        return sum(kind in (None, asked.kind) for asked in self.log)

    def points(self) -> int:
        """What GraphQL charged."""
        return sum(asked.cost for asked in self.log if asked.kind == "graphql")

    # -- answering

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Response:
        url = urlsplit(target)
        with self._lock:
            asked = asked_for(len(self.log) + 1, method, url.path, dict(parse_qsl(url.query)), body)
            asked.at = self.clock.time() + self.skew
            self.log.append(asked)
            self.meter.at_once += 1
            self.meter.most_at_once = max(self.meter.most_at_once, self.meter.at_once)
            fault = next((fault for rule in self.rules if (fault := rule(asked))), None)
        try:
            if self.delay:
                time.sleep(self.delay)
            if fault:
                asked.fault = fault.__qualname__.split(".")[0]
                response = fault(asked, lambda: self._answer(asked, url.path, headers, body))
            else:
                response = self._answer(asked, url.path, headers, body)
        except Exception as error:
            self._broken.append(error)
            response = refusal(500, f"The local GitHub is broken: {error!r}")
        finally:
            with self._lock:
                self.meter.at_once -= 1
        asked.status = response.status
        return response

    def _answer(self, asked: Asked, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        words = headers.get("authorization", "").split()
        if len(words) != 2 or words[0].lower() not in ("bearer", "token"):
            return refusal(401, "Bad credentials")
        resource = "graphql" if asked.kind == "graphql" else "core"
        with self._lock:
            wait = self.meter.seconds_to_wait(resource, self.clock.time())
        if wait is not None:
            response = self._secondary_refusal(wait)
        elif asked.kind == "graphql":
            response = self._graphql(asked, body)
        else:
            response = self._rest_answer(asked, path, headers)
        with self._lock:
            bucket = self.meter.bucket(resource, self.clock.time())
            response.headers.update(
                {
                    "X-RateLimit-Limit": str(bucket.limit or 5_000),
                    "X-RateLimit-Remaining": str(bucket.remaining),
                    "X-RateLimit-Used": str(bucket.used),
                    "X-RateLimit-Reset": str(int(bucket.reset + self.skew)),
                    "X-RateLimit-Resource": resource,
                }
            )
        return response

    def _graphql(self, asked: Asked, body: bytes) -> Response:
        try:
            query = Query(self._schema, json.loads(body))
        except GraphQLError as error:
            return as_json({"errors": [in_github_form(error)]})
        except (ValueError, KeyError, TypeError):
            return refusal(400, "Problems parsing JSON")
        if excess := query.excess():
            return as_json({"errors": [excess]})
        with self._lock:
            fits = self.meter.charge("graphql", query.cost.points, self.clock.time())
            bucket = self.meter.bucket("graphql", self.clock.time())
        if not fits:
            return self._primary_refusal()
        asked.cost = query.cost.points
        with self.store.lock:
            known = self._answers.get((self.store.revision, body))
            if known is not None:
                return Response(200, known, dict(JSON))
            context = Context(self.store, query.cost, bucket, bucket.reset + self.skew, self._kept)
            response = as_json(query.execute(context))
            if self._replay:
                self._answers[self.store.revision, body] = response.body
            return response

    def _rest_answer(self, asked: Asked, path: str, headers: Mapping[str, str]) -> Response:
        if path == "/rate_limit":
            with self._lock:
                return as_json(self._rate_limit())
        with self.store.lock:
            response = with_etag(self._rest.answer(path, asked.variables), headers.get("if-none-match"))
        if response.status != 304:  # a 304 is free
            with self._lock:
                if not self.meter.charge("core", 1, self.clock.time()):
                    return refusal(403, "API rate limit exceeded for user ID 1.")
            asked.cost = 1
        return response

    def _rate_limit(self) -> dict[str, Any]:
        found = {}
        for resource in ("core", "graphql"):
            bucket = self.meter.bucket(resource, self.clock.time())
            limit = bucket.limit or 5_000
            reset = int(bucket.reset + self.skew)
            found[resource] = {"limit": limit, "used": bucket.used, "remaining": bucket.remaining, "reset": reset}
        search = {"limit": 30, "used": 0, "remaining": 30, "reset": found["core"]["reset"]}
        return {"resources": {**found, "search": search}, "rate": found["core"]}

    def _primary_refusal(self) -> Response:
        message = "API rate limit exceeded for user ID 1."
        if self.meter.limits.over == "200":
            return as_json({"errors": [{"type": "RATE_LIMITED", "message": message}]})
        return refusal(int(self.meter.limits.over), message)

    def _secondary_refusal(self, wait: int) -> Response:
        limits = self.meter.limits
        message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
        return refusal(int(limits.secondary), message, **({"Retry_After": str(wait)} if limits.retry_after else {}))


class _MachineClock:
    def time(self) -> float:
        return time.time()
