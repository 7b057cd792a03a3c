"""Groups of commands, whose help gives the whole sentence of each."""

from typing import Any

from typer.core import TyperGroup

_WHOLE = 1_000  # characters; typer cuts a sentence where its line ends


class Group(TyperGroup):
    """A group whose list of commands leaves no sentence unfinished: it goes on in the next line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(_WHOLE))
                    for name, command in found
                    if command and not command.hidden
                ]
            )
