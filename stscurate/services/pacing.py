"""When a metered service may be asked: its points an hour, points a minute, and the pauses that it demands.

All threads that ask the same service share one Pacer, so that a pause demanded of one of them holds for all.
"""

import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

HOUR = 3600.0
_MINUTE = 60.0
_MARGIN = 1.0  # seconds: the header Date counts in whole ones


class Pacer:
    """The limits of one service, kept from what its answers' headers say.

    per_minute: points a minute at most. clock: seconds of the epoch by this machine, which may go wrong by any
    amount: times that the service names are taken relative to the service's own clock.
    """

    def __init__(self, *, per_minute: int, clock: Callable[[], float], sleep: Callable[[float], None]):
        self._per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._open_at = 0.0  # until then the service wants to be left alone
        self._left: int | None = None  # points, those of asks under way already taken off
        self._reset = 0.0  # by the service's clock, as it says
        self._reset_at = 0.0  # by ours
        self._recent: deque[tuple[float, int]] = deque()

    @property
    def left(self) -> int | None:
        """Points left until the limit resets; None where the service hasn't said."""
        return self._left

    @property
    def resets_in(self) -> float:
        """Seconds until the limit resets."""
        return max(self._reset_at - self._clock(), 0.0)

    def wait(self, cost: int) -> None:
        """Come back when an ask of `cost` points may be sent, and take them off."""
        while True:
            with self._lock:
                now = self._clock()
                pause = max(self._open_at - now, self._until_points(now, cost), self._until_minute(now, cost))
                if pause <= 0:
                    self._recent.append((now, cost))
                    if self._left is not None:
                        self._left -= cost
                    return
            self._sleep(pause)

    def hold(self, seconds: float) -> None:
        """Let nobody ask for so long."""
        with self._lock:
            self._open_at = max(self._open_at, self._clock() + seconds)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Take over what an answer says of the limit (x-ratelimit-remaining, x-ratelimit-reset)."""
        left, reset = _whole(headers.get("x-ratelimit-remaining")), _whole(headers.get("x-ratelimit-reset"))
        if left is None or reset is None:
            return
        with self._lock:
            if reset > self._reset:
                self._left = left
            elif reset == self._reset and self._left is not None:
                self._left = min(self._left, left)  # answers come in any order
            else:
                return
            now = self._clock()
            self._reset = reset
            self._reset_at = now + reset - served_at(headers, now) + _MARGIN

    def _until_points(self, now: float, cost: int) -> float:
        if self._left is None or self._left >= cost:
            return 0.0
        if now >= self._reset_at:
            self._left = None
            return 0.0
        return self._reset_at - now

    def _until_minute(self, now: float, cost: int) -> float:
        while self._recent and self._recent[0][0] <= now - _MINUTE:
            self._recent.popleft()
        used, pause = sum(points for _, points in self._recent), 0.0
        for when, points in self._recent:
            if used + cost <= self._per_minute:
                break
            used -= points
            pause = when + _MINUTE - now
        return pause


def demanded_pause(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until the service may be asked again, by retry-after or by an exhausted limit's reset; else None."""
    asked = retry_after(headers, served_at(headers, now))
    if asked is not None:
        return asked
    reset = _whole(headers.get("x-ratelimit-reset"))
    if _whole(headers.get("x-ratelimit-remaining")) == 0 and reset is not None:
        pause = reset - served_at(headers, now) + _MARGIN
        return min(max(pause, _MARGIN), HOUR + _MARGIN)
    return None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait by the header Retry-After (seconds, or a date; `now` in seconds of the epoch), if it is there."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    try:
        return max(parsedate_to_datetime(value).timestamp() - now, 0.0)
    except ValueError:
        return None


def served_at(headers: Mapping[str, str], now: float) -> float:
    """The service's own time, by the header Date; `now` without one."""
    try:
        return parsedate_to_datetime(headers.get("date", "")).timestamp()
    except ValueError:
        return now


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdigit() else None
