"""The sentences of one file in batches, shared among processes, and what becomes of them written.

A batch is what all steps see together: the tagger, the parsers and the reranker.  The last digits
of a network's numbers depend on which sentences it is given at once, so files are cut in the same
places whatever does the batches, and the results are the same to the last byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TypeVar

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import BATCH_CELLS
from tk_spacy.parallel.batches import MOST_WORDS
from tk_spacy.parallel.executor import TaskError
from tk_spacy.parallel.sharing import in_order
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.treebank.conllu import NO_BLOCK, Block, Sentence, joined_block, write_blocks
from tk_spacy.treebank.data_notes import FilledColumns
from tk_spacy.treebank.enhanced import DepsCount
from tk_spacy.utils.atomic_files import atomic_output
from tk_spacy.workflows.files.tagging import FileTags
from tk_spacy.workflows.files.worker import FileResult, Job, SentenceReport, Tally

T = TypeVar("T")


@dataclass(slots=True)
class Part:
    """What became of a batch, or of all of a file so far: plain data, without what made it.

    block: the text that is written.  filled: which columns the sentences had.  deps: what became of
    the column DEPS.  tags: whose tags the words have, None where they are the file's.
    trees: of their lists, where lists are written.
    """

    block: Block = NO_BLOCK
    tally: Tally = field(default_factory=Tally)
    filled: FilledColumns = field(default_factory=FilledColumns)
    deps: DepsCount = field(default_factory=DepsCount)
    tags: FileTags | None = None
    trees: int = 0

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
        result.missing = tuple(self.filled.missing(set(columns)))
        result.deps, result.tags = self.deps, None if self.tags is None else self.tags.note()


def most_words(trees: int) -> int:
    """How many words a batch of a file may have, whose lists have so many trees at most."""
    return min(MOST_WORDS, BATCH_CELLS // trees)


def write_in_parts(
    job: Job,
    batches: Iterable[list[T]],
    work: Callable[[list[T]], Part],
    *,
    n_threads: int | None,
    report: SentenceReport | None = None,
    tags: FileTags | None = None,
    check: Callable[[Part], None] = lambda whole: None,
    stays: bool = False,
) -> Part:
    """Write what `work` makes of batches, in their order; returns what was counted of all.

    n_threads: processes of one thread each that share the batches, see `parallel.sharing`; None for
        all cores.  stays: whether this process does all.
    tags: of the file, which get what was counted.
    check: is given the whole before the file gets its name, and may refuse.
    Raises UserError where a process was killed.
    """
    whole = Part(tags=tags)
    processes = 1 if stays else effective_n_threads(n_threads)

    def blocks(parts: Iterable[Part]) -> Iterator[Block]:
        for part in parts:
            whole.add(part)
            yield part.block
            if report is not None:
                report(part.tally.sentences)
        check(whole)

    try:
        # Closed whatever happens: where the target cannot be written, no process works on.
        with (
            closing(in_order(batches, work, processes=processes, what=str(job.input))) as parts,
            atomic_output(job.target) as out,
        ):
            write_blocks(out, blocks(parts))
    except TaskError as error:
        if not error.killed:
            raise
        raise UserError(f"{error}; run again with fewer of them (n_threads)") from error
    return whole
