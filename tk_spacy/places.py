"""Where a training reads and writes: checks that need no reading, and the work directory."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.files import check_replaceable

WORK_MARK = "tk-spacy-work"
"""A file that tells a work directory, which is removed at success, from any other."""


def check_output(path: Path, *, overwrite: bool) -> None:
    """Raises UserError unless a model directory can be written there."""
    if path.exists() or path.is_symlink():
        if not path.is_dir():
            raise UserError(f"{path}: a file stands where the model directory is to be written")
        if any(path.iterdir()):
            if not overwrite:
                raise UserError(f"{path}: exists already; use --overwrite to replace it")
            check_replaceable(path)
    if path.is_mount():
        raise UserError(f"{path}: a mount point cannot be replaced; choose a directory inside it")
    check_writable(path)


def check_work_directory(path: Path) -> None:
    """Raises UserError unless work can be kept there."""
    if path.exists():
        if not path.is_dir():
            raise UserError(f"{path}: a file stands where the work directory is to be")
        if any(path.iterdir()) and not (path / WORK_MARK).is_file():
            raise UserError(
                f"{path}: is not empty and no work directory of a training; choose another one"
            )
    check_writable(path / WORK_MARK)


def check_outside(output: Path, kept: Iterable[Path]) -> None:
    """Raises UserError where something to keep lies in the output, which is replaced as a whole."""
    for path in kept:
        if path.resolve().is_relative_to(output.resolve()):
            raise UserError(f"{path}: lies in the output {output}; choose another output")


def check_writable(path: Path) -> None:
    """Raises UserError unless something can be made at `path`; leaves nothing behind."""
    place = path.resolve()
    parent = place.parent
    while not parent.exists():
        parent = parent.parent
    try:
        # As long a name as `replace_directory` will make.
        Path(tempfile.mkdtemp(prefix=f".{place.name}.old.", dir=parent)).rmdir()
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {parent}: {error.strerror}") from error


def check_different(paths: dict[str, Path]) -> None:
    """Raises UserError where two parts are the same file, or files with the same content."""
    seen: dict[str, str] = {}
    for name, path in paths.items():
        key = fingerprint(path)
        if key in seen:
            raise UserError(
                f"{path}: {name} is the same as {seen[key]}; scores on it would mean nothing, "
                "give another file"
            )
        seen[key] = name


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


def enter_work_directory(path: Path) -> None:
    """Make the work directory, or take up the work there; what fits no more is made anew."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / WORK_MARK).touch()
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
