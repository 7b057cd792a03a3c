"""All asks of a call, sent as fast as their endpoints let through and the purse allows, and kept as they come."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

from stscurate.services.chat import Address
from stscurate.services.dispatch import Dispatcher, Source, Stop
from stscurate.services.limits import Limiter
from stscurate.services.loop import run_to_end
from stscurate.services.purse import Purse


def ask_all(
    sources: Sequence[Source],
    *,
    concurrency: int,
    purse: Purse | None = None,
    limiters: dict[Address, Limiter] | None = None,
    first_pause: float = 1.0,
    seen: Callable[[], None] = lambda: None,
) -> None:
    """Send all asks of all sources, at most `concurrency` at once to each endpoint, and hand on each reply.

    An ask is sent again after `first_pause` seconds, then twice that and so on: after 408, 409, 425, 500 and above,
    a timeout, a lost connection, or what is no chat completion; after 429, which isn't counted, when the service says.
    One that brings no answer is handed on with the reply's `error` ("timeout", "http_500", ...). One that takes far
    longer than others is sent a second time beside the first, once. `limiters`: what earlier calls learned of
    endpoints, from where this one goes on. `seen` is called when something has changed, for each source's `watch`.

    The error of an endpoint ends it all, when what is in flight has arrived: InputError for a refused key or an unknown
    model; ServiceError where nobody answers, GIVE_UP_AFTER asks in a row brought no answer or REFUSED_AFTER were
    refused, the credit is used up, or a pause of more than five minutes is wanted. The purse's cap ends it without
    one. Works inside a running event loop too. KeyboardInterrupt gives what is in flight three seconds.
    """
    known = {} if limiters is None else limiters
    run_to_end(_ask_all(sources, concurrency, purse or Purse(), known, first_pause, seen))


async def _ask_all(
    sources: Sequence[Source],
    concurrency: int,
    purse: Purse,
    limiters: dict[Address, Limiter],
    first_pause: float,
    seen: Callable[[], None],
) -> None:
    together: dict[Address, list[Source]] = {}
    for source in sources:
        together.setdefault(source.endpoint.address, []).append(source)
    stop = Stop()
    async with AsyncExitStack() as stack:
        keeper = stack.enter_context(ThreadPoolExecutor(1))
        works = []
        for address, group in together.items():
            limiter = limiters.setdefault(address, Limiter(concurrency))
            client = await stack.enter_async_context(group[0].endpoint.connect(2 * concurrency))
            works.append(Dispatcher(client, group, limiter, purse, first_pause, stop, keeper))
        for work in works:
            work.seen = seen
            stop.wakers.append(work.wake)
        await asyncio.gather(*(work.run() for work in works))
    if stop.error:
        raise stop.error
