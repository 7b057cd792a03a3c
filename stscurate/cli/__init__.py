"""The command line: parses, prints, gives exit codes (0 done, 1 failed, 2 a mistake in what was given).

Importing this loads none of the heavy libraries: each command imports what it runs.
"""

import errno
import json
import os
import sys
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from stscurate import __version__
from stscurate.cli import audit, curate, deliver, ensemble, evaluate, inspect, mine, publish, rehydrate, report, train
from stscurate.cli.console import give_up_output
from stscurate.cli.group import Group
from stscurate.cli.refused import told

app = typer.Typer(
    name="stscurate",
    cls=Group,
    help="Raw text in; data sets of semantic textual similarity that can be trusted, and models trained on them, out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        print(f"stscurate {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


curate.add_to(app)
ensemble.add_to(app)
mine.add_to(app)
audit.add_to(app)
train.add_to(app)
evaluate.add_to(app)
publish.add_to(app)
deliver.add_to(app)
rehydrate.add_to(app)
inspect.add_to(app)
report.add_to(app)


def main() -> None:
    """Run the command line."""
    # torch's threads wait for each other in busy loops unless told otherwise, which on a machine with other work
    # costs more than the second core brings. It must be said before torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        _explain(error)
        sys.exit(error.exit_code)
    except OSError as error:  # the help has no frame of its own (console.session)
        if error.errno != errno.ENOSPC:
            raise
        print(f"stscurate: {told(error)[0]}", file=sys.stderr)
        give_up_output()
        sys.exit(1)
    except Abort:
        print("stscurate: Stopped before anything was sent.", file=sys.stderr)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: TyperException) -> None:
    """A mistyped command or option in one line, as any other mistake; with --json in the object too."""
    message = error.format_message()
    if "\n" in message:  # the help, where nothing was asked for
        print(message, file=sys.stderr)
        return
    context = getattr(error, "ctx", None)
    message = message if message.endswith((".", "?")) else f"{message}."
    line = f"{message} `{context.command_path if context else 'stscurate'} --help` lists what there is."
    if "--json" in sys.argv:
        print(json.dumps({"error": line, "exit_code": error.exit_code}, ensure_ascii=False))
    print(f"stscurate: {line}", file=sys.stderr)
