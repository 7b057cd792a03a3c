"""Asynchronous work, run to its end from plain code."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run it to the end; beside a loop that runs already (a notebook), in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    raised: list[BaseException] = []
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def noted() -> None:
        task = asyncio.current_task()
        if task:
            started.append((asyncio.get_running_loop(), task))
        await work

    def run() -> None:
        try:
            asyncio.run(noted())
        except BaseException as error:
            raised.append(error)
        finally:
            done.set()

    done = threading.Event()  # an interrupted join() takes the thread for ended
    threading.Thread(target=run).start()
    try:
        done.wait()
    except KeyboardInterrupt:
        for loop, task in started:
            loop.call_soon_threadsafe(task.cancel)
        done.wait()
        raise
    if raised:
        raise raised[0]
