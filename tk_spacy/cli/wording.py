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
}

_ARGUMENT = re.compile(rf"\(({'|'.join(OPTIONS)})\)")


def as_options(text: str) -> str:
    """The text with the options of the command line in place of arguments in brackets."""
    return _ARGUMENT.sub(lambda match: f"({OPTIONS[match[1]]})", text)
