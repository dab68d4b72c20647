"""What all commands share: where output goes, how errors end a command, common options.

Results go to stdout, everything else to stderr; results too where stdout is a command's output
file.  With --json stdout holds exactly one JSON document, {"error": TEXT} where the command failed.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from tk_spacy.cli.logs import show_logs
from tk_spacy.cli.wording import as_options
from tk_spacy.errors import OptionError, UserError
from tk_spacy.utils.tables import Table
from tk_spacy.utils.write_errors import cure_of

Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bars and no notes; errors still show.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON document on stdout.")
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        help="Threads for scoring; the results do not depend on it.",
        show_default="all cores",
    ),
]

EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143


class Shell:
    """Output of one command in the mode that the user chose.

    stdout_taken: whether the command writes a file to stdout.
    """

    def __init__(
        self, *, quiet: bool = False, as_json: bool = False, stdout_taken: bool = False
    ) -> None:
        self.quiet, self.as_json = quiet, as_json
        self._stdout_taken = stdout_taken
        for stream in (sys.stdout, sys.stderr):
            # A file's name need not be text, nor every text fit the terminal: escaped, not fatal.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        # Made here, not at import: stdout and stderr may be replaced in between.
        # Names are shown as they are: in file:a:b there is no picture of a letter meant.
        self.err = Console(stderr=True, emoji=False)
        self.out = Console(width=_width(sys.stdout), emoji=False)
        if stdout_taken:
            self.out = Console(stderr=True, width=_width(sys.stderr), quiet=quiet, emoji=False)
        show_logs(self.warn, self.error)

    def result(self, tables: Iterable[Table], document: Mapping[str, Any]) -> None:
        """Show a result: the tables, or the document with --json."""
        if self.as_json:
            self._json(document)
            return
        with self._named():
            for i, table in enumerate(tables):
                if i:
                    self.out.print()
                self.out.print(table)

    def say(self, text: str) -> None:
        """A line of the result that people read; not shown with --json."""
        if not self.as_json:
            with self._named():
                self.out.print(text, markup=False, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """A line beside the result, on stderr."""
        if not self.quiet:
            self._line(text)

    def warn(self, text: str) -> None:
        """A warning, on stderr."""
        if not self.quiet:
            self._line(f"Warning: {text}", style="yellow")

    def error(self, text: str) -> None:
        """An error that does not end the command at once, on stderr; shown in every mode."""
        self._line(f"Error: {as_options(text)}", style="bold red")

    @contextmanager
    def guard(self, *, on_interrupt: Callable[[], str] = str) -> Iterator[None]:
        """End the command with one line where the user made a mistake or pressed Ctrl-C.

        on_interrupt: what to tell in the latter case, e.g. how to resume.
        """
        try:
            if self._stdout_taken and self.as_json:
                raise OptionError(
                    "--json prints to standard output, where -o - writes the trees; give the trees "
                    "a file, or leave --json out"
                )
            with _stoppable():
                yield
        except UserError as error:
            self._fail(str(error), EXIT_USAGE if isinstance(error, OptionError) else EXIT_ERROR)
        except BrokenPipeError:
            raise  # whoever read our stdout has left: click ends the program quietly
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            cure = cure_of(error, otherwise="")
            self._fail(f"{place}{error.strerror or error}{f'; {cure}' if cure else ''}", EXIT_ERROR)
        except MemoryError as error:
            self._fail(
                f"out of memory{f' ({error})' if str(error) else ''}; ask for less at a time "
                "(candidates, threads, processes, bits), or use a larger machine",
                EXIT_ERROR,
            )
        except KeyboardInterrupt as stop:
            how, code = (
                ("terminated", EXIT_TERMINATED)
                if stop.args
                else (
                    "interrupted",
                    EXIT_INTERRUPTED,
                )
            )
            hint = on_interrupt()
            self._fail(f"{how}; {hint}" if hint else how, code)

    def _fail(self, text: str, code: int) -> None:
        line = as_options(" ".join(text.split()))
        self.error(line)
        if self.as_json:
            with suppress(OSError, UserError):  # a full disk has no place for that either
                self._json({"error": line})
        raise typer.Exit(code)

    def _line(self, text: str, style: str = "") -> None:
        self.err.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def _json(self, document: Mapping[str, Any]) -> None:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:
            text = json.dumps(document, indent=2, allow_nan=False)
        with self._named():
            typer.echo(text)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Where the result cannot be written, say so: such an error knows no file name."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            place = "standard error" if self._stdout_taken else "standard output"
            raise UserError(
                f"{place}: cannot write it: {error.strerror or error}; write it elsewhere"
            ) from error


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end a command as Ctrl-C does, with its child processes."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    names = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(name, _stop) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt("terminated")


def _width(stream: Any) -> int | None:
    """Tables are cut to a terminal, but never to the 80 columns that rich takes a pipe for."""
    return None if stream.isatty() or "COLUMNS" in os.environ else 120


def split(text: str) -> tuple[str, ...]:
    """The items of a comma-separated option; "none" and "" are no items."""
    items = tuple(item.strip() for item in text.split(",") if item.strip())
    return () if items == ("none",) else items
