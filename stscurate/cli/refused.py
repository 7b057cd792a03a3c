"""What the machine refuses (disk, rights, names, memory) in one sentence, with its exit code."""

import errno
import sqlite3

RESUME = "Run the same command again: what was finished is kept."
_NO_PLACE = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)
Refusal = OSError | sqlite3.DatabaseError | UnicodeEncodeError | MemoryError


def told(error: Refusal) -> tuple[str, int]:
    """The line and the exit code; raises what isn't of the machine, such as a reader that has closed the pipe."""
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, MemoryError):
        return f"There isn't enough memory for this: give fewer or shorter rows, or free some. {RESUME}", 1
    if isinstance(error, UnicodeEncodeError):
        name = error.object.encode(errors="backslashreplace").decode()
        return f"{name} is no name in UTF-8: rename the file or folder, or set a locale of UTF-8 (LC_ALL=C.UTF-8).", 2
    if "is full" in str(error):
        return f"The disk is full. Free some space. {RESUME}", 1
    mend = "free some space if the disk is full" if "disk I/O" in str(error) else "mend its rights"
    return f"A file of answers (*.sqlite) can't be used ({error}): {mend}, or bring back a copy of it. {RESUME}", 1


def _of_system(error: OSError) -> tuple[str, int]:
    place = f" while writing {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full{place}. Free some space. {RESUME}", 1
    if error.errno == errno.EFBIG:
        return f"The file grew above the size allowed here{place}. Raise the limit (ulimit -f). {RESUME}", 1
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"No right to use {error.filename}: choose another place, or change its rights.", 1
    if error.errno in _NO_PLACE:
        return f"{error.filename} can't be a file or folder here ({error.strerror}): choose another place.", 2
    if error.errno and error.filename:
        return f"{error.filename} can't be used ({error.strerror}): check the place. {RESUME}", 1
    raise error
