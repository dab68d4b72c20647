"""Reranking one CoNLL-U or k-best file, streaming."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.errors import UserError
from tk_spacy.kbest.arc_probabilities import ArcProbabilities, arc_probabilities
from tk_spacy.kbest.candidates import MAX_K, LabelInventory, in_batches
from tk_spacy.kbest.long_sentences import Tree, cut, join_trees, link_label
from tk_spacy.kbest.reader import TreesFile
from tk_spacy.kbest.writer import Pair
from tk_spacy.parallel.batches import in_parts
from tk_spacy.parsers.base import columns_read
from tk_spacy.reranker.calibration import Confidence
from tk_spacy.reranker.decision import Decision
from tk_spacy.reranker.speeds import EXACT, Speed
from tk_spacy.reranker.staged import Staged
from tk_spacy.treebank.confidence_columns import with_confidence, without_confidence
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.enhanced import Deps, DepsColumn
from tk_spacy.workflows.files.batches import most_words, write_in_parts
from tk_spacy.workflows.files.counted import Part
from tk_spacy.workflows.files.external_trees import ExternalFiles
from tk_spacy.workflows.files.inputs import InputReader
from tk_spacy.workflows.files.tagging import FileTags, Gaps
from tk_spacy.workflows.files.worker import FileResult, FileWorker, Job, SentenceReport
from tk_spacy.workflows.model import Model, Parsers, PipelineLoader, pipeline_loader

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
    speed: another than the exact one needs a model with a cascade, and no parsers' trees in files;
        k-best files are always reranked exactly.
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
    speed: Speed = EXACT
    reader: InputReader = field(default_factory=InputReader)
    load: PipelineLoader = field(default_factory=pipeline_loader)
    _inventory: LabelInventory = field(default_factory=LabelInventory)
    _own: Parsers | None = None

    def do_file(self, job: Job, report: SentenceReport | None = None) -> FileResult:
        """Rerank a file.  Raises UserError where it cannot be read or written."""
        result = FileResult(str(job.input), str(job.target))
        is_conllu = self.reader.form_of(job.input) == "conllu"
        file = TreesFile(job.input) if is_conllu else None
        kbest = file is not None and file.form is not None
        sentences: Iterator[Sentence] = iter(())
        # What is wrong with the input from the start is said before parsers are loaded.
        if file is None:
            sentences = self.reader.sentences(job.input)
        elif not kbest:
            # The input's trees are only compared with, and need be none.
            sentences = file.sentences(trees="any", single_root=False)
        if not kbest and self._own is None:
            self._own = self.model.open_parsers(
                self._inventory, n_threads=self.n_threads, load=self.load
            )
            self._check_quick(self._own)
        started = time.perf_counter()  # the model's loading is not the file's
        if file is not None and kbest:
            if self.parser_files.paths:
                raise UserError(
                    f"{job.input}: has candidates already, to which trees in files add nothing; "
                    "leave them out"
                )
            whole = self._rerank_lists(job, file, report)
        else:
            whole = self._rerank_sentences(job, sentences, report)
        whole.into(result, self._columns(own=not kbest))
        result.changed = whole.tally.changed
        if whole.tally.scored:
            result.parser, result.final = whole.tally.counts
        result.seconds = time.perf_counter() - started
        return result

    def _rerank_lists(self, job: Job, file: TreesFile, report: SentenceReport | None) -> Part:
        def work(batch: list[Pair]) -> Part:
            return self._part(list(self._decided(batch)), None, with_gold=False)

        batches = in_parts(
            self._kbest_pairs(file),
            lambda pair: len(pair[0]),
            most_words=most_words(self.k or MAX_K),
        )
        return write_in_parts(job, batches, work, n_threads=self.n_threads, report=report)

    def _rerank_sentences(
        self, job: Job, sentences: Iterator[Sentence], report: SentenceReport | None
    ) -> Part:
        tags = FileTags("gold", lambda: None) if self.tags is None else self.tags()
        source = self._source(job)

        def work(batch: list[tuple[Sentence, Gaps]]) -> Part:
            own = tags.fresh()
            return self._part(self.decide(own.tagged(batch), source), own, with_gold=True)

        batches = in_parts(
            tags.looked_into(sentences),
            lambda item: len(item[0]),
            most_words=most_words(self._list_length),
        )
        return write_in_parts(
            job, batches, work, n_threads=self.n_threads, report=report, tags=tags,
            stays=bool(self.model.external_parsers),  # whose trees are read as they are asked for
        )  # fmt: skip

    def decide(self, sentences: Sequence[Sentence], source: MergedSource) -> list[Decided]:
        """The choices for one batch of sentences, which have their tags.

        source: of their candidates, see `_source`; it forgets what it remembers of other batches.
        """
        source.forget()
        if self.model.external_parsers:
            # Lists of whole sentences: files know of no pieces.
            lists = source.candidates(sentences, k=self._list_length)
            return list(self._decided(zip(sentences, lists, strict=True), self._arcs))
        # Long sentences in pieces, of which each has its own choice.
        cuts = [cut(sentence).pieces for sentence in sentences]
        pieces = [piece for of_sentence in cuts for piece in of_sentence]
        found = iter(self._of_pieces(pieces, source))
        return [
            self._joined(sentence, [next(found) for _ in of_sentence])
            for sentence, of_sentence in zip(sentences, cuts, strict=True)
        ]

    def _of_pieces(self, pieces: Sequence[Sentence], source: MergedSource) -> list[Decided]:
        if self.speed == EXACT:
            lists = source.candidates(pieces, k=self._list_length)
            return list(self._decided(zip(pieces, lists, strict=True), self._arcs))
        staged = Staged(
            self.model.reranker, source, self._list_length,
            speed=self.speed, well_formed=self.well_formed, n_threads=self.n_threads,
        )  # fmt: skip
        return [self._tree_pair(*item) for item in staged.decisions(pieces)]

    def _check_quick(self, own: Parsers) -> None:
        """Raises UserError where a speed is asked for that the parsers of the pipeline rule out."""
        cascade = self.model.reranker.cascade
        if self.speed == EXACT or cascade is None:
            return
        if not cascade.places([source.names for source in own.sources]):
            raise UserError(
                f"{self.model.path}: quick parsers ({', '.join(cascade.quick)}), or all others, "
                f"are missing in the model's pipeline; leave out the speed {self.speed}"
            )

    def _joined(self, sentence: Sentence, pieces: Sequence[Decided]) -> Decided:
        """The choice for a sentence from those for its pieces."""
        if len(pieces) == 1:
            return pieces[0]
        link = link_label(self._inventory.names)
        known = [piece.confidence for piece in pieces if piece.confidence is not None]
        return Decided(
            sentence,
            join_trees([piece.own for piece in pieces], link=link),
            join_trees([piece.chosen for piece in pieces], link=link),
            Confidence.joined(known) if known else None,
        )

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
                for item, sure in zip(batch, known, strict=True):
                    yield self._tree_pair(*item, sure)

    @staticmethod
    def _tree_pair(
        sentence: Sentence, decision: Decision, sure: Confidence | None = None
    ) -> Decided:
        trees, row = decision.candidates, decision.row
        final = trees.heads[row], trees.deprels(row)
        base = final
        if row != trees.base:
            base = trees.heads[trees.base], trees.deprels(trees.base)
        return Decided(sentence, base, final, sure)

    def _part(self, decided: Sequence[Decided], tags: FileTags | None, *, with_gold: bool) -> Part:
        """What is written of a batch, and counted."""
        column, part = DepsColumn(self.deps), Part(tags=tags)

        def finals() -> Iterator[Sentence]:
            for given, own, chosen, sure in decided:
                sentence = without_confidence(given)
                final = sentence.with_tree(*chosen)
                base = final if own is chosen else sentence.with_tree(*own)
                part.tally.add(sentence if with_gold else None, base, final)
                part.filled.add(sentence)
                if sure is not None:
                    final = with_confidence(
                        final, heads=sure.heads, labels=sure.labels, tree=sure.tree
                    )
                # The trees that the DEPS of a k-best file were made for are not known.
                yield column(final, sentence if with_gold else None)

        part.write(finals())
        part.deps = column.count
        return part

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

    @property
    def _list_length(self) -> int:
        assert self._own is not None  # `do_file` opened them
        return self.k or self._own.k

    def _source(self, job: Job) -> MergedSource:
        """What gives the candidates that the model's parsers find, for one pass over a file."""
        own, model = self._own, self.model
        assert own is not None  # `do_file` opened them
        return model.in_order(
            [
                *own.sources,
                *self.parser_files.sources(
                    model.external_parsers, job, self._inventory, model=model.path
                ),
            ],
            n_threads=self.n_threads,
        )
