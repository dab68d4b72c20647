"""Reranking one CoNLL-U or k-best file, streaming."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.candidates import LabelInventory
from tk_spacy.errors import UserError
from tk_spacy.evaluation import SentenceCounts, count_sentences, scores_from_counts
from tk_spacy.kbest_io import Pair, read_kbest
from tk_spacy.models import Model
from tk_spacy.treebank import Sentence, TreebankError, read_conllu, write_conllu

REPORT_EVERY = 50
_KBEST_COMMENT = re.compile(r"#\s*(tk_candidate_1|rank)\s*=")

Report = Callable[[int], None]
"""Called with the number of sentences done since the last call."""


@dataclass(frozen=True, slots=True)
class Job:
    """One file to rerank, and where the result goes."""

    source: Path
    target: Path


@dataclass(slots=True)
class FileResult:
    """What became of one file.

    status: "done", "skipped" (its output is there) or "failed" (see `error`).
    changed: words whose head or label is not the base parser's.
    parser, final: sums of the counts of `evaluation.SentenceCounts`, for the base parser's trees
        and the chosen ones; None where the input has not a tree for each sentence.
    """

    source: str
    target: str
    status: str = "done"
    error: str | None = None
    sentences: int = 0
    words: int = 0
    changed: int = 0
    seconds: float = 0.0
    parser: NDArray[np.int64] | None = None
    final: NDArray[np.int64] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON values; scores in percent."""
        scores = None
        if self.parser is not None and self.final is not None:
            scores = {
                name: {metric: getattr(row, metric) for metric in ("uas", "las")}
                for name, counts in (("parser", self.parser), ("final", self.final))
                for row in [scores_from_counts(counts[None])]
            }
        return {
            "input": self.source,
            "output": self.target,
            "status": self.status,
            "error": self.error,
            "sentences": self.sentences,
            "words": self.words,
            "changed": self.changed,
            "seconds": self.seconds,
            "scores": scores,
        }


@dataclass(slots=True)
class FileReranker:
    """Reranks file after file with one model; its parser is loaded when first needed.

    k: candidates a sentence, None for the model's own number.
    """

    model: Model
    k: int | None = None
    n_threads: int | None = None
    _inventory: LabelInventory = field(default_factory=LabelInventory)
    _source: Any = None

    def rerank_file(self, job: Job, report: Report | None = None) -> FileResult:
        """Rerank a file.  Raises UserError where it cannot be read or written."""
        result = FileResult(str(job.source), str(job.target))
        kbest = is_kbest(job.source)
        if not kbest and self._source is None:
            self._source = self.model.candidate_source(self._inventory)
        started = time.perf_counter()  # the model's loading is not the file's
        pairs = self._kbest_pairs(job.source) if kbest else self._parsed_pairs(job.source)
        chosen = self._reranked(pairs, result, report or (lambda n: None), with_gold=not kbest)
        write_conllu(job.target, chosen)
        result.seconds = time.perf_counter() - started
        return result

    def try_file(self, job: Job, report: Report | None = None) -> FileResult:
        """The same, but a failure is part of the result."""
        try:
            job.target.parent.mkdir(parents=True, exist_ok=True)
            return self.rerank_file(job, report)
        except UserError as error:
            reason = str(error)
        except OSError as error:
            reason = f"{job.target}: {error.strerror or error}"
        except Exception as error:
            # A fault of ours, but hours of other files must not be lost to it.
            reason = f"{job.source}: {type(error).__name__}: {error}"
        return FileResult(str(job.source), str(job.target), status="failed", error=reason)

    def _reranked(
        self,
        pairs: Iterator[Pair],
        result: FileResult,
        report: Report,
        *,
        with_gold: bool,
    ) -> Iterator[Sentence]:
        for_reranker, pairs = tee(pairs)
        rows = self.model.reranker.rerank(for_reranker, n_threads=self.n_threads)
        tally = Tally()
        waiting = 0
        for (sentence, trees), row in zip(pairs, rows, strict=True):
            base = sentence.with_tree(trees.heads[trees.base], trees.deprels(trees.base))
            final = sentence.with_tree(trees.heads[row], trees.deprels(row))
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
        combination = self.model.reranker.combination
        weighed = [name for name, beta in combination.betas.items() if beta] if combination else []
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

    def _parsed_pairs(self, path: Path) -> Iterator[Pair]:
        source, k = self._source
        # The input's trees are only compared with, so they may have several roots.
        sentences, again = tee(read_conllu(path, trees="optional", single_root=False))
        return zip(sentences, source.candidates(again, k=self.k or k), strict=True)


class Tally:
    """Counts over a stream of sentences, in constant memory.

    scored: whether every sentence so far had a gold tree.
    """

    CHUNK = 500

    def __init__(self) -> None:
        self.sentences = self.words = self.changed = 0
        self.scored = True
        width = len(SentenceCounts._fields)
        self.counts = (np.zeros(width, np.int64), np.zeros(width, np.int64))
        self._chunk: list[tuple[Sentence, Sentence, Sentence]] = []

    def add(self, gold: Sentence | None, base: Sentence, final: Sentence) -> None:
        """Count one sentence: the input, the base parser's tree, the chosen tree."""
        self.sentences += 1
        self.words += len(final)
        differs = base.heads != final.heads
        labels = np.array(base.deprels, object) != np.array(final.deprels, object)
        self.changed += int((differs | labels).sum())
        self.scored = self.scored and gold is not None and gold.has_tree
        if self.scored and gold is not None:
            self._chunk.append((gold, base, final))
            if len(self._chunk) == self.CHUNK:
                self.flush()

    def flush(self) -> None:
        """Bring `counts` up to date."""
        if self._chunk:
            gold, base, final = zip(*self._chunk, strict=True)
            for total, trees in zip(self.counts, (base, final), strict=True):
                total += count_sentences(gold, trees).sum(axis=0)
            self._chunk.clear()


def is_kbest(path: Path) -> bool:
    """Whether a file's first sentence has candidates.

    Raises UserError for a file that cannot be read or holds no sentence.
    """
    first = next(read_conllu(path, trees="optional", single_root=False), None)
    if first is None:
        raise TreebankError(path, 0, "the file holds no sentence; give a file with CoNLL-U in it")
    return any(_KBEST_COMMENT.match(line) for line in first.comments)
