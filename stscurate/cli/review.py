"""What a dry run of publish shows."""

from typing import TYPE_CHECKING

from stscurate.cli.console import Console
from stscurate.wording import counted

if TYPE_CHECKING:
    from stscurate.publishing import Review


def draw_review(console: Console, found: "Review") -> None:
    """Every gate, what it found with the mend, and every file with its rows and bytes."""
    draw_gates(console, found)
    files = [{"path": file.path, "state": file.state, "rows": file.rows, "bytes": file.bytes} for file in found.files]
    console.table("files", files)
    rows, size = (sum(getattr(file, name) for file in found.files) for name in ("rows", "bytes"))
    console.say(
        f"Nothing was written. It would be {counted(len(files), 'file')} with {counted(rows, 'row')} and "
        f"{counted(size, 'byte')}, and the card."
    )


def draw_gates(console: Console, found: "Review") -> None:
    """Every gate, what it found with the mend, and whether any would refuse."""
    console.table("gates", found.gate_rows())
    told = [one for one in found.gates if one.places]
    for one in told:
        console.say(one.refusal())
    console.keep(findings={one.gate.name: {"mend": one.gate.mend, "found": one.places} for one in told})
    refused = ", ".join(one.gate.name for one in found.refused)
    console.say(f"These gates would refuse: {refused}." if refused else "No gate would refuse.")
