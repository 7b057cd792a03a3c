"""What a person or a program sees: lines and tables, or with --json one object on standard output."""

import io
import json
import math
import os
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import typer

from stscurate.cli.refused import RESUME, told
from stscurate.cli.tallies import lines_of
from stscurate.errors import StscurateError
from stscurate.wording import counted

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tabs and line ends


class Console:
    """Collects what a command did; draws it at once, or keeps it for the one JSON object."""

    def __init__(self, *, as_json: bool, quiet: bool):
        self._json = as_json
        self._quiet = quiet
        self._result: dict[str, Any] = {}
        self._drawing = ""

    def say(self, line: str = "") -> None:
        """One line for a person."""
        if not (self._quiet or self._json):
            self._clear()
            print(_visible(line))

    def stage(self, entry: Any) -> None:
        """What a stage did: rows in and out, counts, every dropped row by its reason, and where to look."""
        found = {"stage": entry.stage, "fresh": entry.fresh, "place": str(entry.place), **entry.as_dict()}
        self._result.setdefault("stages", []).append(found)
        tally = entry.tally
        made = ", ".join(counted(output["rows"], _one_of(name), name) for name, output in entry.outputs.items())
        state = "" if entry.fresh else " (finished before)"
        self.say(f"{entry.stage}{state}: {counted(tally.rows_in, 'row')} in; {made}; in {entry.place}")
        for line in lines_of(tally):
            self.say(f"    {line}")

    def table(
        self,
        key: str,
        rows: list[dict[str, Any]],
        *,
        title: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """A table of equal-keyed rows: drawn as `draw` does, by the key as a title without one, and kept for JSON."""
        self._result[key] = rows
        self.draw(title or key, rows, headers=headers)

    def draw(self, title: str, rows: list[dict[str, Any]], *, headers: Mapping[str, str] | None = None) -> None:
        """A table for a person alone. headers: what stands above a column, where that isn't the rows' key."""
        if self._quiet or self._json or not rows:
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console as RichConsole
        from rich.table import Table

        self._clear()
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
        names = headers or {}
        for column, value in rows[0].items():
            justify: Literal["left", "right"] = "left" if isinstance(value, str) else "right"
            table.add_column(_visible(names.get(column, column)), justify=justify, overflow="fold")
        for row in rows:
            table.add_row(*(_cell(value) for value in row.values()))
        width = None if sys.stdout.isatty() else 160
        # Names of files, splits and annotators are shown as they are: "[/b]" and ":smile:" are no commands.
        screen = RichConsole(width=width, highlight=False, markup=False, emoji=False)
        if screen.measure(table, options=screen.options.update(max_width=10_000)).minimum <= screen.width:
            screen.print(table)
            return
        self.say(title)  # a table would break words and numbers in two
        for row in rows:
            lines = [f"  {names.get(column, column)}: {_cell(value)}" for column, value in row.items()]
            self.say("\n".join(["", *lines]))
        self.say()

    def keep(self, **values: Any) -> None:
        """Values for the JSON object alone."""
        self._result.update(values)

    def progress(self, label: str, done: int, total: int | None) -> None:
        """A progress line on standard error, where that is a terminal."""
        if self._quiet or self._json or not sys.stderr.isatty():
            return
        share = f" of {total:,} ({done / total:.0%})" if total else ""
        label, _, more = label.partition("; ")
        self._clear()
        width = shutil.get_terminal_size().columns - 1  # a longer line would be broken in two, and stay
        self._drawing = (f"{label}: {done:,}{share}" + (f", {more}" if more else ""))[:width]
        print(self._drawing, end="\r", file=sys.stderr, flush=True)

    def finish(self, error: tuple[str, int] | None = None) -> None:
        """Print the JSON object, or the error for a person. OSError where standard output can't take it."""
        self._clear()
        try:
            if self._json:
                if error:
                    self._result |= {"error": error[0], "exit_code": error[1]}
                # What users' files hold and JSON doesn't: dates and bytes as text, nan as null.
                plain = json.loads(json.dumps(self._result, default=str), parse_constant=lambda _: None)
                print(json.dumps(plain, ensure_ascii=False))
            if sys.stdout:
                sys.stdout.flush()  # what can't be written has to be told here: nobody hears of it at the exit
        finally:
            if error:
                print(f"stscurate: {_visible(error[0])}", file=sys.stderr)

    def _clear(self) -> None:
        if self._drawing:
            print(" " * len(self._drawing), end="\r", file=sys.stderr, flush=True)
            self._drawing = ""


@contextmanager
def session(*, as_json: bool, quiet: bool) -> Iterator[Console]:
    """A command's frame: its console, and one clear line with the right exit code for whatever goes wrong."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # half a surrogate pair, or a terminal without UTF-8
    console = Console(as_json=as_json, quiet=quiet)
    try:
        yield console
        console.finish()
        return
    except StscurateError as error:
        problem = (str(error), error.exit_code)
    except KeyboardInterrupt:
        problem = (f"Stopped. {RESUME}", 130)
    except (OSError, sqlite3.DatabaseError, UnicodeEncodeError, MemoryError) as error:
        problem = told(error)
    try:
        console.finish(problem)
    except OSError:  # standard output is what is full; standard error has been told
        give_up_output()
    raise typer.Exit(problem[1])


def give_up_output() -> None:
    """Let what is left for standard output go nowhere, that Python doesn't try it again at its exit and end by 120."""
    with suppress(OSError, ValueError):  # a stand-in has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def draw_results(console: Console, folder: Path) -> None:
    """Draw the tables of an evaluation, where the folder holds one."""
    results = folder / "results.json"
    if results.exists():
        draw_evaluation(console, json.loads(results.read_text("utf-8")))


def draw_evaluation(console: Console, found: dict[str, Any]) -> None:
    """Draw the tables and notes of an evaluation, as Evaluation.as_dict gives it."""
    from stscurate.evaluation import tables

    for name, rows in tables(found).items():
        console.draw(name, rows)
    for note in found.get("notes", []):
        console.say(f"- {note}")
    console.keep(**found)


def _visible(text: str) -> str:
    """Text as a terminal may have it: what users' files hold must not move its cursor, clear it or ring its bell."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _one_of(table: str) -> str:
    """A row of a table, by the table's name: pairs, repositories, ..."""
    return "repository" if table == "repositories" else table.removesuffix("s")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:z.4f}"  # and no -0.0000
    return f"{value:,}" if isinstance(value, int) else _visible(str(value))
