"""Paths in a model, which must not lead out of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tk_spacy.errors import ModelError

MOST_REPEATED = 64
"""Of what a stored config may ask for in numbers: layers, networks."""

_REPEATED = {"depth", "layers", "n_layers", "networks"}
_READS = {"@readers", "@loggers", "@batchers", "@augmenters"}
"""Functions that are for training, and read files of any place."""
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def check_inside(root: Path) -> None:
    """Raises ModelError where a symbolic link in a model's directory leads out of it."""
    real = root.resolve()
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            check_link(Path(folder, name), real)


def check_inside_model(path: Path, names: Iterable[str]) -> None:
    """The same of a model's files, and of itself where it is a component of a pipeline."""
    if (path.parent / "config.cfg").is_file():
        check_link(path, path.parent.resolve())
    real = path.resolve()
    for name in names:
        check_link(path / name, real)


def check_link(path: Path, real: Path) -> None:
    """The same of one file or folder.  real: the model's directory, resolved."""
    if path.is_symlink() and not path.resolve().is_relative_to(real):
        raise ModelError(
            f"{path}: a symbolic link that leads out of the model, to {path.resolve()}; put what "
            "it leads to in its place"
        )


def leads_out(text: str) -> bool:
    """Whether a text is a path that would lead out of a directory."""
    parts = re.split(r"[\\/]", text)
    is_absolute = len(parts) > 1 and (parts[0] in ("", "~") or bool(_DRIVE.match(text)))
    return is_absolute or ".." in parts


def check_stored_config(config: Mapping[str, Any], name: str) -> None:
    """Raises ValueError for a stored config that would read other files, or make too many layers.

    config: of a model's layers, or of components.  name: of it, for the message.
    """
    for path, value in _values(config, name):
        key = path.rpartition(".")[2]
        if key in _READS:
            raise ValueError(f"{path} is {value!r}, which reads files; a model has none such")
        if isinstance(value, str) and leads_out(value):
            raise ValueError(f"{path} is {value!r}, a path that leads out of the model")
        if key in _REPEATED and isinstance(value, int | float) and not value <= MOST_REPEATED:
            raise ValueError(f"{path} is {value!r}, expected at most {MOST_REPEATED}")


def _values(config: object, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(config, Mapping):
        for key, value in config.items():
            yield from _values(value, f"{path}.{key}")
    elif isinstance(config, list | tuple):
        for value in config:
            yield from _values(value, path)
    else:
        yield path, config
