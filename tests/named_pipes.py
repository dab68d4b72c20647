"""Named pipes that hold a file's text for whoever opens them first, and nothing afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread


@contextmanager
def pipe(path: Path, data: bytes) -> Iterator[Path]:
    """A pipe at `path`: who opens it a second time reads an empty file, rather than hang."""
    os.mkfifo(path)
    ends = Event()

    def serve() -> None:
        left = data
        while not ends.is_set():
            with suppress(BrokenPipeError), path.open("wb") as file:
                file.write(left)
            left = b""

    writer = Thread(target=serve, daemon=True)
    writer.start()
    try:
        yield path
    finally:
        ends.set()
        while writer.is_alive():  # it waits for a reader
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            writer.join(0.01)
        path.unlink()
