"""Whether the probabilities in system files are true: calibration error, risk, reliability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tk_spacy.evaluation.reliability import (
    BINS,
    Bin,
    calibration_error,
    chance_error,
    reliability,
    risk_coverage,
    risk_coverage_area,
)
from tk_spacy.treebank.confidence_columns import read_confidence
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.tables import Cell, Column, Table

KINDS = ("heads", "labels", "trees")
"""What may have a probability; a tree is right where all its heads and labels are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceScores:
    """What the probabilities of one kind are worth, as ratios from 0 to 1.

    size: number of things that have one.  right: share of them.  probability: their mean.
    calibration_error: expected, of BINS bins of equally many things.  by_chance: what it would be
    if all probabilities were true.  risk_coverage_area, curve: see `reliability`.  bins: of the
    same.
    """

    size: int
    right: float
    probability: float
    calibration_error: float
    by_chance: float
    risk_coverage_area: float
    bins: tuple[Bin, ...]
    curve: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, probabilities: Float64, right: np.ndarray) -> ConfidenceScores:
        """Scores of probabilities float64[n] and what was right, bool[n]; n is at least 1."""
        return cls(
            size=len(right),
            right=float(right.mean()),
            probability=float(probabilities.mean()),
            calibration_error=calibration_error(probabilities, right),
            by_chance=chance_error(probabilities),
            risk_coverage_area=risk_coverage_area(probabilities, right),
            bins=reliability(probabilities, right),
            curve=risk_coverage(probabilities, right),
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "size": self.size,
            "right": self.right,
            "probability": self.probability,
            "calibration_error": self.calibration_error,
            "by_chance": self.by_chance,
            "risk_coverage_area": self.risk_coverage_area,
            "bins": [item._asdict() for item in self.bins],
        }


class Said(Protocol):
    """Probabilities of a sentence's heads and labels, float[n], and of its tree; nan for none."""

    @property
    def heads(self) -> Float64:
        """Of each word's head."""
        ...

    @property
    def labels(self) -> Float64:
        """Of each word's label."""
        ...

    @property
    def tree(self) -> float:
        """Of all heads and labels."""
        ...


@dataclass(slots=True)
class ConfidenceCounts:
    """Collects the probabilities of a stream of sentences, and what is right.

    Things without a probability are left out.
    """

    _found: dict[str, list[tuple[Float64, np.ndarray]]] = field(
        default_factory=lambda: {kind: [] for kind in KINDS}
    )

    def watch(
        self, pairs: Iterable[tuple[Sentence, Sentence]]
    ) -> Iterator[tuple[Sentence, Sentence]]:
        """The (gold, system) pairs as they come, counted; raises what `read_confidence` does."""
        for gold, system in pairs:
            self.add(gold, system, read_confidence(system))
            yield gold, system

    def add(self, gold: Sentence, system: Sentence, said: Said) -> None:
        """Count a sentence whose probabilities are said."""
        heads = system.heads == gold.heads
        labels = np.array([a == b for a, b in zip(gold.deprels, system.deprels, strict=True)])
        whole = np.array([bool((heads & labels).all())])
        tree = np.array([said.tree])
        for kind, values, right in (
            ("heads", said.heads, heads),
            ("labels", said.labels, labels),
            ("trees", tree, whole),
        ):
            known = ~np.isnan(values)
            if known.any():
                self._found[kind].append((values[known], right[known]))

    def scores(self) -> dict[str, ConfidenceScores]:
        """Of each of KINDS that has probabilities."""
        return {
            kind: ConfidenceScores.of(
                np.concatenate([values for values, _ in found]),
                np.concatenate([right for _, right in found]),
            )
            for kind, found in self._found.items()
            if found
        }


def confidence_table(systems: Mapping[str, Mapping[str, ConfidenceScores]]) -> Table:
    """One row for each system and kind."""
    rows = tuple(
        (
            name, kind, found.size, 100 * found.right, 100 * found.probability,
            found.calibration_error, found.by_chance, found.risk_coverage_area,
        )
        for name, kinds in systems.items()
        for kind, found in kinds.items()
    )  # fmt: skip
    return Table(
        title="Confidence",
        columns=(
            Column("system", "system", align="left"),
            Column("of", "kind", align="left"),
            Column("number", "size"),
            Column("right %", "right"),
            Column("mean prob. %", "probability"),
            Column("ECE", "calibration_error", digits=4),
            Column("by chance", "by_chance", digits=4),
            Column("AURC", "risk_coverage_area", digits=4),
        ),
        rows=rows,
        notes=(
            f"ECE: expected calibration error, of {BINS} bins of equally many words (or trees) by "
            "their probability; by chance: what it would be if all probabilities were true.",
            "AURC: area under the risk-coverage curve, the mean share of errors among the surest "
            "words (or trees); the lower the better.",
        ),
    )


def reliability_table(name: str, kinds: Mapping[str, ConfidenceScores]) -> Table:
    """One row a bin: mean probability and what is right, in percent, of each kind."""
    columns = [Column("bin", "bin")]
    for kind in kinds:
        columns += [
            Column(f"{kind}: prob.", f"{kind}_probability"),
            Column("right", f"{kind}_right"),
        ]
    rows = []
    for i in range(max(len(found.bins) for found in kinds.values())):
        row: list[Cell] = [i + 1]
        for found in kinds.values():
            item = found.bins[i] if i < len(found.bins) else None
            row += [None, None] if item is None else [100 * item.probability, 100 * item.right]
        rows.append(tuple(row))
    return Table(title=f"Reliability of {name}, %", columns=tuple(columns), rows=tuple(rows))
