"""Files of systems scored against a gold file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import Scores, aligned, count_pairs, scores_from_counts
from tk_spacy.evaluation.bootstrap import Bootstrap, bootstrap_counts
from tk_spacy.evaluation.breakdown import Breakdown, breakdown_records, breakdown_table
from tk_spacy.evaluation.confidence import (
    ConfidenceCounts,
    ConfidenceScores,
    confidence_table,
    reliability_table,
)
from tk_spacy.evaluation.report import MORE_SCORE_COLUMNS, bootstrap_note, scores_table
from tk_spacy.evaluation.well_formed import Violated, violations_table
from tk_spacy.treebank.conllu import read_conllu
from tk_spacy.treebank.data_notes import Blanks
from tk_spacy.utils.short_names import short_names
from tk_spacy.utils.tables import Table


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of each system, and of each but the first a paired bootstrap against the first.

    counts: of each system what is right in each sentence, see `attachment.count_sentences`.
    samples, seed: of the bootstraps.
    groupings: by which the words are divided; breakdowns: those of each system.
    confidence: of each system, what its probabilities are worth, where it has some.
    notes: on words without HEAD or DEPREL.
    violations: of the gold trees and of each system's, by kind.
    """

    gold: str
    systems: tuple[tuple[str, Scores], ...]
    comparisons: tuple[Bootstrap, ...]
    counts: tuple[NDArray[np.int64], ...] = field(repr=False)
    samples: int
    seed: int
    groupings: tuple[str, ...] = ()
    breakdowns: tuple[Breakdown, ...] = field(default=(), repr=False)
    confidence: tuple[dict[str, ConfidenceScores], ...] = ()
    notes: tuple[str, ...] = ()
    violations: tuple[Mapping[str, int], ...] = ()

    @property
    def short(self) -> dict[str, str]:
        """The short name of each file."""
        paths = [self.gold, *(name for name, _ in self.systems)]
        return dict(zip(paths, short_names(paths), strict=True))

    @property
    def names(self) -> list[str]:
        """The systems' short names, each once."""
        short = self.short
        return _unique([short[name] for name, _ in self.systems])

    def compared(self, metric: str) -> tuple[Bootstrap, ...]:
        """The comparisons by a metric."""
        if all(of.metric == metric for of in self.comparisons):
            return self.comparisons
        return _compared(self.counts, metric=metric, samples=self.samples, seed=self.seed)

    def table(self, *, notes: bool = True) -> Table:
        """One row a system.  notes: of how much was scored, and of the bootstraps."""
        names = self.names
        scores = {name: row for name, (_, row) in zip(names, self.systems, strict=True)}
        first = self.systems[0][1]
        title = f"Scores against {self.short[self.gold]}"
        if not notes:
            return scores_table(title, scores, columns=MORE_SCORE_COLUMNS)
        told = [
            f"{first.sentences:,} sentences, {first.words:,} words, "
            f"{first.words_nopunct:,} of them no punctuation."
        ]
        told += [
            bootstrap_note(names[0], name, result)
            for name, result in zip(names[1:], self.comparisons, strict=True)
        ]
        return scores_table(title, scores, columns=MORE_SCORE_COLUMNS, notes=told)

    def tables(self) -> list[Table]:
        """Of the systems, of what is ill-formed, of each grouping, of probabilities."""
        found = dict(zip(self.names, self.breakdowns, strict=True))
        sure = {n: own for n, own in zip(self.names, self.confidence, strict=False) if own}
        counts = dict(zip(("gold", *self.names), self.violations, strict=True))
        return [
            self.table(),
            *([violations_table("Ill-formed trees", counts)] if counts else []),
            *(breakdown_table(name, found) for name in self.groupings),
            *([confidence_table(sure)] if sure else []),
            *(reliability_table(name, own) for name, own in sure.items()),
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        files = _unique([name for name, _ in self.systems])
        found = dict(zip(files, self.breakdowns, strict=True))
        return {
            "gold": self.gold,
            "systems": [{"file": name, **asdict(scores)} for name, scores in self.systems],
            "confidence": [
                {"file": name, **{kind: scores.to_dict() for kind, scores in own.items()}}
                for (name, _), own in zip(self.systems, self.confidence, strict=False)
                if own
            ],
            "comparisons": [
                {"file": name, "against": self.systems[0][0], **asdict(result)}
                for (name, _), result in zip(self.systems[1:], self.comparisons, strict=True)
            ],
            "by": {name: breakdown_records(name, found) for name in self.groupings},
            "violations": [
                {"file": name, "kinds": dict(kinds)}
                for name, kinds in zip(
                    (self.gold, *(n for n, _ in self.systems)), self.violations, strict=True
                )
            ],
            "notes": list(self.notes),
        }


def evaluate(
    gold: Path,
    systems: Sequence[Path],
    *,
    metric: str = "uas",
    samples: int = 10_000,
    seed: int = 0,
    by: Sequence[str] = (),
) -> Evaluation:
    """Score system files against the gold file; all are read as streams.

    by: keys of `breakdown.GROUPINGS`.
    Raises UserError where a file is broken or holds other sentences than the gold file.
    """
    tables: list[NDArray[np.int64]] = []
    blanks = [Blanks() for _ in systems]
    breakdowns = tuple(Breakdown(by) for _ in systems)
    sure = [ConfidenceCounts() for _ in systems]
    right, violated = Violated(), [Violated() for _ in systems]
    watched = zip(systems, breakdowns, blanks, sure, violated, strict=True)
    for path, breakdown, blank, probabilities, own in watched:
        system = own.watch(read_conllu(path, trees="optional", single_root=False))
        given = read_conllu(gold, single_root=False)
        try:
            pairs = aligned(given if tables else right.watch(given), system)
            tables.append(count_pairs(breakdown.watch(blank.watch(probabilities.watch(pairs)))))
        except UserError as error:
            if str(error).startswith((str(gold), str(path))):
                raise
            raise UserError(f"{gold} and {path}: {error}") from error
    return Evaluation(
        gold=str(gold),
        systems=tuple(
            (str(path), scores_from_counts(table))
            for path, table in zip(systems, tables, strict=True)
        ),
        comparisons=_compared(tables, metric=metric, samples=samples, seed=seed),
        counts=tuple(tables),
        samples=samples,
        seed=seed,
        groupings=tuple(dict.fromkeys(by)),
        breakdowns=breakdowns,
        confidence=tuple(own.scores() for own in sure),
        violations=tuple(counts.by_kind() for counts in (right, *violated)),
        notes=tuple(
            dict.fromkeys(
                note
                for path, blank in zip(systems, blanks, strict=True)
                for note in blank.notes(gold, path)
            )
        ),
    )


def _compared(
    tables: Sequence[NDArray[np.int64]], *, metric: str, samples: int, seed: int
) -> tuple[Bootstrap, ...]:
    """A paired bootstrap of each system but the first against the first one.

    tables: the systems' `Evaluation.counts`.
    """
    return tuple(
        bootstrap_counts([(tables[0], table)], metric=metric, samples=samples, seed=seed)
        for table in tables[1:]
    )


def _unique(names: Sequence[str]) -> list[str]:
    """Names to tell rows apart: a file given twice gets a number."""
    return [
        f"{name} ({names[: i + 1].count(name)})" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]
