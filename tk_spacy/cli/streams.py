"""Standard input and output as files: "-" in their place."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tk_spacy.errors import OptionError, UserError
from tk_spacy.treebank.opened import STDIN, STDIN_NAME
from tk_spacy.treebank.text_files import file_start, looks_like_conllu
from tk_spacy.utils.leftovers import temporary_directory

READER_LEFT = 141
"""Exit code, as a shell gives it to a program that SIGPIPE ended."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Paths as the user named them, with standard input in a file.

    spooled: that file, None where standard input is not among them.
    """

    paths: list[Path]
    spooled: Path | None = None

    def named(self, text: str) -> str:
        """A text about the paths, with standard input called so."""
        return text if self.spooled is None else text.replace(str(self.spooled), STDIN_NAME)


@contextmanager
def standard_input(paths: Sequence[Path]) -> Iterator[Inputs]:
    """Standard input, where it is among the paths, as a file for the time of the block.

    It is read whole at once, to disk, because commands look into a file before they work on it.
    UserErrors of the block call it by its name.
    """
    times = sum(path == Path(STDIN) for path in paths)
    if not times:
        yield Inputs(list(paths))
        return
    if times > 1:
        raise OptionError(
            f"{STDIN} (standard input) is named {times} times, but can be read only once; give a "
            "file in its place"
        )
    if sys.stdin is None:
        raise UserError(f"{STDIN_NAME}: is closed; send something to it, or give a file")
    with temporary_directory("stdin") as directory:
        file = directory / "stdin.conllu"
        try:
            with file.open("wb") as out:
                shutil.copyfileobj(sys.stdin.buffer, out)
        except OSError as error:
            raise UserError(f"{STDIN_NAME}: cannot read it: {error.strerror or error}") from error
        if looks_like_conllu(file_start(file)) is False:
            file = file.rename(file.with_suffix(".txt"))
        inputs = Inputs([file if path == Path(STDIN) else path for path in paths], file)
        try:
            yield inputs
        except UserError as error:
            if str(file) not in str(error):
                raise
            raise UserError(inputs.named(str(error))) from error


@contextmanager
def standard_streams() -> Iterator[None]:
    """For the whole of the program: streams that are closed, or whose reader leaves.

    Ends the program when the block ends.
    """
    _occupy()
    stdout, code = sys.stdout, 0
    try:
        yield
    except SystemExit as stop:
        # rich and typer exit with 1 where a reader has left.
        left = isinstance(stop.__context__, BrokenPipeError)
        code = READER_LEFT if left else stop.code  # type: ignore[assignment]
    # Not when the interpreter ends, which could only tell of it in a traceback.
    try:
        stdout.flush()
    except BrokenPipeError:
        code = READER_LEFT
        _forget(stdout)
    except OSError as error:
        if not code:
            sys.stderr.write(f"Error: standard output: cannot write it: {error.strerror}\n")
        code = code or 1
        _forget(stdout)
    sys.exit(code)


def _occupy() -> None:
    """Keep files that will be opened from getting the numbers of streams that are closed."""
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # gets the lowest number that is free
    # What goes to a closed stdout fails, as everywhere; what goes to stderr is lost.
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")


def _forget(stream: TextIO) -> None:
    """Let what is still to be written to a stream go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
