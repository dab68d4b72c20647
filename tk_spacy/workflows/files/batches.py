"""The sentences of one file in batches, shared among processes, and what becomes of them written.

A batch is what all steps see together: the tagger, the parsers and the reranker.  The last digits
of a network's numbers depend on which sentences it is given at once, so files are cut in the same
places whatever does the batches, and the results are the same to the last byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import BATCH_CELLS
from tk_spacy.parallel.batches import MOST_WORDS
from tk_spacy.parallel.executor import TaskError
from tk_spacy.parallel.sharing import in_order
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.treebank.conllu import Block, write_blocks
from tk_spacy.utils.atomic_files import atomic_output
from tk_spacy.workflows.files.counted import Part
from tk_spacy.workflows.files.kept_parts import KeptParts, kept_parts
from tk_spacy.workflows.files.tagging import FileTags
from tk_spacy.workflows.files.worker import Job, SentenceReport

T = TypeVar("T")


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
    Where the job has a key, what is done of a large file is kept beside its target until that is
    whole, and what an earlier run kept is not done again.
    Raises UserError where a process was killed.
    """
    whole = Part(tags=tags)
    processes = 1 if stays else effective_n_threads(n_threads)
    if stays:  # files that are read beside the input would have to be passed over, too
        job = replace(job, key="")

    def blocks(parts: Iterable[Part], kept: KeptParts) -> Iterator[Block]:
        tell = report or (lambda sentences: None)
        for part in kept.restored(tags):
            whole.add(part)
            yield part.block
        whole.resumed = kept.sentences
        tell(kept.sentences)
        try:
            for part in parts:
                whole.add(part)
                yield part.block
                kept.add(part)
                tell(part.tally.sentences)
            check(whole)
        except UserError:
            kept.finish()  # with this input no other run comes further
            raise

    with kept_parts(job) as kept:
        rest = islice(batches, kept.batches, None)
        try:
            # Closed whatever happens: where the target cannot be written, no process works on.
            with (
                closing(in_order(rest, work, processes=processes, what=str(job.input))) as parts,
                atomic_output(job.target) as out,
            ):
                write_blocks(out, blocks(parts, kept))
        except TaskError as error:
            if not error.killed:
                raise
            cure = "run again with fewer of them (n_threads)"
            if kept.is_of_use:
                cure += f"; the first {kept.sentences:,} sentences are kept"
            raise UserError(f"{error}; {cure}") from error
        kept.finish()
    return whole
