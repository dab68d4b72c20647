"""What became of the sentences of a file, or of a part of it: their text, and what was counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tk_spacy.treebank.conllu import NO_BLOCK, Block, Sentence, joined_block
from tk_spacy.treebank.data_notes import FilledColumns
from tk_spacy.treebank.enhanced import DepsCount
from tk_spacy.workflows.files.tagging import FileTags
from tk_spacy.workflows.files.worker import FileResult, Tally


@dataclass(slots=True)
class Part:
    """What became of a batch, or of all of a file so far: plain data, without what made it.

    block: the text that is written.  filled: which columns the sentences had.  deps: what became of
    the column DEPS.  tags: whose tags the words have, None where they are the file's.
    trees: of their lists, where lists are written.  resumed: sentences that an earlier run did.
    """

    block: Block = NO_BLOCK
    tally: Tally = field(default_factory=Tally)
    filled: FilledColumns = field(default_factory=FilledColumns)
    deps: DepsCount = field(default_factory=DepsCount)
    tags: FileTags | None = None
    trees: int = 0
    resumed: int = 0

    def write(self, sentences: Iterable[Sentence]) -> None:
        """Make the block of sentences, which may count on the way; then the counts stand."""
        self.block = joined_block(sentences)
        self.tally.flush()

    def add(self, other: Part) -> None:
        """Count another one, too; the text is not kept."""
        self.tally.add_all(other.tally)
        self.filled.add_all(other.filled)
        self.deps = self.deps + other.deps
        self.trees += other.trees
        if self.tags is not None and other.tags is not None:
            self.tags.add(other.tags)

    def into(self, result: FileResult, columns: Iterable[str]) -> None:
        """Put what was counted into a result; columns: that the model has learnt to read."""
        result.sentences, result.words = self.tally.sentences, self.tally.words
        result.resumed = self.resumed
        result.missing = tuple(self.filled.missing(set(columns)))
        result.deps, result.tags = self.deps, None if self.tags is None else self.tags.note()
