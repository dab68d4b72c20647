"""How long work tells whoever started it where it stands."""

from __future__ import annotations


class Progress:
    """Receives the progress of a command; this one ignores it.

    A stage begins, may report how many of its steps are done, and ends or fails.  Stages do not
    overlap.
    """

    def begin(self, stage: str) -> None:
        """A stage begins."""

    def update(self, stage: str, done: int, total: int) -> None:
        """So many of a stage's steps are done; a stage may have several names within it."""

    def end(self, stage: str) -> None:
        """A stage has ended well; of one that fails nothing more is heard."""

    def warn(self, text: str) -> None:
        """Something the user should know, one line."""
