"""How tasks and files get to another machine: paths that are found there, files as bytes."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import shutil
import threading
from collections.abc import Collection, Mapping
from pathlib import Path, PurePath
from typing import Any

from tk_spacy.parallel.plain_data import PathPickler
from tk_spacy.utils.atomic_files import atomic_output, replace_directory

_PLACE = threading.local()


def pack(value: Any, made: Collection[Path] = ()) -> tuple[bytes, dict[str, str]]:
    """Plain data as bytes in which all paths are absolute; and what they were called, by that.

    made: paths that need not be there yet; another one that is no more than a name is left as it
    is, unless there is such a file: it may be a package's.
    """
    called: dict[str, str] = {}
    new = {os.fspath(path) for path in made}

    def absolute(path: PurePath) -> Any:
        text = str(path)
        bare = len(path.parts) < 2 and not path.is_absolute()
        if bare and text not in new and not Path(text).exists():
            return NotImplemented
        place = absolute_path(path)
        called[place] = text
        return _path, (place,)

    buffer = io.BytesIO()
    PathPickler(buffer, absolute).dump(value)
    return buffer.getvalue(), called


def absolute_path(path: PurePath) -> str:
    """The path from the root on, links as they are: what is called so here is called so there."""
    return os.path.abspath(path)  # noqa: PTH100  (resolve follows links)


def unpack(data: bytes, root: Path | None) -> Any:
    """What `pack` was given; with a root, paths are those below it."""
    _PLACE.root = root
    try:
        return pickle.loads(data)
    finally:
        _PLACE.root = None


def below(root: Path | None, path: str) -> Path:
    """Where a worker has an absolute path."""
    return Path(path) if root is None else root / Path(path).relative_to(Path(path).anchor)


def as_called(text: str, called: Mapping[str, str], root: Path | None) -> str:
    """A message in which paths are what the user called them."""
    for path in sorted(called, key=len, reverse=True):
        text = text.replace(str(below(root, path)), called[path])
    return text


def _path(path: str) -> Path:
    return below(getattr(_PLACE, "root", None), path)


# Files


def pack_files(path: Path) -> bytes | None:
    """A file, or all files of a directory; None where there is neither."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return pickle.dumps([(file.relative_to(path).parts, file.read_bytes()) for file in files])
    return pickle.dumps(path.read_bytes()) if path.is_file() else None


def write_files(path: Path, packed: bytes | None) -> None:
    """Write what `pack_files` packed, whole or not at all; for None, remove it."""
    if packed is None:
        remove(path)
        return
    files = pickle.loads(packed)
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(files, bytes):
        with atomic_output(path) as out:
            out.write(files)
        return
    with replace_directory(path) as directory:
        for parts, content in files:
            file = directory.joinpath(*parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def digest(packed: bytes) -> str:
    """SHA-256 of packed files."""
    return hashlib.sha256(packed).hexdigest()


def remove(path: Path) -> None:
    """Remove a file or directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
