"""Where a function is mapped over batches: in this process, in several of this machine, or on a Ray cluster.

Results come in the order of the batches whatever the engine, so that what is made of them is the same.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Literal, TypeVar

from stscurate.errors import InputError, ServiceError

Batch = TypeVar("Batch")
Found = TypeVar("Found")

_AHEAD = 2  # batches under way for each worker: the next one waits where the last one ends, and memory stays flat
_DIED = "A worker has died, most likely for want of memory: give fewer --workers and run the same command again."


@dataclass(frozen=True)
class Engine:
    """Batches through a function: `local` in processes of this machine, `ray` by Ray (RAY_ADDRESS names a cluster).

    workers: 1 in this very process; None for one where it is local, and one a processor of Ray's.
    """

    name: Literal["local", "ray"] = "local"
    workers: int | None = None

    def map(self, make: Callable[[], Callable[[Batch], Found]], batches: Iterable[Batch]) -> Iterator[Found]:
        """The function's results in the order of the batches.

        make: called once by each worker, gives the function (so that a model is loaded once); it and the batches are
        pickled. An error of the function is raised here. ServiceError where a worker dies; InputError without Ray.
        """
        if self.name == "ray":
            return _by_ray(make, batches, self.workers)
        if self.workers and self.workers > 1:
            return _in_processes(make, batches, self.workers)
        return map(make(), batches)


def _in_processes(make: Callable[[], Callable[[Any], Any]], batches: Iterable[Any], workers: int) -> Iterator[Any]:
    threads = max(1, (os.cpu_count() or 1) // workers)
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (make, threads))
    under_way: deque[Future[Any]] = deque()
    try:
        for batch in batches:
            under_way.append(pool.submit(_apply, batch))
            if len(under_way) >= _AHEAD * workers:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    except BrokenProcessPool:
        raise ServiceError(_DIED) from None
    finally:
        pool.shutdown(cancel_futures=True)


class Worker:
    """What `make` gives, made at the first batch: an error of it is then that batch's, and is told as it is."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]]):
        self._make = make
        self._function: Callable[[Any], Any] | None = None

    def apply(self, batch: Any) -> Any:
        """The function's result."""
        if self._function is None:
            self._function = self._make()
        return self._function(batch)


_worker: Worker  # of a process of the pool


def _begin(make: Callable[[], Callable[[Any], Any]], threads: int) -> None:
    global _worker
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))
    _worker = Worker(make)


def _apply(batch: Any) -> Any:
    return _worker.apply(batch)


def _by_ray(make: Callable[[], Callable[[Any], Any]], batches: Iterable[Any], workers: int | None) -> Iterator[Any]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise InputError('--engine ray needs Ray: pip install "stscurate[ray]", or leave --engine away.') from None
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level="error")
    count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    kind = ray.remote(Worker)
    actors = [kind.options(num_cpus=1).remote(make) for _ in range(count)]
    under_way: deque[Any] = deque()
    try:
        for number, batch in enumerate(batches):
            under_way.append(actors[number % count].apply.remote(batch))
            if len(under_way) >= _AHEAD * count:
                yield ray.get(under_way.popleft())
        while under_way:
            yield ray.get(under_way.popleft())
    except ray.exceptions.RayActorError:
        raise ServiceError(_DIED) from None
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    finally:
        for actor in actors:
            ray.kill(actor)
