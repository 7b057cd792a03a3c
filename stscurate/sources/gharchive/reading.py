"""Files of GH Archive read into tables of events, a process a file."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa

from stscurate.errors import InputError, StscurateError
from stscurate.records import EVENTS, Tally
from stscurate.sources.gharchive.events import Event, rows_of
from stscurate.sources.gharchive.lines import Hour
from stscurate.sources.lists import OptOut

MOST_BROKEN = 0.01  # of a file's lines; above, the file isn't what it ought to be
PARTS = 1_000  # shards that a file may have
_PART = 1 << 22  # characters of the texts of a part


@dataclass(frozen=True)
class Task:
    """A file to read. repositories: names in lower case, or None for all."""

    index: int
    path: Path
    name: str
    repositories: frozenset[str] | None
    opt_out: OptOut


class Part(NamedTuple):
    """Some of a file's events, or with number 0, which comes last, the rest of them and the file's tally."""

    file: int
    number: int
    events: pa.Table
    tally: Tally


def read_file(task: Task) -> Iterator[Part]:
    """The events of issues of one file, in parts, so that memory doesn't grow with the file.

    InputError where more than one line in a hundred isn't JSON.
    """
    tally = Tally()
    hour = Hour(task.path, task.repositories)
    number, size, rows = 0, 0, list[Event]()
    for line in hour.lines():
        for row in rows_of(line, task.opt_out, task.repositories, tally):
            rows.append(row)
            size += len(row["issue"] or "") + len(row["comment"] or "")
        if size >= _PART and number < PARTS - 1:
            number += 1
            yield Part(task.index, number, _table(rows), Tally())
            size, rows = 0, []
    lines = hour.counts.pop("lines", 0)
    for reason, count in hour.counts.items():
        tally.drop(reason, count)
    broken = tally.dropped["broken_line"]
    if broken > MOST_BROKEN * lines:
        raise InputError(
            f"{task.path} isn't an hour of GH Archive: {broken:,} of its {lines:,} lines are no events in JSON. "
            "Download it again, or take it out of the folder."
        )
    if broken:
        tally.count("broken_lines", task.name, broken)
    if hour.cut:
        tally.count("files_cut_off", task.name)
    elif not lines:
        tally.count("hours_empty", task.name)
    tally.rows_in += lines
    yield Part(task.index, 0, _table(rows), tally)


def read_files(tasks: Sequence[Task], workers: int) -> Iterator[Part]:
    """The parts of all files, those of one file in order. workers: processes, one file at a time in each."""
    if min(workers, len(tasks)) <= 1:
        for task in tasks:
            yield from read_file(task)
        return
    context = get_context("spawn")  # so that no process holds another's end of a pipe, and each ends with this one
    due = iter(tasks)
    here: list[Connection] = []
    processes = []
    try:
        for _ in range(min(workers, len(tasks))):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            here.append(ours)
            ours.send(next(due))
        while here:
            for ready in cast(list[Connection], wait(here)):
                part = _received(ready)
                if part.number == 0:
                    following = next(due, None)
                    ready.send(following)
                    if following is None:
                        here.remove(ready)
                yield part
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _work(pipe: Connection) -> None:
    """In a process of its own: read file after file, until there is none, or nobody to read them for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while task := pipe.recv():
            try:
                for part in read_file(task):
                    pipe.send(part)
            except (StscurateError, OSError) as error:
                pipe.send(error)


def _received(pipe: Connection) -> Part:
    try:
        answer: Any = pipe.recv()
    except (EOFError, ConnectionResetError):
        raise StscurateError(
            "A process that read the archive died (out of memory?): give fewer --workers. What is finished is kept."
        ) from None
    if isinstance(answer, BaseException):
        raise answer
    part: Part = answer
    return part


def _table(rows: list[Event]) -> pa.Table:
    columns = [pa.array([row[name] for row in rows], EVENTS.field(name).type) for name in EVENTS.names]
    return pa.Table.from_arrays(columns, schema=EVENTS)
