"""Commands that look for what is wrong with a set: audit leaks; the others stand in files of their own."""

from pathlib import Path
from typing import Annotated

import typer

from stscurate.cli.calibrate import calibrate
from stscurate.cli.console import session
from stscurate.cli.group import Group
from stscurate.cli.labels import labels
from stscurate.cli.options import Columns, Json, Quiet, Scale, Yes, check_place
from stscurate.cli.relevance import relevance
from stscurate.cli.size_bias import size_bias
from stscurate.wording import counted

_EXAMPLES = 5


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    audit = typer.Typer(
        cls=Group, help="Look for what is wrong with a set, ours or not.", no_args_is_help=True, rich_markup_mode=None
    )
    audit.command("leaks")(leaks)
    audit.command("calibrate")(calibrate)
    audit.command("labels")(labels)
    audit.command("relevance")(relevance)
    audit.command("size-bias")(size_bias)
    app.add_typer(audit, name="audit")


def leaks(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES...", help="Splits: files (also as NAME=FILE), a run, or a `datasets` folder."),
    ],
    near_duplicates: Annotated[
        float | None,
        typer.Option(help="Texts this similar count too (Jaccard of five-word sequences, 0.5 to 1).", min=0.5, max=1),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Parquet file for all texts that leak, with their places.")] = None,
    fail: Annotated[bool, typer.Option("--fail", help="Give exit code 1 if any text leaks.")] = False,
    columns: Columns = None,
    scale: Scale = None,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Name the rows of one split whose text stands in another."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.audit import find_leaks, read_splits
        from stscurate.disk import write_parquet
        from stscurate.errors import StscurateError

        check_place(out, [part for given in files for part in (given, given.partition("=")[2]) if part], yes=yes)
        found = find_leaks(read_splits(files, columns=columns, scale=scale), near=near_duplicates)
        console.table("leaks", found.counts)
        examples = found.rows.slice(0, _EXAMPLES).to_pylist()
        for row in examples:
            console.say(f"{row['place']}, {row['column']}: {row['text']!r:.200}")
            console.say(f"    {row['similarity']:.2f} in {row['other_place']}, {row['other_column']}")
        rows = len({(row["split"], row["place"]) for row in found.rows.select(["split", "place"]).to_pylist()})
        console.say(f"{counted(rows, 'row holds', 'rows hold')} a text of another split.")
        console.keep(leaked_rows=rows, examples=examples)
        if out:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_parquet(out, found.rows)
            console.say(f"All of them ({counted(found.rows.num_rows, 'text')}): {out}")
        if fail and rows:
            raise StscurateError(
                f"{counted(rows, 'row holds', 'rows hold')} a text of another split: drop them, or split by component."
            )
