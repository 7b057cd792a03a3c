"""SHA256SUMS, at the root of what is published: what we put there, so that it can be checked and taken back.

Its lines are those of `sha256sum`, which checks a downloaded set by `sha256sum -c SHA256SUMS`. The card isn't among
them: people edit it where it lies.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from stscurate.disk import atomic, fingerprint
from stscurate.errors import InputError

CHECKSUMS = "SHA256SUMS"
CARD = "README.md"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def write_checksums(folder: Path) -> None:
    """Write the SHA256SUMS of what is to be published of the folder.

    Its manifest.json isn't: it is there for this machine alone, and after a kill may be written already, as may be a
    part of anything.
    """
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".tmp"]
    paths = [path for path in paths if path.name not in (CHECKSUMS, CARD, "manifest.json")]
    sums = {path.relative_to(folder).as_posix(): fingerprint(path) for path in paths}
    with atomic(folder / CHECKSUMS) as file:
        file.write(checksum_lines(sums))


def checksum_lines(sums: Mapping[str, str]) -> bytes:
    """path -> SHA-256 as the content of SHA256SUMS, by path."""
    return "".join(f"{sums[path]}  {path}\n" for path in sorted(sums)).encode()


def read_checksums(content: bytes) -> dict[str, str]:
    """path -> SHA-256 in hexadecimal, of a SHA256SUMS file. InputError where a line is something else."""
    found = {}
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if not match:
            raise InputError(
                f"{CHECKSUMS}: line {number} isn't a checksum and a path: publish anew, or remove the file."
            )
        found[match[2]] = match[1]
    return found
