"""What working through files has in common: jobs, results, counts, failures that are noted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import SentenceCounts, count_sentences, scores_from_counts
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.enhanced import DepsCount

SentenceReport = Callable[[int], None]
"""Called with the number of sentences done since the last call."""


@dataclass(frozen=True, slots=True)
class Job:
    """One file to work on, and where the result goes.

    key: tells all that the result depends on; where it is empty, no part of the result is kept for
        another run, see `kept_parts`.
    """

    input: Path
    target: Path
    key: str = field(default="", compare=False)


@dataclass(slots=True)
class FileResult:
    """What became of one file.

    status: "done", "skipped" (its output is up to date) or "failed" (see `error`).
    changed: words whose head or label is not the base parser's.
    parser, final: sums of the counts of `attachment.SentenceCounts`, for the base parser's trees
        and the chosen ones; None where the input has not a tree for each sentence, or where there
        is nothing to choose from.
    missing: columns that the model has learnt to read and that are empty here.
    deps: what became of the column DEPS.
    tags: whose tags the words have, in words, where that is worth a note.
    resumed: sentences that an earlier run did, which was stopped.
    """

    input: str
    target: str
    status: str = "done"
    error: str | None = None
    sentences: int = 0
    words: int = 0
    changed: int = 0
    seconds: float = 0.0
    parser: NDArray[np.int64] | None = None
    final: NDArray[np.int64] | None = None
    missing: tuple[str, ...] = ()
    deps: DepsCount = field(default_factory=DepsCount)
    tags: str | None = None
    resumed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON values; scores in percent."""
        scores = {
            name: {metric: getattr(row, metric) for metric in ("uas", "las")}
            for name, counts in (("parser", self.parser), ("final", self.final))
            if counts is not None
            for row in [scores_from_counts(counts[None])]
        }
        return {
            "input": self.input,
            "output": self.target,
            "status": self.status,
            "error": self.error,
            "sentences": self.sentences,
            "words": self.words,
            "changed": self.changed,
            "seconds": self.seconds,
            "scores": scores or None,
            "missing_columns": list(self.missing),
            "deps": asdict(self.deps),
            "tags": self.tags,
            "resumed": self.resumed,
        }


class FileWorker(ABC):
    """Works on file after file with one model."""

    @abstractmethod
    def do_file(self, job: Job, report: SentenceReport | None = None) -> FileResult:
        """Work on a file.  Raises UserError where it cannot be read or written."""

    def try_file(
        self, job: Job, report: SentenceReport | None = None, *, mistakes_alone: bool = False
    ) -> FileResult:
        """The same, but a failure is part of the result; with mistakes_alone the user's alone."""
        try:
            job.target.parent.mkdir(parents=True, exist_ok=True)
            return self.do_file(job, report)
        except UserError as error:
            reason = str(error)
        except OSError as error:
            if mistakes_alone:
                raise
            reason = f"{job.target}: {error.strerror or error}"
        except Exception as error:
            if mistakes_alone:
                raise
            # A fault of ours, but hours of other files must not be lost to it.
            reason = f"{job.input}: {type(error).__name__}: {error}"
        return FileResult(str(job.input), str(job.target), status="failed", error=reason)


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

    def add_all(self, others: Tally) -> None:
        """Count what was counted elsewhere, too; that must be flushed."""
        self.sentences += others.sentences
        self.words += others.words
        self.changed += others.changed
        self.scored = self.scored and others.scored
        for total, counts in zip(self.counts, others.counts, strict=True):
            total += counts

    def flush(self) -> None:
        """Bring `counts` up to date."""
        if self._chunk:
            gold, base, final = zip(*self._chunk, strict=True)
            for total, trees in zip(self.counts, (base, final), strict=True):
                total += count_sentences(gold, trees).sum(axis=0)
            self._chunk.clear()
