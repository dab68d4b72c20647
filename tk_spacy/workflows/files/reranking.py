"""Reranking one CoNLL-U or k-best file, streaming."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import tee
from typing import NamedTuple

from tk_spacy.errors import UserError
from tk_spacy.kbest.arc_probabilities import ArcProbabilities, arc_probabilities
from tk_spacy.kbest.candidates import CandidateList, LabelInventory, in_batches
from tk_spacy.kbest.long_sentences import Tree, by_sentence, join_trees, link_label
from tk_spacy.kbest.reader import TreesFile
from tk_spacy.kbest.writer import Pair
from tk_spacy.parsers.base import columns_read
from tk_spacy.reranker.calibration import Confidence
from tk_spacy.treebank.confidence_columns import with_confidence, without_confidence
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.data_notes import FilledColumns
from tk_spacy.treebank.enhanced import Deps, DepsColumn
from tk_spacy.workflows.files.external_trees import ExternalFiles
from tk_spacy.workflows.files.inputs import InputReader
from tk_spacy.workflows.files.tagging import FileTags
from tk_spacy.workflows.files.worker import FileResult, FileWorker, Job, SentenceReport, Tally
from tk_spacy.workflows.model import Model, Parsers, PipelineLoader, pipeline_loader

REPORT_EVERY = 50
ASKED_AT_A_TIME = 128
"""Sentences whose chosen arcs parsers are asked of together, where confidence is wanted."""


class Decided(NamedTuple):
    """A sentence, the first parser's own tree of it, and the chosen one.

    confidence: of that one; None where nobody asks.
    """

    sentence: Sentence
    own: Tree
    chosen: Tree
    confidence: Confidence | None = None


@dataclass(slots=True)
class FileReranker(FileWorker):
    """Reranks file after file with one model; its parser is loaded when first needed.

    k: candidates a sentence, None for the model's own number.
    parser_files: trees of other parsers for the inputs, where the model needs some.
    deps: what becomes of the column DEPS.
    tags: makes what gives the sentences of a file the tags that they are parsed with; None for the
        file's.
    confidence: whether to write how sure the choices are, which needs a calibrated model.
    well_formed: whether the best-formed trees alone are chosen from (see `Reranker.decide`).
    reader: of the files that are no k-best files.
    load: loads the pipeline that has the parsers.
    """

    model: Model
    k: int | None = None
    n_threads: int | None = None
    parser_files: ExternalFiles = field(default_factory=ExternalFiles)
    deps: Deps = "blank"
    tags: Callable[[], FileTags] | None = None
    confidence: bool = False
    well_formed: bool = False
    reader: InputReader = field(default_factory=InputReader)
    load: PipelineLoader = field(default_factory=pipeline_loader)
    _inventory: LabelInventory = field(default_factory=LabelInventory)
    _own: Parsers | None = None

    def do_file(self, job: Job, report: SentenceReport | None = None) -> FileResult:
        """Rerank a file.  Raises UserError where it cannot be read or written."""
        result = FileResult(str(job.input), str(job.target))
        column, filled = DepsColumn(self.deps), FilledColumns()

        def seen(pairs: Iterator[tuple[Sentence, Sentence]]) -> Iterator[tuple[Sentence, Sentence]]:
            for given, final in pairs:
                filled.add(given)
                yield given, final

        is_conllu = self.reader.form_of(job.input) == "conllu"
        file = TreesFile(job.input) if is_conllu else None
        kbest = file is not None and file.form is not None
        tags = None if self.tags is None or kbest else self.tags()
        sentences: Iterator[Sentence] = iter(())
        if file is None:
            sentences = self.reader.sentences(job.input)
        elif not kbest:
            # The input's trees are only compared with, and need be none.
            sentences = file.sentences(trees="any", single_root=False)
        if tags is not None:
            sentences = tags(sentences)
        if not kbest and self._own is None:
            self._own = self.model.open_parsers(
                self._inventory, n_threads=self.n_threads, load=self.load
            )
        if kbest and self.parser_files.paths:
            raise UserError(
                f"{job.input}: has candidates already, to which trees in files add nothing; leave "
                "them out"
            )
        started = time.perf_counter()  # the model's loading is not the file's
        # Closed whatever happens: where the target cannot be written, no thread reads on.
        with closing(self._choices(job, file, sentences)) as choices:
            chosen = self._reranked(choices, result, report, with_gold=not kbest)
            # The trees that the DEPS of a k-best file were made for are not known.
            write_conllu(
                job.target,
                (column(final, None if kbest else given) for given, final in seen(chosen)),
            )
        result.missing = tuple(filled.missing(self._columns(own=not kbest)))
        result.deps, result.tags = column.count, None if tags is None else tags.note()
        result.seconds = time.perf_counter() - started
        return result

    def _choices(
        self, job: Job, file: TreesFile | None, sentences: Iterator[Sentence]
    ) -> Generator[Decided, None, None]:
        """Each sentence with the first parser's own tree, and the one that is chosen."""
        if file is not None and file.form is not None:
            yield from self._decided(self._kbest_pairs(file))
        elif self.model.external_parsers:
            # Lists of whole sentences: files know of no pieces.
            ours, again = tee(sentences)
            yield from self._decided(zip(ours, self._lists(job, again), strict=True), self._arcs)
        else:
            # Long sentences in pieces, of which each has its own choice.
            for sentence, of_pieces in by_sentence(sentences, partial(self._of_pieces, job)):
                link = link_label(self._inventory.names) if len(of_pieces) > 1 else ""
                yield Decided(
                    sentence,
                    join_trees([piece.own for piece in of_pieces], link=link),
                    join_trees([piece.chosen for piece in of_pieces], link=link),
                    self._joined([piece.confidence for piece in of_pieces]),
                )

    def _of_pieces(self, job: Job, pieces: Iterable[Sentence]) -> Generator[Decided, None, None]:
        pieces, again = tee(pieces)
        return self._decided(zip(pieces, self._lists(job, again), strict=True), self._arcs)

    @property
    def _arcs(self) -> ArcProbabilities | None:
        return arc_probabilities([] if self._own is None else self._own.sources)

    def _decided(
        self, pairs: Iterable[Pair], arcs: ArcProbabilities | None = None
    ) -> Generator[Decided, None, None]:
        """The choices; arcs: how likely the parsers find any arcs, where they are there."""
        decisions = self.model.reranker.decisions(
            pairs, n_threads=self.n_threads, well_formed=self.well_formed
        )
        with closing(decisions):
            # Parsers are asked of many sentences at a time, where they are asked.
            most = ASKED_AT_A_TIME if self.confidence else 1
            for batch in in_batches(
                decisions, lambda item: item[1].candidates.heads.size, most=most
            ):
                known: Sequence[Confidence | None] = [None] * len(batch)
                if self.confidence:
                    known = self.model.reranker.confidences(batch, arcs)
                for (sentence, decision), sure in zip(batch, known, strict=True):
                    trees, row = decision.candidates, decision.row
                    final = trees.heads[row], trees.deprels(row)
                    base = final
                    if row != trees.base:
                        base = trees.heads[trees.base], trees.deprels(trees.base)
                    yield Decided(sentence, base, final, sure)

    @staticmethod
    def _joined(pieces: Sequence[Confidence | None]) -> Confidence | None:
        known = [piece for piece in pieces if piece is not None]
        return Confidence.joined(known) if known else None

    def _reranked(
        self,
        choices: Iterator[Decided],
        result: FileResult,
        report: SentenceReport | None,
        *,
        with_gold: bool,
    ) -> Iterator[tuple[Sentence, Sentence]]:
        report = report or (lambda n: None)
        tally = Tally()
        waiting = 0
        for sentence, own, chosen, sure in choices:
            sentence = without_confidence(sentence)
            final = sentence.with_tree(*chosen)
            base = final if own is chosen else sentence.with_tree(*own)
            tally.add(sentence if with_gold else None, base, final)
            if sure is not None:
                final = with_confidence(final, heads=sure.heads, labels=sure.labels, tree=sure.tree)
            yield sentence, final
            waiting += 1
            if waiting == REPORT_EVERY:
                report(waiting)
                waiting = 0
        report(waiting)
        result.sentences, result.words = tally.sentences, tally.words
        result.changed = tally.changed
        if tally.scored:
            tally.flush()
            result.parser, result.final = tally.counts

    def _columns(self, *, own: bool) -> set[str]:
        """What the reranker has learnt to read, and with `own` its parsers too.

        All learnt from one treebank: what its schema has not seen filled, none has.
        """
        schema = self.model.reranker.schema
        sources = self._own.sources if own and self._own is not None else []
        return set(schema.columns) | (columns_read(sources) & set(schema.filled))

    def _kbest_pairs(self, file: TreesFile) -> Iterator[Pair]:
        weighed = self.model.reranker.needed_sources
        # Expanded files do not name their parser: it is taken for the model's.
        source = weighed[0] if weighed else "kbest"
        pairs = file.lists(inventory=self._inventory, source=source, k=self.k)
        for number, (sentence, trees) in enumerate(pairs):
            missing = [name for name in weighed if name not in trees.sources]
            if missing and not number:
                raise UserError(
                    f"{file.name}: has the scores of {', '.join(trees.sources)}, but the model "
                    f"needs those of {', '.join(missing)}: it was trained with another parser's "
                    "lists"
                )
            yield sentence, trees

    def _lists(self, job: Job, sentences: Iterable[Sentence]) -> Iterator[CandidateList]:
        """The candidates that the model's parsers find."""
        own, model = self._own, self.model
        assert own is not None  # `do_file` opened them
        source = model.in_order(
            [
                *own.sources,
                *self.parser_files.sources(
                    model.external_parsers, job, self._inventory, model=model.path
                ),
            ],
            n_threads=self.n_threads,
        )
        return source.candidates(sentences, k=self.k or own.k)
