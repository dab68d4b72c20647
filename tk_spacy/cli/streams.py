"""Standard input and output as files: "-" in their place."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.utils.atomic_files import STDOUT

STDIN = "-"
STDIN_NAME = "standard input"


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
    if Path(STDIN) not in paths:
        yield Inputs(list(paths))
        return
    with tempfile.TemporaryDirectory(prefix="tk-spacy-") as directory:
        file = Path(directory) / "stdin.conllu"
        with file.open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out)
        inputs = Inputs([file if path == Path(STDIN) else path for path in paths], file)
        try:
            yield inputs
        except UserError as error:
            if str(file) not in str(error):
                raise
            raise UserError(inputs.named(str(error))) from error


def is_stdout(path: Path) -> bool:
    """Whether an output goes to standard output."""
    return path == Path(STDOUT)
