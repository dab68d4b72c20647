"""Where an audit writes: checks before it begins, and files written whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tk_spacy.errors import OptionError, UserError
from tk_spacy.utils.atomic_files import atomic_output, names_stdout
from tk_spacy.utils.workdir import check_writable

FORMS = (".tsv", ".json", ".html")
"""Endings of files that an audit writes."""


def check_outputs(outputs: Sequence[Path], read: Mapping[Path, str]) -> None:
    """Raises UserError unless all outputs can be written, each a form of its own place.

    read: files that are read, and what they are.
    """
    known: dict[str, Path] = {}
    for output in outputs:
        if output.suffix not in FORMS:
            forms = f"{', '.join(FORMS[:-1])} or {FORMS[-1]}"
            raise OptionError(f"output is {output}; give a name that ends in {forms}")
        # Links lead to one file, which would be written twice.
        other = known.setdefault(os.path.realpath(output), output)
        if other is not output:
            raise OptionError(f"{output}: is the same output as {other}; name each once")
    for output in outputs:
        check_place(output, read)


def check_place(output: Path, read: Mapping[Path, str]) -> None:
    """Raises UserError where the output cannot be written, or is a file that is read."""
    if names_stdout(output):
        return
    for path, what in read.items():
        if output.exists() and path.exists() and output.samefile(path):
            raise UserError(f"{output}: is {what} itself; write the output elsewhere")
    if output.is_dir():
        raise UserError(f"{output}: cannot be written: it is a directory; give the name of a file")
    check_writable(output)


def write_outputs(texts: Mapping[Path, Iterator[str]]) -> None:
    """Write each file in parts; none takes its name before all are written.

    Raises TreebankError where one cannot be written.
    """
    for path in texts:
        path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:
        for path, parts in texts.items():
            out = files.enter_context(atomic_output(path))
            for part in parts:
                out.write(part.encode())
            out.flush()
