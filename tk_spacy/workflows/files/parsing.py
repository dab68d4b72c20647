"""Parsing one CoNLL-U file with one parser, streaming."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tk_spacy.evaluation.well_formed import word_facts
from tk_spacy.kbest.candidates import LONG_LIST, CandidateList, LabelInventory
from tk_spacy.kbest.well_formed import best_formed_list
from tk_spacy.kbest.writer import kbest_sentences
from tk_spacy.parallel.batches import in_parts
from tk_spacy.treebank.confidence_columns import without_confidence
from tk_spacy.treebank.conllu import Sentence, TreebankError
from tk_spacy.treebank.enhanced import Deps, DepsColumn
from tk_spacy.workflows.files.batches import most_words, write_in_parts
from tk_spacy.workflows.files.counted import Part
from tk_spacy.workflows.files.inputs import InputReader
from tk_spacy.workflows.files.tagging import FileTags, Gaps
from tk_spacy.workflows.files.worker import FileResult, FileWorker, Job, SentenceReport

if TYPE_CHECKING:
    from tk_spacy.kbest.sources import ParserSource

Tree = tuple[NDArray[np.int32], tuple[str, ...]]


class TreeParser(Protocol):
    """What parses sentences whose trees, if any, it does not look at.

    single_root: whether every tree has one root.
    """

    @property
    def single_root(self) -> bool: ...  # noqa: D102  (said above)

    def parse(
        self, sentences: Sequence[Sentence], *, n_threads: int | None = None
    ) -> Iterator[Tree]:
        """The best tree of each sentence."""
        ...

    def kbest(
        self,
        sentences: Sequence[Sentence],
        *,
        k: int,
        inventory: LabelInventory,
        n_threads: int | None = None,
    ) -> Iterator[CandidateList]:
        """The list of each sentence, with labels of the inventory."""
        ...


@dataclass(frozen=True, slots=True)
class SourceParser:
    """Any source of candidates as a parser: its own trees, and its lists.

    The source has its inventory and its threads already.
    """

    source: ParserSource
    single_root: bool = True

    def parse(
        self, sentences: Sequence[Sentence], *, n_threads: int | None = None
    ) -> Iterator[Tree]:
        """The source's own tree of each sentence."""
        for trees in self.source.candidates(sentences, k=1):
            yield trees.heads[trees.base], trees.deprels(trees.base)

    def kbest(
        self,
        sentences: Sequence[Sentence],
        *,
        k: int,
        inventory: LabelInventory,
        n_threads: int | None = None,
    ) -> Iterator[CandidateList]:
        """The source's lists."""
        return self.source.candidates(sentences, k=k)


def tree_parser(source: ParserSource) -> TreeParser:
    """A source as a parser: what it is made of, where that parses files itself."""
    own: TreeParser | None = getattr(source, "file_parser", None)
    return SourceParser(source) if own is None else own


@dataclass(slots=True)
class FileParser(FileWorker):
    """Parses file after file.

    k: None for the best tree of each sentence, else the length of lists, as `tk-spacy kbest` writes
        them.
    single_root: whether every tree has one root.
    columns: that the parser has learnt to read.
    deps: what becomes of the column DEPS.
    inventory: of the labels of lists.
    tags: makes what gives the sentences of a file the tags that they are parsed with; None for the
        file's.
    well_formed: whether lists have the best-formed trees alone, repaired ones among them; best
        trees are those of such lists then.
    reader: of the files.
    """

    parser: TreeParser
    k: int | None = None
    n_threads: int | None = None
    single_root: bool = True
    columns: tuple[str, ...] = ()
    deps: Deps = "blank"
    inventory: LabelInventory = field(default_factory=LabelInventory)
    tags: Callable[[], FileTags] | None = None
    well_formed: bool = False
    reader: InputReader = field(default_factory=InputReader)

    def do_file(self, job: Job, report: SentenceReport | None = None) -> FileResult:
        """Parse a file.  Raises UserError where it cannot be read or written."""
        result = FileResult(str(job.input), str(job.target))
        started = time.perf_counter()
        tags = FileTags("gold", lambda: None) if self.tags is None else self.tags()

        def work(batch: list[tuple[Sentence, Gaps]]) -> Part:
            own = tags.fresh()
            return self._part(own.tagged(batch), own)

        def check(whole: Part) -> None:
            if not whole.tally.sentences:
                raise TreebankError(
                    job.input, 0, "the file holds no sentence; give a file with CoNLL-U in it"
                )

        # The input's trees are only compared with, and need be none.
        batches = in_parts(
            tags.looked_into(self.reader.sentences(job.input)),
            lambda item: len(item[0]),
            most_words=most_words((self.k or LONG_LIST) if self._with_lists else 1),
        )
        whole = write_in_parts(
            job, batches, work, n_threads=self.n_threads, report=report, tags=tags, check=check
        )
        whole.into(result, self.columns)
        result.seconds = time.perf_counter() - started
        if whole.tally.scored:
            result.final = whole.tally.counts[1]
        return result

    @property
    def _with_lists(self) -> bool:
        return self.k is not None or self.well_formed

    def _part(self, batch: Sequence[Sentence], tags: FileTags) -> Part:
        """What is written of a batch, and counted."""
        column, part = DepsColumn(self.deps), Part(tags=tags)

        def parsed() -> Iterator[tuple[Sentence, Sentence, CandidateList | None]]:
            for gold, (tree, trees) in zip(batch, self._trees(batch), strict=True):
                sentence = without_confidence(gold).with_tree(*tree, single_root=self.single_root)
                part.tally.add(gold, sentence, sentence)
                part.filled.add(gold)
                yield gold, sentence, trees

        if self.k is None:
            part.write(column(tree, given) for given, tree, _ in parsed())
        else:
            pairs = ((given, trees) for given, _, trees in parsed() if trees is not None)
            part.write(kbest_sentences(pairs, deps=column))
        part.deps = column.count
        return part

    def _trees(self, batch: Sequence[Sentence]) -> Iterator[tuple[Tree, CandidateList | None]]:
        """Each sentence's best tree, and its list; one list at a time, as long ones are large."""
        if not self._with_lists:
            for tree in self.parser.parse(batch, n_threads=self.n_threads):
                yield tree, None
            return
        lists = self.parser.kbest(
            batch, k=self.k or LONG_LIST, inventory=self.inventory, n_threads=self.n_threads
        )
        for sentence, trees in zip(batch, lists, strict=True):
            kept = best_formed_list(trees, word_facts(sentence)) if self.well_formed else trees
            yield (kept.heads[0], kept.deprels(0)), kept
