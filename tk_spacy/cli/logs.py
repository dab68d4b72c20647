"""What the library logs, among the lines of a command."""

from __future__ import annotations

import logging
from collections.abc import Callable

LOGGER = "tk_spacy"


class LogLines(logging.Handler):
    """Shows warnings as warnings of the command, and errors as errors."""

    def __init__(self, warn: Callable[[str], None], error: Callable[[str], None]) -> None:
        super().__init__(level=logging.WARNING)
        self._warn, self._error = warn, error

    def emit(self, record: logging.LogRecord) -> None:
        """Show it."""
        show = self._error if record.levelno >= logging.ERROR else self._warn
        show(" ".join(self.format(record).split()))


def show_logs(warn: Callable[[str], None], error: Callable[[str], None]) -> None:
    """From now on the library's log goes through these lines, no other command's."""
    logger = logging.getLogger(LOGGER)
    logger.handlers = [h for h in logger.handlers if not isinstance(h, LogLines)]
    logger.addHandler(LogLines(warn, error))
