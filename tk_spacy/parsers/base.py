"""What a parser is: a kind of parser that can be trained, kept in a directory, and opened again.

Parsers that differ see a sentence differently: their lists are joined, and each scores every tree
(see `merging`).  A `ParserSpec` is plain data, since the folds of the jackknife run in processes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.serialization import StoredModel

Sentences = Sequence[Sentence]

StepReport = Callable[[int, int], None]
"""Called with the steps of a training that are done, and their number."""


def columns_read(sources: Iterable[ParserSource]) -> set[str]:
    """The columns of CoNLL-U beside FORM that sources have learnt to read.

    A source says so by an attribute `columns`; one without it reads none.
    """
    return {name for source in sources for name in getattr(source, "columns", ())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all parsers of one training share.

    seed: where a parser has none of its own.  search: of spaCy's parser, see `SpacySource`.
    xpos: whether the parsers may read the XPOS column.
    """

    seed: int = 0
    search: str = "discrepancy"
    xpos: bool = True


class Settings(Protocol):
    """The settings of a parser, all of them checked."""

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        ...


class StoredParser(StoredModel):
    """A trained parser of ours: it parses sentences, and is stored as any model is.

    settings: as trained.  about: further facts for meta.json, JSON values.
    """

    __slots__ = ()

    settings: Any
    about: Mapping[str, Any]

    if TYPE_CHECKING:  # a field of some, a property of others

        @property
        def labels(self) -> tuple[str, ...]:
            """The DEPREL values that it can give."""

    @abstractmethod
    def parse(
        self, sentences: Sequence[Sentence], *, n_threads: int | None = None
    ) -> Iterator[tuple[NDArray[np.int32], tuple[str, ...]]]:
        """Heads, 1..n with 0 for the root, and relations of each sentence, in order."""

    def facts(self) -> dict[str, Any]:
        """What `tk-spacy info` tells of it beside settings and labels, JSON values."""
        return {}


@runtime_checkable
class Joins(Protocol):
    """A class of parsers several of which can be one, whose scores are the means of theirs."""

    def joined(self, parsers: Sequence[Any]) -> StoredParser | None:
        """Those parsers as one; None where they differ in more than their seeds."""
        ...


class Trainable(Protocol):
    """What is trained from sentences into a directory: a parser, a tagger, a tokenizer.

    kind: name of its kind.  name: as a user asks for it.
    given: whether it is there already, so that `train` has nothing to do.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102  (said above)

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def given(self) -> bool: ...  # noqa: D102

    def about(self) -> dict[str, Any]:
        """The settings for the model's own description, JSON values."""
        ...

    def training_key(self) -> list[Any]:
        """All that the result of a training depends on beside its sentences, JSON values."""
        ...

    def check(self, sentences: Sequence[Sentence]) -> None:
        """Raises UserError, naming the place, for a sentence that it cannot learn from."""
        ...

    def seconds(self, words: int) -> float:
        """About how long a training on so many words takes on one core.

        Long ones are begun first, and a user is told beforehand what a training costs.
        """
        ...

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        """Train and write the result into a directory, which is there and empty.

        dev may be empty: then nothing is stopped early.  The result does not depend on n_threads.
        """
        ...


class ParserSpec(Trainable, Protocol):
    """A parser to be trained: its kind and settings.

    sources: what its scores are called in lists.
    """

    @property
    def sources(self) -> tuple[str, ...]: ...  # noqa: D102

    def search_key(self) -> list[Any]:
        """All that lists depend on beside the trained parser and k, JSON values."""
        ...

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> ParserSource:
        """The parser that `train` wrote."""
        ...
