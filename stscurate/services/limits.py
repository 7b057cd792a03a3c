"""What a chat service lets through: its limits as its answers' headers tell them, and how many asks it bears at once.

Nothing here waits or reads a clock: times are given, in seconds of a clock that never goes back.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from stscurate.services.pacing import retry_after

_MINUTE = 60.0  # what a limit is taken to be meant for; one whose reset is further away is spread over that time
_RESERVE = 1.0  # requests left over in a bucket: two clocks never agree quite
_AT_FIRST = 40  # asks sent at once, before anything is known
_SPACING = (
    0.004  # seconds between those after them, until the first answer: a refusal is to be heard before all are sent
)
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_MOST_SECONDS = 1e8  # a larger number is a time, in seconds or milliseconds of the epoch


def demanded_pause(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait by retry-after-ms or Retry-After (`now` in seconds of the epoch), if either is there."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", milliseconds):
        return float(milliseconds) / 1000
    return retry_after(headers, now)


def reset_in(text: str, now: float) -> float | None:
    """Seconds until a limit resets, as services write it: "6m0s", "20ms", "1.5", a time of the epoch (in seconds or
    milliseconds), or an ISO time; `now` in seconds of the epoch. None where it is none of them.
    """
    text = text.strip()
    parts = _DURATION.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        number = float(text)
    except ValueError:
        try:
            return max(datetime.fromisoformat(text).timestamp() - now, 0.0)
        except ValueError:
            return None
    if not (math.isfinite(number) and number >= 0):
        return None
    if number > _MOST_SECONDS:
        return max(number / (1000 if number > 1000 * _MOST_SECONDS else 1) - now, 0.0)
    return number


@dataclass(frozen=True)
class Told:
    """A limit as headers tell it: so many in all, so many left, seconds until it is as at the start."""

    limit: float | None
    left: float | None
    reset: float | None


def told(headers: Mapping[str, str], what: str, now: float) -> Told:
    """What headers say of "requests" or "tokens": x-ratelimit-limit-requests and its kin; for requests also without a
    name, as services write it that limit nothing else. `now` in seconds of the epoch.
    """

    def find(part: str) -> str:
        names = [f"x-ratelimit-{part}-{what}"]
        if what == "requests":
            names += [f"x-ratelimit-{part}", f"ratelimit-{part}"]
        return next((headers[name] for name in names if name in headers), "")

    return Told(_number(find("limit")), _number(find("remaining")), reset_in(find("reset"), now))


class Allowance:
    """One limit of a service, as a bucket that refills evenly; without end while the service tells of none.

    A service with a fixed window (all at once at its end) is asked evenly too, and holds back by a 429 what comes too
    early. Limits are taken as a minute's, since their headers don't say; where the reset is further away than that,
    what is missing now is spread over the time until then.
    """

    def __init__(self) -> None:
        self.limit: float | None = None  # a minute
        self._rate = 0.0  # a second
        self._level = math.inf
        self._room = 0.0  # the most that was ever left
        self._at = 0.0
        self._taken = 0.0

    def wait(self, now: float, cost: float) -> float:
        """Seconds until `cost` may be taken."""
        if not self.limit or not self._rate:
            return 0.0
        self._room = max(self._room, min(cost, self.limit))  # what never fits at once is let through by a full bucket
        self._fill(now)
        wanted = min(cost, self._room)
        if self._level >= wanted:
            return 0.0
        return (wanted - self._level) / self._rate

    def take(self, cost: float) -> float:
        """Take it; a mark for `learn`: what had been taken until then."""
        self._level -= cost
        self._taken += cost
        return self._taken

    def refund(self, cost: float) -> None:
        """Give back what was taken too much (or, negative, too little)."""
        self._level = min(self._level + cost, max(self._room, self._level))

    def learn(self, now: float, found: Told, sent: float, mark: float) -> None:
        """Take over what the answer says to the request that was sent at `sent` with `mark`."""
        if found.limit:
            self.limit = found.limit
            self._rate = found.limit / _MINUTE
            if found.reset is not None and found.left is not None and found.reset > _MINUTE:
                self._rate = max(found.limit - found.left, 1.0) / found.reset
        if found.left is None or not self._rate:
            return
        self._fill(now)
        # Requests sent since then may or may not have been counted in what is left, as may what refilled since: the
        # truth lies between two bounds.
        low = found.left - (self._taken - mark)
        high = low + self._rate * (now - sent)
        self._level = max(min(self._level, high), low)
        self._room = max(self._room, found.left, self._level)

    def emptied(self, now: float) -> None:
        """The service said that nothing is left."""
        self._fill(now)
        if self._rate:
            self._level = min(self._level, 0.0)

    def _fill(self, now: float) -> None:
        if self._rate and self._level < self._room:
            self._level = min(self._level + self._rate * (now - self._at), self._room)
        self._at = now


@dataclass(frozen=True)
class Ticket:
    """A request that was sent: when, and what it took of each allowance."""

    sent: float
    tokens: float
    marks: tuple[float, float]


class Limiter:
    """One endpoint's limits, for all that ask there.

    As many asks are in flight as `ceiling` says, until the service complains: then half as many, and slowly more with
    every answer (additive increase, multiplicative decrease).
    """

    def __init__(self, ceiling: int):
        self.ceiling = ceiling
        self.window = float(ceiling)
        self.in_flight = 0
        self.held = 0  # answered, but not yet kept: a kill would lose them as well
        self.requests = Allowance()
        self.tokens = Allowance()
        self.refused = 0  # 429 in a row
        self._open_at = 0.0
        self._eased = -math.inf
        self._spacing = _SPACING
        self._last = -math.inf

    def wait(self, now: float, tokens: float) -> float:
        """Seconds until an ask of so many tokens may be sent; infinite where one in flight has to end first."""
        if self.in_flight + self.held >= int(self.window):
            return math.inf
        return max(
            self._open_at - now,
            self._last + (self._spacing if self.in_flight >= _AT_FIRST else 0.0) - now,
            self.requests.wait(now, 1.0 + _RESERVE),
            self.tokens.wait(now, tokens),
            0.0,
        )

    def send(self, now: float, tokens: float) -> Ticket:
        """An ask is sent now."""
        self.in_flight += 1
        self._last = now
        return Ticket(now, tokens, (self.requests.take(1.0), self.tokens.take(tokens)))

    def answered(
        self, now: float, ticket: Ticket, headers: Mapping[str, str], tokens: float | None, wall: float
    ) -> None:
        """It was answered, and used so many tokens. wall: seconds of the epoch, for headers that tell times."""
        self.in_flight -= 1
        self.refused = 0
        self._spacing = 0.0
        self.window = min(self.window + max(1.0, self.ceiling / 20) / self.window, self.ceiling)
        self._learn(now, ticket, headers, wall)
        if tokens is not None:
            self.tokens.refund(ticket.tokens - tokens)

    def failed(self, now: float, ticket: Ticket, *, overload: bool) -> None:
        """It brought nothing. overload: since the service, or the way to it, had too much to bear."""
        self.in_flight -= 1
        if overload:
            self._ease(now, ticket)

    def too_many(self, now: float, ticket: Ticket, headers: Mapping[str, str], wall: float, first: float) -> float:
        """It was answered 429: nobody asks for a while. Gives back how long: as the service says, or `first` seconds,
        twice that the next time, up to a minute.
        """
        self.in_flight -= 1
        self._ease(now, ticket)
        self._learn(now, ticket, headers, wall)
        pause = demanded_pause(headers, wall)
        if pause is None:
            pause = min(first * 2.0**self.refused, _MINUTE)
            resets = [told(headers, what, wall).reset for what in ("requests", "tokens")]
            known = [reset for reset in resets if reset is not None]
            if known and self.refused:  # at the first time the bucket may have refilled before the reset
                pause = min(max(pause, min(known)), _MINUTE)
        for what, allowance in (("requests", self.requests), ("tokens", self.tokens)):
            if (left := told(headers, what, wall).left) is not None and left < max(
                1.0, ticket.tokens * (what == "tokens")
            ):
                allowance.emptied(now)
        if now >= self._open_at:  # one pause is one refusal, of however many asks
            self.refused += 1
        self._open_at = max(self._open_at, now + pause)
        return pause

    def _learn(self, now: float, ticket: Ticket, headers: Mapping[str, str], wall: float) -> None:
        for what, allowance, mark in zip(
            ("requests", "tokens"), (self.requests, self.tokens), ticket.marks, strict=True
        ):
            allowance.learn(now, told(headers, what, wall), ticket.sent, mark)

    def _ease(self, now: float, ticket: Ticket) -> None:
        if ticket.sent > self._eased:  # asks of the same flight complain once
            self.window = max(self.window / 2, 1.0)
            self._eased = now


def _number(text: str) -> float | None:
    """The first number ("600", "600, 600;w=60")."""
    found = re.match(r"\s*(\d+(?:\.\d+)?)", text)
    return float(found[1]) if found else None
