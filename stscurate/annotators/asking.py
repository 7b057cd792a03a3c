"""The chat annotators of a call, asked all together, and what is to be seen of it meanwhile."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stscurate.annotators.base import Annotator, Pair, Plan
from stscurate.annotators.chat import ChatAnnotator
from stscurate.errors import InputError, ServiceError, StscurateError
from stscurate.progress import Progress
from stscurate.services.answers import Answers
from stscurate.services.asking import ask_all
from stscurate.services.batch_asking import Batched, ask_in_batches
from stscurate.services.chat import Address
from stscurate.services.dispatch import Source
from stscurate.services.limits import Limiter
from stscurate.services.purse import Purse
from stscurate.wording import counted

FIRST_LOOK = 5.0  # seconds until a batch is looked at; where nothing moves, up to a minute
_REDRAW = 0.2  # seconds
_RECENT = 60.0  # seconds, over which the rate is taken


@dataclass(frozen=True)
class Limits:
    """How asks may be sent. concurrency: at once, to each endpoint. batch: in batches instead.

    limiters: what has been learned of each endpoint, for what is asked there later.
    """

    concurrency: int
    purse: Purse
    batch: bool = False
    limiters: dict[Address, Limiter] = field(default_factory=dict)


def ask_chats(
    chats: Sequence[ChatAnnotator], pairs: Sequence[Pair], answers: Answers, limits: Limits, progress: Progress
) -> None:
    """Ask all that `answers` lacks, and keep it there. StscurateError as `ask_all`, with what is kept by then.

    InputError where batches are under way and it isn't told to fetch them: what they hold would be paid twice.
    """
    purse = limits.purse
    plans = {chat.name: chat.plan(pairs, answers) for chat in chats}
    due = [chat for chat in chats if plans[chat.name].due or plans[chat.name].under_way]
    for chat in due:
        if purse.capped_cost and not chat.price:
            raise InputError(
                f"No price is known for {chat.endpoint.model}, so its cost can't be capped: "
                "give one by --prices FILE (0 where it costs nothing), or cap by --max-requests."
            )
        if not limits.batch and (waiting := plans[chat.name].under_way):
            raise InputError(
                f"{counted(waiting, 'ask')} of {chat.name} {'is' if waiting == 1 else 'are'} in batches under way: "
                "add --batch, and fetch them."
            )
    if not due:
        return
    report = _Report(due, purse, progress, sum(map(_asks, (plans[chat.name] for chat in due))))
    report.kept(sum(plans[chat.name].known for chat in due))
    try:
        if limits.batch:
            works = [chat.batched(pairs, answers, report.kept) for chat in due]
            report.sources = works
            ask_in_batches(works, answers, purse=purse, first_pause=FIRST_LOOK, seen=report.seen)
        else:
            sources = [chat.source(pairs, answers, report.kept) for chat in due]
            report.sources = sources
            ask_all(sources, concurrency=limits.concurrency, purse=purse, limiters=limits.limiters, seen=report.seen)
    except StscurateError as error:
        raise type(error)(f"{error}{''.join(kept_so_far(chat, pairs, answers) for chat in due)}") from None
    finally:
        report.draw()
        watches = [source.watch for source in report.sources]
        for chat, watch in zip(due, watches, strict=False):
            chat.keep_limits(watch, answers)
    for chat in due:
        if chat.refused and not chat.answered and not plans[chat.name].known:
            why = f"{chat.refused.error}: {chat.refused.text}"
            raise ServiceError(f"{chat.name} answered none of its asks ({why}): see to the server and its model.")


def _asks(plan: Plan) -> int:
    return plan.due + plan.known + plan.under_way


def kept_so_far(annotator: Annotator, pairs: Sequence[Pair], answers: Answers) -> str:
    """A sentence of what need not be asked again, or nothing."""
    known = annotator.plan(pairs, answers).known
    return (
        f" {counted(known, 'answer')} of {annotator.name} {'is' if known == 1 else 'are'} kept: the same command goes "
        "on from there."
        if known
        else ""
    )


class _Report:
    """The line of progress: rows, rate, asks in flight, limits, cost, failures by kind, time left."""

    def __init__(
        self,
        chats: Sequence[ChatAnnotator],
        purse: Purse,
        progress: Progress,
        total: int,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.sources: Sequence[Source | Batched] = ()
        self._chats = chats
        self._purse = purse
        self._progress = progress
        self._total = total
        self._clock = clock
        self._done = 0
        self._drawn = 0.0
        self._past: deque[tuple[float, int]] = deque()

    def kept(self, count: int) -> None:
        """So many more are kept."""
        self._done += count

    def seen(self) -> None:
        """Draw, if that is due."""
        if self._clock() - self._drawn >= _REDRAW:
            self.draw()

    def draw(self) -> None:
        """Tell how it stands."""
        self._drawn = now = self._clock()
        self._past.append((now, self._done))
        while now - self._past[0][0] > _RECENT:
            self._past.popleft()
        names = ", ".join(chat.name for chat in self._chats)
        self._progress(f"votes of {names}; {', '.join(self._parts())}", self._done, self._total)

    def _parts(self) -> list[str]:
        watches = list({id(source.watch): source.watch for source in self.sources}.values())
        began, before = self._past[0]
        seconds = self._past[-1][0] - began
        rate = (self._done - before) / seconds if seconds else 0.0
        parts = [f"{rate:.1f}/s", f"{sum(watch.in_flight for watch in watches)} in flight"]
        parts += [f"limit {watch.requests:g} requests/min" for watch in watches if watch.requests]
        parts += [f"limit {watch.tokens:g} tokens/min" for watch in watches if watch.tokens]
        if self._purse.spent:
            parts.append(f"${self._purse.spent:.2f}")
        faults: Counter[str] = Counter()
        for chat in self._chats:
            faults.update({f"{kind} failed": count for kind, count in dict(chat.faults).items()})
        for watch in watches:
            faults.update({f"{kind} tries": count for kind, count in watch.faults.items()})
        parts += [f"{count} {kind}" for kind, count in sorted(faults.items())]
        if rate and self._total > self._done:
            parts.append(f"{duration((self._total - self._done) / rate)} left")
        return parts


def duration(seconds: float) -> str:
    """A time to wait, as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
