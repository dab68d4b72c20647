"""What the library says, in the words of the command line.

The library names its arguments, in brackets where they are the cure: "(overwrite)".
"""

from __future__ import annotations

import re

OPTIONS = {
    "overwrite": "--overwrite",
    "arcs_only": "--arcs-only",
    "parser_files": "--parser-file",
    "candidates": "--candidates",
    "cross_validation": "--set training.cross_validation=true",
}

NEEDED = {"train": "TREEBANK", "output": "--output"}
"""What the settings without a default are called, in [paths]."""

_ARGUMENT = re.compile(rf"\(({'|'.join(OPTIONS)})\)")
_NEEDED = re.compile(rf"\bno paths\.({'|'.join(NEEDED)}) is given")


def as_options(text: str) -> str:
    """The text with the options of the command line in place of arguments in brackets."""
    text = _NEEDED.sub(lambda match: f"no {NEEDED[match[1]]} is given", text)
    return _ARGUMENT.sub(lambda match: f"({OPTIONS[match[1]]})", text)
