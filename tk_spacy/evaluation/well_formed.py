"""How often trees break the constraints of Universal Dependencies, counted by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from tk_spacy.treebank.sentence import Sentence
from tk_spacy.trees.constraints import KINDS, Violations, WordFacts, violations
from tk_spacy.utils.tables import Cell, Column, Table


def word_facts(sentence: Sentence) -> WordFacts:
    """What the constraints ask of a sentence's words."""
    return WordFacts.of_columns(sentence.upos, sentence.feats, sentence.misc)


def own_violations(sentence: Sentence) -> Violations:
    """Where a sentence's own tree breaks them: arrays of one row."""
    names = list(dict.fromkeys(sentence.deprels))
    labels = np.array([[names.index(label) for label in sentence.deprels]], dtype=np.int32)
    return violations(sentence.heads[None], labels, names, word_facts(sentence))


def count_violations(sentences: Iterable[Sentence]) -> dict[str, int]:
    """How often the sentences' own trees have each kind of violation that they have, in order."""
    counts = Violated()
    for sentence in sentences:
        counts.add(sentence)
    return counts.by_kind()


class Violated:
    """Counts of violations in constant memory, of sentences as they come."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, sentence: Sentence) -> None:
        """Count a sentence's tree."""
        for kind, where in own_violations(sentence).at.items():
            self._counts[kind] += int(where.sum())

    def watch(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """Pass sentences on, counting them."""
        for sentence in sentences:
            self.add(sentence)
            yield sentence

    def by_kind(self) -> dict[str, int]:
        """Each kind that occurred, in the order of `constraints.KINDS`."""
        return {kind: self._counts[kind] for kind in KINDS if self._counts[kind]}


def violations_table(title: str, counts: Mapping[str, Mapping[str, int]]) -> Table:
    """One row for each kind that occurs, one column for each of some trees, and the sums.

    counts: by the names of gold and systems, and by kind.
    """
    kinds = [kind for kind in KINDS if any(row.get(kind) for row in counts.values())]
    rows: list[tuple[Cell, ...]] = [
        (kind, *(row.get(kind, 0) for row in counts.values())) for kind in kinds
    ]
    rows.append(("all", *(sum(row.values()) for row in counts.values())))
    return Table(
        title=title,
        columns=(
            Column("violation", "violation", align="left"),
            *(Column(name, name) for name in counts),
        ),
        rows=tuple(rows),
        notes=(
            "Errors of level 3 that UD's validator (udvalidate) finds in the trees, by its "
            "names of them, and further roots.",
        ),
    )
