"""Which relations are taken for which, the sentences behind it, and each relation's F1."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.tables import Cell, Column, Table

EXAMPLES = 5
"""Sentences that are kept for each confusion: the shortest ones, which are easiest to look at."""

Pair = tuple[str, str]
"""The gold relation of a word, and the one that a system gave it."""


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence with a confusion.

    number: of the sentence, from 1.  systems: its trees by the first and the last system, or by
    the only one.  words: those with the confusion in any of these, from 1.
    """

    number: int
    gold: Sentence
    systems: tuple[Sentence, ...]
    words: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Confusion:
    """A gold relation and another one given in its place.

    counts: words, of each system.  sentences: those in which the first or the last system has it,
    of which the examples are the shortest.
    """

    gold: str
    given: str
    counts: tuple[int, ...]
    sentences: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class RelationScores:
    """One relation of one system.

    gold, given: words that have it there.  right: words that have it in both, with the gold HEAD.
    Scores are in percent, 0 where there is nothing to score.
    """

    gold: int
    given: int
    right: int

    @property
    def precision(self) -> float:
        """Of the words that were given it, those that are right."""
        return 100.0 * self.right / max(1, self.given)

    @property
    def recall(self) -> float:
        """Of the words that have it in gold, those that are right: their LAS."""
        return 100.0 * self.right / max(1, self.gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of the two."""
        return 200.0 * self.right / max(1, self.gold + self.given)


class Confusions:
    """Counts of relations in gold and in each of some systems, with a few sentences of each pair.

    examples: sentences that are kept for each pair; 0 keeps none.
    """

    def __init__(self, systems: int, *, examples: int = EXAMPLES) -> None:
        self._counts: list[Counter[Pair]] = [Counter() for _ in range(systems)]
        self._right: list[Counter[str]] = [Counter() for _ in range(systems)]
        self._sentences: Counter[Pair] = Counter()
        self._examples: dict[Pair, list[tuple[int, int, Example]]] = {}
        self._most, self._number = examples, 0
        self._shown = (0,) if systems == 1 else (0, systems - 1)

    @classmethod
    def of(
        cls,
        gold: Iterable[Sentence],
        systems: Sequence[Iterable[Sentence]],
        *,
        examples: int = EXAMPLES,
    ) -> Confusions:
        """Of sentences with the same words.  Raises ValueError where the sides differ in length."""
        made = cls(len(systems), examples=examples)
        for sentence, *trees in zip(gold, *systems, strict=True):
            made.add(sentence, trees)
        return made

    def add(self, gold: Sentence, systems: Sequence[Sentence]) -> None:
        """Count a sentence, of which `systems` are the trees."""
        self._number += 1
        found: dict[Pair, set[int]] = {}
        for i, tree in enumerate(systems):
            hits = (gold.heads == tree.heads).tolist()
            pairs = list(zip(gold.deprels, tree.deprels, strict=True))
            self._counts[i].update(pairs)
            self._right[i].update(
                g for (g, s), hit in zip(pairs, hits, strict=True) if hit and g == s
            )
            if i in self._shown:
                for word, pair in enumerate(pairs, 1):
                    if pair[0] != pair[1]:
                        found.setdefault(pair, set()).add(word)
        shown = tuple(systems[i] for i in self._shown)
        for pair, words in found.items():
            self._sentences[pair] += 1
            own = self._examples.setdefault(pair, [])
            # The number decides among equally long ones, so examples are never compared.
            example = Example(self._number, gold, shown, tuple(sorted(words)))
            insort(own, (len(gold), self._number, example))
            del own[self._most :]

    def confusions(self, most: int | None = None) -> list[Confusion]:
        """The confusions that are most frequent in all systems together, at most so many."""
        total: Counter[Pair] = sum(self._counts, Counter())
        pairs = sorted(
            (pair for pair in total if pair[0] != pair[1]), key=lambda pair: (-total[pair], pair)
        )
        return [
            Confusion(
                *pair,
                counts=tuple(counts[pair] for counts in self._counts),
                sentences=self._sentences[pair],
                examples=tuple(example for _, _, example in self._examples.get(pair, ())),
            )
            for pair in pairs[:most]
        ]

    def kinds(self) -> int:
        """How many different confusions there are."""
        return len({pair for counts in self._counts for pair in counts if pair[0] != pair[1]})

    def relations(self) -> dict[str, tuple[RelationScores, ...]]:
        """Scores of each gold relation by each system, where the last one errs most first."""
        gold: Counter[str] = Counter()
        for (name, _), n in self._counts[0].items():
            gold[name] += n
        given: list[Counter[str]] = []
        for counts in self._counts:
            own: Counter[str] = Counter()
            for (_, name), n in counts.items():
                own[name] += n
            given.append(own)
        scores = {
            name: tuple(
                RelationScores(gold[name], own[name], right[name])
                for own, right in zip(given, self._right, strict=True)
            )
            for name in gold
        }
        return dict(
            sorted(scores.items(), key=lambda item: (item[1][-1].right - item[1][-1].gold, item[0]))
        )


def relations_table(
    relations: Mapping[str, Sequence[RelationScores]], names: Sequence[str]
) -> Table:
    """One row a relation: precision, recall and F1 of each system, several ones numbered."""
    several = len(names) > 1
    columns = [Column("relation", "relation", align="left"), Column("words", "words")]
    for heading in ("precision", "recall", "F1"):
        for i in range(len(names)):
            text = (f"{heading} {i + 1}" if not i else str(i + 1)) if several else heading
            columns.append(Column(text, f"{heading} {i + 1}", digits=1))
    if len(names) == 2:
        columns.append(Column("2-1", "f1 2-1"))
    rows = []
    for name, scores in relations.items():
        row: list[Cell] = [name, scores[0].gold]
        row += [getattr(of, metric) for metric in ("precision", "recall", "f1") for of in scores]
        if len(names) == 2:
            row.append(f"{scores[1].f1 - scores[0].f1:+.1f}")
        rows.append(tuple(row))
    notes = [f"{i}: {name}" for i, name in enumerate(names, 1)] if several else []
    return Table(
        title="By relation",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=(
            *notes,
            "right: with the gold HEAD and DEPREL; so recall is the LAS of the relation.",
        ),
    )


def confusions_table(confusions: Sequence[Confusion], names: Sequence[str], *, kinds: int) -> Table:
    """One row a confusion: how many words have it in each system.  kinds: of them in all."""
    several = len(names) > 1
    columns = [Column("gold", "gold", align="left"), Column("given", "given", align="left")]
    columns += [
        Column(f"words {i}" if several else "words", f"words {i}") for i in range(1, len(names) + 1)
    ]
    if len(names) == 2:
        columns.append(Column("2-1", "words 2-1"))
    columns.append(Column("sentences", "sentences"))
    rows = []
    for of in confusions:
        row: list[Cell] = [of.gold, of.given, *of.counts]
        if len(names) == 2:
            row += [f"{b - a:+,}" for a, b in pairwise(of.counts)]
        rows.append((*row, of.sentences))
    notes = [f"{i}: {name}" for i, name in enumerate(names, 1)] if several else []
    return Table(
        title="Relations taken for others",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=(*notes, f"{len(rows):,} of {kinds:,} kinds of confusions, the most frequent ones."),
    )


def differing_words(gold: Sentence, trees: Sequence[Sentence]) -> Iterator[int]:
    """The words, from 1, whose HEAD or DEPREL is not the gold one in each of the trees."""
    for i in range(len(gold)):
        if any(
            tree.heads[i] != gold.heads[i] or tree.deprels[i] != gold.deprels[i] for tree in trees
        ):
            yield i + 1
