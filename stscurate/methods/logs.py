"""Logs, stack traces and code, cut to a stated length: what stands in their middle says little about an issue.

Of a run of more than ten lines of a trace or a log the first five and the last five stay, in code as in prose; of what
a code block then has, 20 lines at its beginning and 10 at its end. "[12 lines cut]" stands for the rest. The lines
that say what happened aren't part of a run: "Traceback ...", the exception's own line, "Caused by: ...", "panic: ...".
A word of over 200 characters (an encoded file, a minified source) keeps its first 100.
"""

import re
from collections.abc import Iterator, Sequence

RUN_HEAD = RUN_TAIL = 5
CODE_HEAD, CODE_TAIL = 20, 10
WORD, WORD_KEPT = 200, 100  # characters

# Any of these may begin a line of prose, but hardly eleven in a row.
_LOG = re.compile(
    r"[ \t>|]{0,80}+(?:"
    r"at[ \t]+\S"  # Java, JavaScript, .NET, Rust's places
    r"|File \"[^\"]{1,300}\", line \d"  # Python
    r"|\d{1,4}:[ \t]+\S|#\d{1,4}[ \t]+(?:0x|/|\S{1,200}[ \t]?\()"  # Rust, PHP, Dart, debuggers
    r"|from \S+:\d+:in\b|goroutine \d{1,9} \[|created by \S"  # Ruby, Go
    r"|\.\.\. \d{1,5} (?:more|common)"
    r"|[\[(]?\d{4}[-/]\d\d[-/]\d\d[T ,]|[\[(]?\d\d:\d\d:\d\d|[\[(]?\d{1,2}[/.-]\w{2,4}[/.-]\d{2,4}[ :,T]"
    r"|[\[(]?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6},? +\d{1,2} "
    r"|\[ {0,8}\d{1,9}\.\d{1,9}\]|[EWIDVF](?:/\w|\d{4} \d\d:)"
    r"|\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE|FATAL|VERBOSE|Debug|Info|debug|info|verbose|trace)\b[\]:| \t]"
    r"|npm (?:ERR!|WARN|info|verb|http|notice)|g?make(?:\[\d{1,3}\])?: |(?:g?cc|clang|g\+\+|rustc|ld)(?:-\d+)? -"
    r"|(?:Compiling|Checking|Fresh|Running|Building|Download(?:ing|ed)|Collecting|Installing|Fetching|Unpacking) \S"
    r"|[A-Za-z0-9+/]{60,}={0,2}[ \t]*$|(?:0x)?[0-9a-f]{4,16}[: ][ \t]*(?:[0-9a-f]{2,4}[ \t]+){4}"
    r")"
)
# Go and Ruby: what tells them stands in the middle of a line.
_PLACE = re.compile(r"[ \t>|]{0,80}+\S{1,200}(?:\.go:\d|\.rb:\d{1,6}:in\b|\((?:0x[0-9a-f]|\.\.\.\)|\{0x))")
_PLACES = (".go:", ".rb:")
_PYTHON = re.compile(r"[ \t>|]{0,80}+File \"")
_INDENTED = ("\t", "  ")


def cut_logs(lines: Sequence[str]) -> tuple[list[str], int]:
    """Lines of prose or of anything, with runs of trace or log lines cut; and how many lines that took out."""
    return _told(_run_cut(lines))


def cut_code(lines: Sequence[str]) -> tuple[list[str], int]:
    """The lines of a code block, without its fences, cut; and how many lines that took out."""
    kept = _run_cut(lines)
    if len(kept) > CODE_HEAD + CODE_TAIL + 1:  # a marker for a single line would say less than the line
        middle = kept[CODE_HEAD:-CODE_TAIL]
        kept[CODE_HEAD:-CODE_TAIL] = [sum(1 if isinstance(part, str) else part for part in middle)]
    return _told(kept)


def cut_words(line: str) -> str:
    """The line with very long words cut."""
    if len(line) <= WORD:
        return line
    return " ".join(
        f"{word[:WORD_KEPT]}[{len(word) - WORD_KEPT:,} characters cut]" if len(word) > WORD else word
        for word in line.split(" ")
    )


def _run_cut(lines: Sequence[str]) -> list[str | int]:
    """The lines, a number standing for as many that are left out."""
    kept: list[str | int] = []
    start = 0
    for begin, end in _runs(lines) if len(lines) > RUN_HEAD + RUN_TAIL + 1 else ():
        if end - begin > RUN_HEAD + RUN_TAIL + 1:
            kept += [*lines[start : begin + RUN_HEAD], end - begin - RUN_HEAD - RUN_TAIL]
            start = end - RUN_TAIL
    return [*kept, *lines[start:]]


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(first, behind the last) of each run of log lines; single empty lines don't break one.

    Of three neighbours in a run one at least is a log line. So where none of lines 1 to 3, 10 to 12, ... is, there is
    no run long enough to be cut, which is how most texts are.
    """
    begin = end = 0  # of the run so far
    follow = 0  # lines that may follow the last one as its source
    has_places = any(place in line for line in lines for place in _PLACES)
    if not has_places and not any(_LOG.match(line) for at in range(0, len(lines), 9) for line in lines[at : at + 3]):
        return
    for at, line in enumerate(lines):
        is_log = bool(_LOG.match(line) or (has_places and _PLACE.match(line)))
        if is_log or (follow and (follow > 1 or line.startswith(_INDENTED)) and line.strip()):
            if end == begin or at > end + (not lines[at - 1].strip()):
                if end > begin:
                    yield begin, end
                begin = at
            end = at + 1
        follow = (2 if _PYTHON.match(line) else 1) if is_log else max(0, follow - 1)
    if end > begin:
        yield begin, end


def _told(parts: Sequence[str | int]) -> tuple[list[str], int]:
    """The parts with a marker for each number, and what the numbers come to."""
    taken = sum(part for part in parts if isinstance(part, int))
    return [part if isinstance(part, str) else f"[{part} lines cut]" for part in parts], taken
