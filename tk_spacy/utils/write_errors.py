"""What went wrong where something was written, and what can be done about it."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def is_about(error: OSError, place: Path) -> bool:
    """Whether an error of a block that writes may be one of the writing there.

    Where a write itself fails (a full disk) the error has no file name.
    """
    if not isinstance(error.filename, str | bytes | os.PathLike):
        return True
    return Path(os.fsdecode(error.filename)).is_relative_to(place)


_CURES = {
    "ENOSPC": "free some space there, or write elsewhere",
    "EDQUOT": "free some of your space there, or write elsewhere",
    "EFBIG": "raise the limit on the size of files (ulimit -f), or write elsewhere",
    "EROFS": "write elsewhere: nothing can be written there",
    "EMFILE": "raise the limit on open files (ulimit -n), or do less at a time (processes, jobs)",
    "ENFILE": "the system has no more open files: close other programs",
    "EAGAIN": "raise the limit on processes (ulimit -u), or use fewer (threads, processes, jobs)",
    "EIO": "look after the disk, or write elsewhere",
    "ESTALE": "mount the file system again, or write elsewhere",
    "ENAMETOOLONG": "give a shorter name",
}
"""By the names of errors, as not every system knows all of them."""

NEW_PLACE = "give a name in a directory that exists and can be written"


def cure_of(error: OSError, otherwise: str = NEW_PLACE) -> str:
    """What can be done; otherwise: where the error itself does not tell."""
    return _CURES.get(errno.errorcode.get(error.errno or 0, ""), otherwise)
