"""Commands that look into runs: trace, diff."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stscurate.cli.console import session
from stscurate.cli.options import Json, Quiet

if TYPE_CHECKING:
    from stscurate.diffing import TableDiff
    from stscurate.store import Run

_HASH = re.compile("[0-9a-f]{64}")  # a SHA-256: its beginning tells it from another


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("trace")(trace)
    app.command("diff")(diff)


def trace(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run that has pairs.")],
    row: Annotated[
        list[str],
        typer.Argument(metavar="ROW", help="A pair_id or its beginning, one issue as owner/name#12, or two of them."),
    ],
    published: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Published folder to look for the pair in, repeatable; those in RUN too."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell one row's whole story: issues, evidence, cleaning, component, votes, split, why it was kept or dropped."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.cli.story import lines_of
        from stscurate.pairing import trace as tell

        story = tell(_run(run), " ".join(row), published=published or [])
        console.keep(**story)
        for line in lines_of(story):
            console.say(line)


def diff(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="The older run.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="The newer run.")],
    rows: Annotated[int, typer.Option(help="Rows to show of each kind (added, gone, changed) and table.", min=0)] = 5,
    fail: Annotated[bool, typer.Option("--fail", help="Give exit code 1 if anything differs.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell what changed between two runs: settings, versions, and rows that were added, are gone or changed."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.diffing import diff_runs
        from stscurate.errors import StscurateError

        found = diff_runs(_run(first), _run(second), rows=rows)
        console.keep(equal=found.equal)
        shown = [{**row, "first": _short(row["first"]), "second": _short(row["second"])} for row in found.stages]
        console.draw("settings and versions", shown)
        console.keep(stages=found.stages)
        console.draw("tables", [_counts(table) for table in found.tables])
        console.keep(tables=[_counts(table) | _details(table) for table in found.tables])
        for table in found.tables:
            for line in _lines(table):
                console.say(line)
        if found.equal:
            console.say("The runs hold the same, made the same way.")
        elif fail:
            raise StscurateError(f"{second} differs from {first}.")


def _run(path: Path) -> "Run":
    """The run there, not locked: it is only read."""
    from stscurate.errors import InputError
    from stscurate.store import Run, is_run

    if not is_run(path):
        raise InputError(f"{path} isn't a run: give the folder that --out named.")
    return Run(path)


def _counts(table: "TableDiff") -> dict[str, Any]:
    return {
        "table": table.table,
        "rows": table.rows[0],
        "rows now": table.rows[1],
        "added": table.added,
        "gone": table.gone,
        "changed": table.changed,
    }


def _details(table: "TableDiff") -> dict[str, Any]:
    names = ("changed_in", "moves", "sizes", "columns", "examples")
    return {name: getattr(table, name) for name in names}


def _lines(table: "TableDiff") -> list[str]:
    """A table's changes for a person."""
    lines = []
    if table.changed_in:
        counted = ", ".join(f"{name} {rows:,}" for name, rows in table.changed_in.most_common())
        lines.append(f"{table.table}, rows changed in: {counted}")
    lines += [f"    {move}: {rows:,}" for move, rows in table.moves.most_common()]
    lines += [
        f"    {name} by {size['mean']:.4f} on average, {size['most']:.4f} at most" for name, size in table.sizes.items()
    ]
    if table.columns:
        lines.append(f"{table.table}, columns that only one of them has: {', '.join(table.columns)}")
    for example in table.examples:
        lines.append(f"{table.table}, {example['what']}: {example['row']}")
        changes = {name: value for name, value in example.items() if name not in ("what", "row")}
        lines += [f"    {name}: {_short(old)} -> {_short(new)}" for name, (old, new) in changes.items()]
    return lines


def _short(value: Any, width: int = 80) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _HASH.fullmatch(str(value)):
        return f"{value[:12]}..."
    text = "-" if value is None else " ".join(str(value).split())
    return text if len(text) <= width else f"{text[:width]} ..."
