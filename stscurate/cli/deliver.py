"""Commands that deliver: run, show."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stscurate.cli.console import Console, draw_results, session
from stscurate.cli.options import Json, Quiet, RunFolder, Yes
from stscurate.wording import counted

if TYPE_CHECKING:
    from stscurate.progress import Progress
    from stscurate.publishing.looking import Split

_TYPES = "str, int, float, Path and tuple[str, ...]"


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("run")(run)
    app.command("show")(show)


def run(
    recipe: Annotated[
        Path,
        typer.Argument(
            help="A recipe of stscurate by name, as texts_to_model, or your own: a Python file with `recipe`."
        ),
    ],
    out: RunFolder,
    options: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="NAME=VALUE for the recipe, repeatable.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Run a recipe from end to end: the same stages as the commands, in one run folder."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.store import Run

        function, given = _recipe(recipe, options or [], console.progress)
        with Run.open(out, replace=yes) as opened:
            places = []
            for entry in function(opened, **given):
                places.append({"stage": entry.stage, "rows": entry.rows, "look in": str(entry.place)})
                console.stage(entry)
                draw_results(console, entry.place)
            console.table("result", places)


def show(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A run, a table of a run, a published set, or a file of rows.")
    ],
    rows: Annotated[int, typer.Option(help="Rows to show.", min=1)] = 5,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what a run holds, or the first rows of a file or of each config of a published set."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.files import read_table
        from stscurate.publishing.looking import published_splits
        from stscurate.store import Run, is_run

        if is_run(path) or (path / "modules.json").exists() or (path / "results.json").exists():
            for entry in Run(path).entries.values():
                console.stage(entry)
            draw_results(console, path)
            if not Run(path).entries:
                console.say(f"{path} has no finished stage.")
            return
        splits = published_splits(path)
        if splits:
            _show_configs(console, path, splits, rows)
            return
        table = read_table(path)
        console.keep(rows_in_file=len(table))
        told = counted(len(table), "row")
        console.say(f"{path}: {told}" + (f"; the first {rows:,}:" if rows < len(table) else ":"))
        for row in range(min(rows, len(table))):
            _show_row(console, table.places[row], {name: column[row] for name, column in table.columns.items()})
        first = range(min(rows, len(table)))
        console.keep(rows=[{name: column[row] for name, column in table.columns.items()} for row in first])


def _show_configs(console: Console, path: Path, splits: "list[Split]", rows: int) -> None:
    """Every config of a published set with the rows of its splits, and the first rows of the first one."""
    kept: dict[str, Any] = {}
    console.draw("configs", [{"config": one.config, "split": one.name, "rows": one.rows} for one in splits])
    for split in splits:
        config = kept.setdefault(split.config, {"splits": {}, "rows": []})
        config["splits"][split.name] = split.rows
        if len(config["splits"]) == 1:
            config["rows"] = split.first(rows)
            console.say(f"\n{path}, config {split.config}, split {split.name}; the first {len(config['rows'])}:")
            for number, row in enumerate(config["rows"]):
                _show_row(console, f"row {number}", row)
    console.keep(configs=kept)


def _show_row(console: Console, place: str, row: dict[str, Any]) -> None:
    console.say(f"\n{place}")
    for name, value in row.items():
        if value is not None:
            console.say(f"    {name}: {_short(value)}")


def _short(value: Any, width: int = 300) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= width else f"{text[:width]} ..."


def _function(path: Path) -> Callable[..., Iterator[Any]]:
    """The recipe of a file, or of stscurate's own by name. InputError where there is no such file, or none in it."""
    import importlib.util

    from stscurate.errors import InputError, StscurateError
    from stscurate.resources import recipes

    path = path if path.is_file() else recipes().get(str(path), path)
    if not path.exists():
        raise InputError(f"There is no recipe {path}: check the path, or take one of {', '.join(recipes())}.")
    spec = importlib.util.spec_from_file_location(path.stem, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise InputError(
            f"{path} isn't a Python file (*.py): give one, or the name of a recipe: {', '.join(recipes())}."
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except StscurateError:
        raise
    except Exception as error:
        raise InputError(f"{path} can't be loaded ({type(error).__name__}: {error}): mend the recipe.") from error
    function: Callable[..., Iterator[Any]] | None = getattr(module, "recipe", None)
    if function is None:
        raise InputError(f"{path} has no function `recipe`: see {recipes()['texts_to_model']} for one.")
    return function


def _recipe(
    path: Path, options: list[str], progress: "Progress"
) -> tuple[Callable[..., Iterator[Any]], dict[str, Any]]:
    """The recipe's function, and its arguments: --set as its parameters' types want them, progress where it's taken."""
    import inspect

    from stscurate.errors import InputError

    function = _function(path)
    known = {
        name: parameter.annotation
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    given: dict[str, Any] = {"progress": progress} if known.pop("progress", None) else {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or name not in known:
            raise InputError(f"--set {option}: give NAME=VALUE with a NAME of {', '.join(known)}.")
        if known[name] == tuple[str, ...]:
            given[name] = (*given.get(name, ()), value)
            continue
        if known[name] not in (str, int, float, Path):
            raise InputError(f"--set {option}: the recipe takes a {known[name]}, and --set gives {_TYPES}.")
        try:
            given[name] = known[name](value)
        except ValueError:
            raise InputError(f"--set {option}: {value!r} isn't {known[name].__name__}.") from None
    return function, given
