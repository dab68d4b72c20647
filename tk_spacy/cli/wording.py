"""What the library says, in the words of the command line.

The library names its arguments, in brackets where they are the cure: "(overwrite)".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tk_spacy.errors import OptionError, SettingError

OPTIONS = {
    "overwrite": "--overwrite",
    "arcs_only": "--arcs-only",
    "parser_files": "--parser-file",
    "candidates": "--candidates",
    "cross_validation": "--set training.cross_validation=true",
    "scheme": "--scheme",
    "memory": "--memory",
    "min_count": "--min-count",
    "lists": "--lists",
    "dev": "--dev",
    "dev_lists": "--dev-lists",
    "test": "--test",
    "test_lists": "--test-lists",
    "workdir": "--workdir",
    "n_threads": "--threads",
}

NEEDED = {"train": "TREEBANK", "output": "--output"}
"""What the settings without a default are called, in [paths]."""

_ARGUMENT = re.compile(rf"\(({'|'.join(OPTIONS)})\)")
_NEEDED = re.compile(rf"\bno paths\.({'|'.join(NEEDED)}) is given")


@contextmanager
def of_options() -> Iterator[None]:
    """Settings that are refused ("min_count is 0; ...") are named as the options that set them."""
    try:
        yield
    except SettingError as error:
        option = f"--{error.setting.replace('_', '-')}"
        raise OptionError(f"{option} {error.reason}") from error


def as_options(text: str) -> str:
    """The text with the options of the command line in place of arguments in brackets."""
    text = _NEEDED.sub(lambda match: f"no {NEEDED[match[1]]} is given", text)
    return _ARGUMENT.sub(lambda match: f"({OPTIONS[match[1]]})", text)
