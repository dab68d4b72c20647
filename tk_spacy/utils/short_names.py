"""Paths as readers see them: the file's name, and of its folders what tells it from others.

A page is handed on; who gets it needs no folders of another machine, and they make tables wide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath


def short_names(paths: Sequence[str]) -> list[str]:
    """Each path's name, with as many folders before it as no other one of the paths ends in.

    A path that is there several times has one name.
    """
    parts = {path: PurePath(path).parts or (path,) for path in paths}

    def name(path: str) -> str:
        own = parts[path]
        others = [other for text, other in parts.items() if text != path]
        for n in range(1, len(own)):
            if all(other[-n:] != own[-n:] for other in others):
                return "/".join(own[-n:])
        return path

    return [name(path) for path in paths]


def shortened(text: str, names: Mapping[str, str]) -> str:
    """A text about paths with their short names; names: of the paths."""
    for path in sorted(names, key=len, reverse=True):
        text = text.replace(path, names[path])
    return text
