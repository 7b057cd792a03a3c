"""The lines of an hour of GH Archive that may be events of issues, found in blocks of bytes before JSON is parsed.

The archive's own lines begin {"id":"1","type":"PushEvent","actor":...: of those, the first bytes decide. This relies
on no key standing twice in an object. Where a block has more ends of events than lines, the lines with several, glued
together, are let through too. Whatever begins otherwise (before 2015 the keys came in another order) is let through
unless it can't be an event of issues: it has neither "Issue" nor an escape that could spell it.
"""

import bz2
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isal import igzip, isal_zlib

from stscurate.errors import InputError

_BLOCK = 1 << 19  # bytes: fits the processor's cache
LONGEST = 1 << 26  # bytes of a line; hours of 2011 hold all their events in one
_OTHER = re.compile(rb'\{"id":"\d+","type":"(?!Issue)[A-Za-z]+","actor":')
_OURS = re.compile(
    rb'\{"id":"\d+","type":"(?:IssueComment|Issues)Event","actor":\{[^{}\\]*\},"repo":\{"id":\d+,"name":"([\w./-]+)"'
)
_PULL = re.compile(rb'"html_url":"https://github\.com/[^"\\]{3,141}/pull/\d+"')  # no text's: there it has a backslash
_URL = b'"html_url":"'
_END = b'},"public":true,"created_at":"20'  # in every event once, and in no text: there it has backslashes
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_BLANK = ""
_GZIP = b"\x1f\x8b"
_OTHER_PACKED: dict[bytes, Any] = {
    b"\xfd7zXZ": lzma.open,
    b"BZh": bz2.open,
}  # the archive's are gzip; some keep them smaller
_BOM = b"\xef\xbb\xbf"
_DAMAGED: Any = (OSError, isal_zlib.error, lzma.LZMAError)  # of bz2 and gzip it is an OSError without a number


class Hour:
    """An hour's file as it is read: `counts` of its lines, by what became of them, and whether it was `cut` off.

    The counts: "lines", and of them "other_event", "pull_request", "not_listed", "broken_line".
    """

    def __init__(self, path: Path, repositories: frozenset[str] | None = None):
        self.path = path
        self.counts: Counter[str] = Counter()
        self.cut = False
        self._wanted = None if repositories is None else frozenset(name.encode() for name in repositories)

    def lines(self) -> Iterator[bytes]:
        """The lines that have to be parsed: they may be events of issues, of wanted repositories and others.

        InputError for a damaged file.
        """
        skip, other = _OTHER.match, 0
        for block, first, stop in self._blocks():
            find, view, start, lines = block.find, memoryview(block), first, 0
            while start < stop:
                end = find(b"\n", start, stop)
                end = stop if end < 0 else end
                if skip(block, start, end):
                    other += 1
                elif end > start and self._may_be_ours(block, start, end):
                    yield bytes(view[start:end])
                lines += end > start
                start = end + 1
            if block.count(_END, first, stop) > lines:
                yield from self._glued(bytes(view[first:stop]))
        self.counts["other_event"] += other
        self.counts["lines"] += other

    def first(self) -> bytes:
        """The first line that isn't blank; b"" without any."""
        for block, start, stop in self._blocks():
            if line := bytes(block[start:stop]).strip().split(b"\n", 1)[0]:
                return line
        return b""

    def _glued(self, block: bytes) -> Iterator[bytes]:
        """Of some lines those that were left out for their first event, and hold others."""
        for line in block.split(b"\n"):
            if line.count(_END) > 1:
                other = _OTHER.match(line)
                reason = "other_event" if other else self._reason(bytearray(line), 0, len(line))
                if reason:
                    self.counts[reason] -= 1
                    yield line

    def _may_be_ours(self, block: bytearray, start: int, end: int) -> bool:
        reason = self._reason(block, start, end)
        self.counts["lines"] += reason is not _BLANK
        if reason:
            self.counts[reason] += 1
        return reason is None

    def _reason(self, block: bytearray, start: int, end: int) -> str | None:
        """Why a line needn't be parsed; None where it has to be."""
        if head := _OURS.match(block, start, end):
            if self._wanted is not None and head[1].lower() not in self._wanted:
                return "not_listed"
            if (url := block.find(_URL, head.end(), end)) >= 0 and _PULL.match(block, url, end):
                return "pull_request"
        elif block.find(b"Issue", start, end) < 0 and not _ESCAPED_LETTER.search(block, start, end):
            line = block[start:end].strip()
            if not line:
                return _BLANK
            return "other_event" if line[:1] == b"{" and line[-1:] == b"}" else "broken_line"
        return None

    def _blocks(self) -> Iterator[tuple[bytearray, int, int]]:
        """(buffer, start, stop) of runs of whole lines; the buffer is used again."""
        with _open(self.path) as file:
            buffer = bytearray(_BLOCK)
            kept, too_long = self._read(file, memoryview(buffer)[: len(_BOM)]), False
            if buffer.startswith(_BOM):
                kept = 0
            while read := self._read(file, memoryview(buffer)[kept:]):
                stop = kept + read
                end = buffer.rfind(b"\n", kept, stop) + 1
                if end and too_long:
                    start, too_long = buffer.find(b"\n", kept, stop) + 1, False
                else:
                    start = 0
                if end:
                    yield buffer, start, end
                    kept = stop - end
                    buffer[:kept] = buffer[end:stop]
                    if len(buffer) > _BLOCK >= 2 * kept:
                        buffer = buffer[:_BLOCK]
                elif too_long or stop >= LONGEST:
                    self.counts.update({} if too_long else {"lines": 1, "broken_line": 1})
                    kept, too_long = 0, True
                else:
                    kept = stop
                    if kept == len(buffer):
                        buffer = buffer + bytes(len(buffer))
            if kept and not too_long and not self.cut:
                yield buffer, 0, kept

    def _read(self, file: Any, into: memoryview) -> int:
        try:
            return int(file.readinto(into))
        except EOFError:
            self.cut = True
        except _DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None:  # the disk's fault
                raise
            if not self.counts["lines"]:
                raise InputError(f"{self.path} is a damaged archive: copy or download it again.") from None
            self.cut = True
        return 0


def _open(path: Path) -> Any:
    """The file's bytes, decompressed where they are packed, after a byte-order mark."""
    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(_GZIP):
        return igzip.IGzipFile(path, "rb")  # type: ignore[no-untyped-call]
    opener = next((opener for sign, opener in _OTHER_PACKED.items() if head.startswith(sign)), None)
    return opener(path, "rb") if opener else path.open("rb", buffering=0)
