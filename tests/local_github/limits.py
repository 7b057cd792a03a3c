"""GitHub's limits on a clock that tests move: an hour's points and requests, a minute's, and how many at once."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

HOUR, MINUTE = 3_600, 60


class FakeClock:
    """Seconds since 1970 that pass when somebody sleeps. `sleep` returns at once."""

    def __init__(self, now: float = 1_760_000_000.0) -> None:
        self._now = now
        self._lock = threading.Lock()
        self.slept: list[float] = []

    def time(self) -> float:
        with self._lock:
            return self._now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._now += max(seconds, 0)
            self.slept.append(seconds)


@dataclass
class Limits:
    """None lifts a limit. over: how GraphQL says that the hour's points are spent; retry_after: whether secondary
    limits say for how long."""

    graphql_an_hour: int | None = 5_000
    graphql_a_minute: int | None = 2_000  # a query counts 1, whatever its cost
    rest_an_hour: int | None = 5_000
    rest_a_minute: int | None = 900
    at_once: int | None = 100
    over: Literal["200", "403", "429"] = "200"
    secondary: Literal["403", "429"] = "403"
    retry_after: bool = True


NO_LIMITS = Limits(None, None, None, None, None)


@dataclass
class Bucket:
    """One primary limit: what is used of it in the hour that began with the first request."""

    limit: int | None
    used: int = 0
    reset: float = 0.0

    def turn(self, now: float) -> None:
        if now >= self.reset:
            self.used, self.reset = 0, now + HOUR

    @property
    def remaining(self) -> int:
        return max((self.limit if self.limit is not None else 1_000_000) - self.used, 0)


@dataclass
class Meter:
    """What was used so far. Not locked: the server holds a lock around it."""

    limits: Limits
    buckets: dict[str, Bucket] = field(default_factory=dict)
    minutes: dict[str, deque[float]] = field(default_factory=dict)
    at_once: int = 0
    most_at_once: int = 0

    def bucket(self, resource: str, now: float) -> Bucket:
        limit = self.limits.graphql_an_hour if resource == "graphql" else self.limits.rest_an_hour
        bucket = self.buckets.setdefault(resource, Bucket(limit))
        bucket.turn(now)
        return bucket

    def charge(self, resource: str, cost: int, now: float) -> bool:
        """Whether the hour has room for `cost`; it is used then."""
        bucket = self.bucket(resource, now)
        if bucket.limit is not None and bucket.used + cost > bucket.limit:
            return False
        bucket.used += cost
        return True

    def seconds_to_wait(self, resource: str, now: float) -> int | None:
        """None where the secondary limits let one more in (which is counted); else until when they don't."""
        if self.limits.at_once is not None and self.at_once > self.limits.at_once:
            return MINUTE
        a_minute = self.limits.graphql_a_minute if resource == "graphql" else self.limits.rest_a_minute
        recent = self.minutes.setdefault(resource, deque())
        while recent and recent[0] <= now - MINUTE:
            recent.popleft()
        if a_minute is not None and len(recent) >= a_minute:
            return int(recent[0] + MINUTE - now) + 1
        recent.append(now)
        return None
