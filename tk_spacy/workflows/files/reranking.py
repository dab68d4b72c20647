"""Reranking one CoNLL-U or k-best file, streaming."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import tee
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.tree_files import is_kbest
from tk_spacy.kbest.writer import Pair
from tk_spacy.treebank.conllu import Sentence, read_conllu, write_conllu
from tk_spacy.workflows.files.external_trees import ExternalFiles
from tk_spacy.workflows.files.worker import FileResult, FileWorker, Job, Report, Tally
from tk_spacy.workflows.model import Model

REPORT_EVERY = 50


@dataclass(slots=True)
class FileReranker(FileWorker):
    """Reranks file after file with one model; its parser is loaded when first needed.

    k: candidates a sentence, None for the model's own number.
    parser_files: trees of other parsers for the inputs, where the model needs some.
    """

    model: Model
    k: int | None = None
    n_threads: int | None = None
    parser_files: ExternalFiles = field(default_factory=ExternalFiles)
    _inventory: LabelInventory = field(default_factory=LabelInventory)
    _own: Any = None

    def do_file(self, job: Job, report: Report | None = None) -> FileResult:
        """Rerank a file.  Raises UserError where it cannot be read or written."""
        result = FileResult(str(job.source), str(job.target))
        kbest = is_kbest(job.source)
        if not kbest and self._own is None:
            self._own = self.model.open_parsers(self._inventory, n_threads=self.n_threads)
        if kbest and self.parser_files.paths:
            raise UserError(
                f"{job.source}: has candidates already, to which trees in files add nothing; leave "
                "them out"
            )
        started = time.perf_counter()  # the model's loading is not the file's
        pairs = self._kbest_pairs(job.source) if kbest else self._parsed_pairs(job)
        # Closed whatever happens: where the target cannot be written, no thread reads on.
        with closing(self.model.reranker.choices(pairs, n_threads=self.n_threads)) as choices:
            chosen = self._reranked(choices, result, report, with_gold=not kbest)
            write_conllu(job.target, chosen)
        result.seconds = time.perf_counter() - started
        return result

    def _reranked(
        self,
        choices: Iterator[tuple[Sentence, CandidateList, int]],
        result: FileResult,
        report: Report | None,
        *,
        with_gold: bool,
    ) -> Iterator[Sentence]:
        report = report or (lambda n: None)
        tally = Tally()
        waiting = 0
        for sentence, trees, row in choices:
            final = sentence.with_tree(trees.heads[row], trees.deprels(row))
            base = final
            if row != trees.base:
                base = sentence.with_tree(trees.heads[trees.base], trees.deprels(trees.base))
            tally.add(sentence if with_gold else None, base, final)
            yield final
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

    def _kbest_pairs(self, path: Path) -> Iterator[Pair]:
        weighed = self.model.reranker.needed_sources
        # Expanded files do not name their parser: it is taken for the model's.
        source = weighed[0] if weighed else "kbest"
        pairs = read_kbest(path, inventory=self._inventory, source=source, k=self.k)
        for number, (sentence, trees) in enumerate(pairs):
            missing = [name for name in weighed if name not in trees.sources]
            if missing and not number:
                raise UserError(
                    f"{path}: has the scores of {', '.join(trees.sources)}, but the model needs "
                    f"those of {', '.join(missing)}: it was trained with another parser's lists"
                )
            yield sentence, trees

    def _parsed_pairs(self, job: Job) -> Iterator[Pair]:
        own = self._own
        model = self.model
        source = model.in_order(
            [
                *own.sources,
                *self.parser_files.sources(
                    model.external_parsers, job, self._inventory, model=model.path
                ),
            ],
            n_threads=self.n_threads,
        )
        # The input's trees are only compared with, and need be none.
        sentences, again = tee(read_conllu(job.source, trees="any", single_root=False))
        return zip(sentences, source.candidates(again, k=self.k or own.k), strict=True)
