"""Writing so that a crash leaves the old output or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tk_spacy.errors import UserError


@contextmanager
def replace_directory(path: Path) -> Iterator[Path]:
    """A temporary sibling directory that takes the place of `path` when the block ends well.

    Raises UserError where the place cannot be written.
    """
    # Through symbolic links: a link cannot change places with a directory.
    path = path.resolve()
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: a file stands where a directory is to be written")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        yield temporary
        # mkdtemp makes it private; a model is as readable as any other directory.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        old = None
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
            path.replace(old)
        temporary.replace(path)
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
