"""Writing so that a crash leaves the old output or none."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from tk_spacy.errors import TreebankError, UserError
from tk_spacy.utils.leftovers import new_name, temporary_beside
from tk_spacy.utils.write_errors import cure_of, is_about

META, RECORD = "meta.json", "training.json"
"""Files that tell what we (and spaCy) write from any other directory."""


@contextmanager
def replace_directory(path: Path) -> Iterator[Path]:
    """A temporary sibling directory that takes the place of `path` when the block ends well.

    Raises UserError where the place cannot be written, or holds what is not ours to remove.
    """
    # Through symbolic links: a link cannot change places with a directory.
    path = path.resolve()
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: a file stands where a directory is to be written")
    check_replaceable(path)
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = stack.enter_context(temporary_beside(path, directory=True))
        except OSError as error:
            raise UserError(
                f"{path}: cannot be written: {error.strerror}; {cure_of(error)}"
            ) from error
        try:
            yield temporary
            # Made private; a model is as readable as any other directory.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o777 & ~umask)
        except OSError as error:
            if isinstance(error, BrokenPipeError) or not is_about(error, temporary):
                raise
            raise UserError(
                f"{path}: cannot be written: {error.strerror or error}; {cure_of(error)}"
            ) from error
        _take_place(temporary, path)


def _take_place(new: Path, path: Path) -> None:
    """Give a directory its name; what stood there is removed, or has the other name then."""
    old = None
    try:
        if path.exists():
            if exchange(new, path):
                return
            old = new_name(path, kind="old")
            path.replace(old)
        new.replace(path)
    except OSError as error:
        if old is not None and not path.exists() and old.exists():
            old.replace(path)
        raise UserError(
            f"{path}: cannot be written: {error.strerror} (by another process meanwhile?); try "
            "again"
        ) from error
    finally:
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; False where the system cannot.

    Raises OSError where it could, but one of them cannot be renamed.
    """
    import ctypes  # noqa: PLC0415  (only where a directory is replaced)

    names = os.fsencode(one), os.fsencode(other)
    try:
        system = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            failed = system.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)
        elif sys.platform == "darwin":
            failed = system.renamex_np(*names, _EXCHANGE)
        else:
            return False
    except (AttributeError, OSError, TypeError):  # an older library, or none
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    # The file system knows no exchange, or a sandbox forbids the call.
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM):
        return False
    raise OSError(code, os.strerror(code), str(other))


_HERE = -100
"""Relative to the current directory, AT_FDCWD in <fcntl.h> of Linux."""
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS."""


def check_replaceable(path: Path) -> None:
    """Raises UserError for a directory that nobody would want to lose for a model's sake.

    An empty one may be replaced, a model or a kept training, and whatever lies in a pipeline.
    """
    path = path.resolve()
    if not path.is_dir() or not any(path.iterdir()):
        return
    if not (is_model(path) or is_model(path.parent) or (path / RECORD).is_file()):
        raise UserError(
            f"{path}: holds something other than a model; it is not overwritten, choose another "
            "output"
        )
    if Path.cwd().is_relative_to(path):
        raise UserError(
            f"{path}: is, or holds, the current directory, which is not replaced; choose another "
            "output, or go elsewhere"
        )


def is_model(path: Path) -> bool:
    """Whether a directory is a model of ours or a spaCy pipeline, perhaps a damaged one."""
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except OSError:
        return False
    except (ValueError, RecursionError):
        return True
    return isinstance(meta, dict) and ("spacy_version" in meta or "format_version" in meta)


STDOUT = "-"
"""A path to write to that stands for standard output."""

_STDOUTS = (STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def names_stdout(path: str | os.PathLike[str]) -> bool:
    """Whether a path stands for standard output: the file behind it is not ours to replace."""
    return os.fspath(path) in _STDOUTS


@contextmanager
def atomic_output(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes its name when closed without error; else nothing is left.

    STDOUT is written to as the content comes.
    """
    if names_stdout(path):
        try:
            sys.stdout.flush()
            yield sys.stdout.buffer
            # Not later, when the interpreter ends and nobody can tell the user of a full disk.
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise  # whoever reads it has enough
        except OSError as error:
            raise TreebankError("standard output", 0, f"{error.strerror or error}") from error
        return
    target = Path(os.path.realpath(path))
    held: Path | None = None
    try:
        # As it was named: of a pipe's /dev/fd/63 the real path is no path.
        named = Path(path)
        if named.exists() and not named.is_file() and not named.is_dir():
            with named.open("wb") as out:  # a device or pipe cannot be replaced
                yield out
            return
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        with temporary_beside(target) as temporary:
            held = temporary
            with temporary.open("wb") as out:
                yield out
            temporary.replace(target)
    except OSError as error:
        # What was raised within may be of a file that is read, or of a reader who left.
        if held is not None and (isinstance(error, BrokenPipeError) or not is_about(error, held)):
            raise
        reason = error.strerror or str(error)
        raise TreebankError(path, 0, f"cannot write it: {reason}; {cure_of(error)}") from error
