"""What a parser is: a kind of parser that can be trained, kept in a directory, and opened again.

Parsers that differ see a sentence differently: their lists are joined, and each scores every tree
(see `merging`).  A parser is plain data, since the folds of the jackknife run in processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.treebank.conllu import Sentence

Sentences = Sequence[Sentence]

Report = Callable[[int, int], None]
"""Called with the steps of a training that are done, and their number."""


def columns_read(sources: Iterable[ParserSource]) -> set[str]:
    """The columns of CoNLL-U beside FORM that sources have learnt to read.

    A source says so by an attribute `columns`; one without it reads none.
    """
    return {name for source in sources for name in getattr(source, "columns", ())}


class ParserSpec(Protocol):
    """One kind of parser with its settings.

    name: as a user names it among the parsers.  sources: what its scores are called in lists.
    given: whether the parser is there already, so that `train` has nothing to do.
    """

    @property
    def name(self) -> str: ...  # noqa: D102  (said above)

    @property
    def sources(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def given(self) -> bool: ...  # noqa: D102

    def about(self) -> dict[str, Any]:
        """The settings for the model's own description, JSON values."""
        ...

    def training_key(self) -> list[Any]:
        """All that a trained parser depends on beside its sentences, JSON values."""
        ...

    def search_key(self) -> list[Any]:
        """All that lists depend on beside the trained parser and k, JSON values."""
        ...

    def check(self, sentences: Sequence[Sentence]) -> None:
        """Raises UserError, naming the place, for a sentence that this parser cannot read."""
        ...

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: Report,
    ) -> None:
        """Train a parser and write it into a directory, which is there and empty.

        dev may be empty: then nothing is stopped early.  The result does not depend on n_threads.
        """
        ...

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> ParserSource:
        """The parser that `train` wrote."""
        ...
