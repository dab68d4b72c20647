"""Temporary files and folders that tell who makes them, so that what a killed one left is removed.

`.NAME.HOST-PID-N.tmp` stands beside NAME and is to take its place.  Its writer holds a lock on it,
which the system lifts when the process ends, however it ends.  The next process that writes NAME
removes what nobody holds any more.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Literal

from tk_spacy.errors import UserError
from tk_spacy.utils.write_errors import is_about

try:
    import fcntl
except ImportError:  # Windows: the number of a process alone tells whether it is at work
    fcntl = None  # type: ignore[assignment]

MOST_BYTES = 200
"""A name that is longer is replaced by a digest: file systems take 255 bytes with all additions."""

_MADE = re.compile(
    r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-[0-9]+\.(?P<kind>tmp|old)", re.S
)
_NUMBERS = itertools.count()

_LISTED: dict[Path, dict[str, list[Path]]] = {}
"""By folder and name, what lay there when this process first wrote there."""

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)

_LOCKS: set[int] = set()
"""Descriptors that hold this process's locks."""


def new_name(target: Path, *, kind: Literal["tmp", "old"] = "tmp") -> Path:
    """A name beside `target` for what is to take its place; kind: "old" for what makes room."""
    number = next(_NUMBERS)
    return target.with_name(f".{_stem(target)}.{_host()}-{os.getpid()}-{number}.{kind}")


def hidden_name(target: Path, ending: str) -> Path:
    """A name beside `target` for what belongs to it, and is not cleared as what a kill left is."""
    return target.with_name(f".{_stem(target)}.{ending}")


@contextmanager
def temporary_beside(target: Path, *, directory: bool = False) -> Iterator[Path]:
    """An empty file, or directory, beside `target`, locked; removed if it is there at the end.

    What killed processes left of the same target is removed first.
    directory: one for this user's eyes only.  Raises OSError where none can be made.
    """
    clear_leftovers(target)
    while True:
        path = new_name(target)
        try:
            if directory:
                path.mkdir(mode=0o700)
            else:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o666))
        except FileExistsError:  # of a killed process of the same number
            continue
        try:
            with _held(path) as is_there:
                if is_there:
                    yield path
                    return
        finally:
            remove(path)


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Lock a file or directory while the block lasts; yields whether it is still there.

    It may have been removed between its making and the lock, by who saw it without one: then make
    another.  Where the file system has no locks, none is held.
    """
    try:
        handle = _locked(path)
    except FileNotFoundError:
        yield False
        return
    try:
        yield handle is None or _is_there(handle, path)
    finally:
        _unlock(handle)


def remove(path: Path) -> None:
    """Remove a file or directory, as far as that can be done."""
    # An empty directory at once: to look into it takes a descriptor, which may be what is lacking.
    for way in (path.unlink, path.rmdir):
        with suppress(OSError):
            way()
            return
    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def temporary_directory(what: str) -> Iterator[Path]:
    """A folder in the system's place for temporary files, removed when the block ends.

    Those that killed processes of this user left there are removed first.
    what: it is for, a part of its name.
    Raises UserError where none can be made, or nothing more can be written to it.
    """
    try:
        place = Path(tempfile.gettempdir()).resolve()
    except OSError as error:
        raise UserError(
            "there is no place for temporary files; set TMPDIR to a folder that can be written"
        ) from error
    with ExitStack() as stack:
        try:
            target = place / f"tk-spacy-{what}"
            path = stack.enter_context(temporary_beside(target, directory=True))
        except OSError as error:
            raise UserError(_no_room(place, error)) from error
        try:
            yield path
        except OSError as error:
            if isinstance(error, BrokenPipeError) or not is_about(error, path):
                raise
            raise UserError(_no_room(place, error)) from error


def _no_room(place: Path, error: OSError) -> str:
    return (
        f"{place}: a temporary file cannot be written: {error.strerror or error}; free some space "
        "there, or set TMPDIR to another folder"
    )


def clear_leftovers(target: Path) -> None:
    """Remove what killed processes left beside `target`; a folder is listed once a process.

    Where two steps were needed to replace a directory and the process was killed between them, the
    old one gets its name back.
    """
    left = _leftovers(target.parent).pop(_stem(target), ())
    # Newest first: the one that was moved away last is the one to come back.
    for path in sorted(left, reverse=True):
        _clear(path, target)


def clear_all_leftovers(folder: Path) -> None:
    """The same for whatever lies in a folder that is ours alone, at any depth."""
    for path in sorted(folder.rglob(".*.*"), reverse=True):
        found = _MADE.fullmatch(path.name)
        if found is not None:
            _clear(path, None)


def _leftovers(folder: Path) -> dict[str, list[Path]]:
    if folder not in _LISTED:
        names: dict[str, list[Path]] = {}
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                found = _MADE.fullmatch(entry.name)
                if found is not None:
                    names.setdefault(found["name"], []).append(folder / entry.name)
        _LISTED[folder] = names
    return _LISTED[folder]


def _clear(path: Path, target: Path | None) -> None:
    """Remove what nobody holds, or give it its name back, where `target` is not None.

    Whatever cannot be done stays for the next time.
    """
    found = _MADE.fullmatch(path.name)
    assert found is not None
    with suppress(OSError):
        about = path.lstat()
        # In a place for all users others may put what looks like ours.
        if not (stat.S_ISDIR(about.st_mode) or stat.S_ISREG(about.st_mode)) or _is_others(about):
            return
        if found["host"] == _host() and _is_at_work(int(found["pid"])):
            return
        handle = _locked(path, only_free=True)
        try:
            # Without a lock another host's work cannot be told from what it left.
            if handle is None and found["host"] != _host():
                return
            if handle is not None and not _is_there(handle, path):
                return
            if target is not None and found["kind"] == "old" and not os.path.lexists(target):
                path.rename(target)
            else:
                remove(path)
        finally:
            _unlock(handle)


def _is_others(about: os.stat_result) -> bool:
    return hasattr(os, "getuid") and about.st_uid != os.getuid()


def _is_at_work(pid: int) -> bool:
    if pid == os.getpid():
        # An earlier process of this number, as in a container's next start, has no lock; this one's
        # own files have.
        return fcntl is None
    import psutil  # noqa: PLC0415  (only where something was left)

    return bool(psutil.pid_exists(pid))


def _locked(path: Path, *, only_free: bool = False) -> int | None:
    """A descriptor that holds a lock, None where the file system has none.

    A descriptor of its own, closed in forked processes: they may outlive this one for a moment.
    Raises BlockingIOError where `only_free` and another holds it; OSError where it is gone.
    """
    if fcntl is None:
        return None
    handle = os.open(path, os.O_RDONLY | _CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (fcntl.LOCK_NB if only_free else 0))
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:
        os.close(handle)
        return None
    _LOCKS.add(handle)
    return handle


def _unlock(handle: int | None) -> None:
    if handle in _LOCKS:
        _LOCKS.remove(handle)
        os.close(handle)


def _forget_locks() -> None:
    while _LOCKS:
        os.close(_LOCKS.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def _is_there(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


def _stem(target: Path) -> str:
    name = os.fsencode(target.name)
    if len(name) <= MOST_BYTES:
        return target.name
    return hashlib.sha256(name).hexdigest()


@cache
def _host() -> str:
    """Tells the places in which a process's number means the same process: 8 hexadecimal digits."""
    place = socket.gethostname()
    with suppress(OSError):
        place += str(Path("/proc/self/ns/pid").readlink())  # containers may share a host's name
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:8]
