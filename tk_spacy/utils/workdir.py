"""Where a training reads and writes: checks that need no reading, and the work directory."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.utils.atomic_files import STDOUT, check_replaceable
from tk_spacy.utils.leftovers import clear_all_leftovers, temporary_beside
from tk_spacy.utils.write_errors import cure_of

try:
    import fcntl
except ImportError:  # Windows: nothing keeps two trainings apart there
    fcntl = None  # type: ignore[assignment]

WORK_MARK = "tk-spacy-work"
"""A file that tells a work directory, which is removed at success, from any other.

Who works there holds a lock on it, which the system lifts when the process ends, however it ends.
"""


def check_output(path: Path, *, overwrite: bool) -> None:
    """Raises UserError unless a model directory can be written there."""
    if path == Path(STDOUT):
        raise UserError(
            f"{path}: a model is a directory, which cannot go to standard output; give its name"
        )
    check_name(path)
    if path.exists() or path.is_symlink():
        if not path.is_dir():
            raise UserError(f"{path}: a file stands where the model directory is to be written")
        if any(path.iterdir()):
            if not overwrite:
                raise UserError(f"{path}: exists already; replaced only on demand (overwrite)")
            check_replaceable(path)
    if path.is_mount():
        raise UserError(f"{path}: a mount point cannot be replaced; choose a directory inside it")
    check_writable(path)


def check_work_directory(path: Path) -> None:
    """Raises UserError unless work can be kept there, and nobody works there now."""
    check_name(path)
    if path.exists():
        if not path.is_dir():
            raise UserError(f"{path}: a file stands where the work directory is to be")
        if any(path.iterdir()) and not (path / WORK_MARK).is_file():
            raise UserError(
                f"{path}: is not empty and no work directory of a training; choose another one"
            )
    check_writable(path / WORK_MARK)
    with suppress(FileNotFoundError), (path / WORK_MARK).open("rb") as mark:
        _lock(mark.fileno(), path, shared=True)


def check_outside(output: Path, kept: Iterable[Path]) -> None:
    """Raises UserError where something to keep lies in the output, which is replaced as a whole."""
    for path in kept:
        if path.resolve().is_relative_to(output.resolve()):
            raise UserError(f"{path}: lies in the output {output}; choose another output")


def check_name(path: Path) -> None:
    """Raises UserError for a name that no file can have, such as one that is too long."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass  # which others look at
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; {cure_of(error)}") from error


def check_writable(path: Path) -> None:
    """Raises UserError unless something can be made at `path`; leaves nothing behind."""
    place = path.resolve()
    parent = place.parent
    while not parent.exists():
        parent = parent.parent
    try:
        # As long a name as `replace_directory` will make.
        with temporary_beside(parent / place.name, directory=True):
            pass
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written: {parent}: {error.strerror}; {cure_of(error)}"
        ) from error


def check_different(paths: Mapping[str, Path | Sequence[Path]]) -> None:
    """Raises UserError where two parts, or two files of a part, are or hold the same.

    paths: the file of each part, or its files.
    """
    seen: dict[str, tuple[str, Path]] = {}
    for name, given in paths.items():
        for path in [given] if isinstance(given, Path) else given:
            key = fingerprint(path)
            if key not in seen:
                seen[key] = name, path
                continue
            part, other = seen[key]
            if part == name:
                raise UserError(
                    f"{path}: is the same as {other}, and both are {name}: its sentences would "
                    "count twice, leave one out"
                )
            raise UserError(
                f"{path}: {name} is the same as {part}; scores on it would mean nothing, give "
                "another file"
            )


def check_regular(path: Path) -> None:
    """Raises UserError for a pipe or device: a file that is read more than once is none."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UserError(f"{path}: a pipe or device, which can be read only once; give a file")


def fingerprint(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(
            f"{path}: cannot read it: {error.strerror}; give a CoNLL-U file that exists"
        ) from error


@contextmanager
def work_directory(path: Path) -> Iterator[None]:
    """Make the work directory, or take up the work there, and keep others out until the block ends.

    Raises UserError where another training works there.
    """
    while True:
        mark = _open_mark(path)
        try:
            _lock(mark, path)
            if not _is_there(mark, path):
                continue  # its owner removed it, at success, before we had the lock
            clear_all_leftovers(path)
            yield
            return
        finally:
            os.close(mark)


def _open_mark(path: Path) -> int:
    try:
        path.mkdir(parents=True, exist_ok=True)
        return os.open(path / WORK_MARK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; {cure_of(error)}") from error


def _is_there(mark: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(mark), (path / WORK_MARK).stat())
    except OSError:
        return False


def _lock(mark: int, path: Path, *, shared: bool = False) -> None:
    """Lock the mark of a work directory, until it is closed.

    shared: only see whether somebody has locked it.
    Raises UserError where somebody has.
    """
    if fcntl is None:
        return
    try:
        fcntl.flock(mark, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        # Other errors: a file system without locks.
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise UserError(
                f"{path}: another training works here; wait until it is over, or choose another "
                "work directory"
            ) from error
