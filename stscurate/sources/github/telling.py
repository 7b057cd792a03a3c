"""How far a collection from GitHub is, for whoever waits for it: told whenever issues or an answer have come."""

import threading
import time
from collections.abc import Sequence

from stscurate.progress import Progress
from stscurate.services.github import GitHub
from stscurate.sources.github.plan import POINTS_AN_HOUR, Plan
from stscurate.wording import counted

_HOUR, _DAY = 3600.0, 86_400.0
_LONGEST_GAP = 60.0  # seconds between two answers; what is above is a wait for the limit, and says nothing of the rate


class Telling:
    """Counts issues and points, and tells of them: what is there, what is left until when, and when all is done.

    Points stand for the work that is left: those planned for repositories that aren't finished, less those spent. A
    collection that goes on where it was broken off looks longer than it is, until the first repository is finished.
    """

    def __init__(self, github: GitHub, plans: Sequence[Plan], progress: Progress):
        self._github = github
        self._progress = progress
        self._lock = threading.Lock()
        self._planned = sum(plan.points for plan in plans)
        self._finished = 0  # points planned for what is finished
        self._issues = 0
        self._began = github.points
        self._at_work = 0.0  # seconds
        self._last = github.clock()

    def took(self, issues: int) -> None:
        """So many more issues have come."""
        with self._lock:
            self._issues += issues
            self._tell()

    def finished(self, plan: Plan) -> None:
        """All of a repository has come."""
        with self._lock:
            self._finished += plan.points

    def heard(self) -> None:
        """An answer has come."""
        with self._lock:
            now = self._github.clock()
            self._at_work += min(max(now - self._last, 0.0), _LONGEST_GAP)
            self._last = now
            self._tell()

    def _tell(self) -> None:
        spent = self._github.points - self._began
        to_go = self._planned - max(spent, self._finished)
        parts = ["points spent", f"{counted(self._issues, 'issue')}"]
        left, resets_in, now = self._github.points_left, self._github.resets_in, self._github.clock()
        if left is not None:
            until = f" until {_clock(now, resets_in)}" if resets_in else ""
            parts.append(f"{counted(max(left, 0), 'point')} left{until}")
            if spent > 0 and self._at_work > 0 and to_go > 0:
                seconds = seconds_to_go(to_go, rate=spent / self._at_work, left=max(left, 0), resets_in=resets_in)
                parts.append(f"done about {_clock(now, seconds)}")
        self._progress("; ".join(parts), spent, max(self._planned, spent))


def seconds_to_go(points: int, *, rate: float, left: int, resets_in: float) -> float:
    """Seconds until so many more points are spent.

    rate: points a second, where no limit holds them up. left: points that may be spent until the limit resets in
    `resets_in` seconds; from then on it's 5,000 an hour.
    """
    seconds, due = 0.0, float(points)
    while due > (spent := min(left, rate * resets_in)):
        seconds, due = seconds + resets_in, due - spent
        left, resets_in = POINTS_AN_HOUR, _HOUR
    return seconds + due / rate


def _clock(now: float, seconds: float) -> str:
    """The time of day in so many seconds, here; with the day where that isn't within the next 24 hours."""
    return time.strftime("%H:%M" if seconds < _DAY else "%a %d %b %H:%M", time.localtime(now + seconds))
