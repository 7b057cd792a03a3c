"""The command line: parses, prints, gives exit codes (0 done, 1 failed, 2 a mistake in what was given).

Importing this loads none of the heavy libraries: each command imports what it runs.
"""

import os
from typing import Annotated

import typer

from stscurate import __version__
from stscurate.cli import audit, curate, deliver, inspect, mine, model, publish, rehydrate, report, scores, train

app = typer.Typer(
    name="stscurate",
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
scores.add_to(app)
mine.add_to(app)
audit.add_to(app)
train.add_to(app)
model.add_to(app)
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
    app()
