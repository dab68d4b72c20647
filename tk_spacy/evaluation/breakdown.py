"""Where systems err: attachment scores of groups of words, by relation, tag, length and the like.

A word belongs to the group that its gold arc, tag or sentence tells, so that the groups of a
grouping are the same for every system, and their words add up to all words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tk_spacy.treebank.sentence import Sentence
from tk_spacy.trees.crossing import crossing_arcs
from tk_spacy.utils.tables import Cell, Column, Table

Pair = tuple[Sentence, Sentence]

# Kinds by universal relation, as the table of relations of universaldependencies.org has them; its
# smallest boxes are one kind here, and conjunctions go with the conjuncts that they join.
_KINDS = {
    "punctuation": ("punct",),
    "coordination": ("conj", "cc"),
    "function words": ("aux", "case", "clf", "cop", "det", "mark"),
    "core arguments": ("nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp"),
    "other dependents of predicates": (
        "obl", "vocative", "expl", "dislocated", "advcl", "advmod", "discourse",
    ),
    "dependents of nominals": ("nmod", "appos", "nummod", "acl", "amod"),
    "multiword": ("compound", "fixed", "flat", "goeswith"),
}  # fmt: skip
_KIND_OF = {relation: kind for kind, relations in _KINDS.items() for relation in relations}
ROOT, OTHER = "root", "other"

_BANDS = ((1, "1"), (2, "2"), (6, "3-6"))
_LONG = "7+"
_LENGTHS = (*(name for _, name in _BANDS), _LONG)
_SENTENCE_BANDS = (5, 10, 20, 30, 40, 60)
_SENTENCES = (
    *(f"{low + 1}-{high}" for low, high in zip((0, *_SENTENCE_BANDS), _SENTENCE_BANDS)),  # noqa: B905
    f"{_SENTENCE_BANDS[-1] + 1}+",
)
CROSSING, PLAIN = "crosses another", "crosses none"

_HEAD, _LABEL = 1, 2  # bits of an outcome
_OUTCOMES = range(4)


@dataclass(frozen=True, slots=True)
class Grouping:
    """A way to divide words.

    groups: the group of each word of a gold sentence.
    order: of the groups in tables: "errors" and "words" put the largest number first; or the groups
        themselves, where they have an order of their own.
    """

    heading: str
    groups: Callable[[Sentence], Sequence[str]]
    order: Literal["errors", "words"] | tuple[str, ...]
    note: str | None = None


def _lengths(gold: Sentence) -> list[str]:
    return [_band(abs(h - m)) if h else ROOT for m, h in enumerate(gold.heads.tolist(), 1)]


def _signed_lengths(gold: Sentence) -> list[str]:
    return [
        _signed(_band(abs(h - m)), left=h < m) if h else ROOT
        for m, h in enumerate(gold.heads.tolist(), 1)
    ]


def _band(length: int) -> str:
    return next((name for most, name in _BANDS if length <= most), _LONG)


def _signed(band: str, *, left: bool) -> str:
    return f"head {band} to the {'left' if left else 'right'}"


def _sentence_band(gold: Sentence) -> list[str]:
    place = sum(len(gold) > most for most in _SENTENCE_BANDS)
    return [_SENTENCES[place]] * len(gold)


def _crossing(gold: Sentence) -> list[str]:
    return [CROSSING if crosses else PLAIN for crosses in crossing_arcs(gold.heads.tolist())]


def _kinds(gold: Sentence) -> list[str]:
    return [
        _KIND_OF.get(deprel.split(":")[0], OTHER) if head else ROOT
        for head, deprel in zip(gold.heads.tolist(), gold.deprels, strict=True)
    ]


GROUPINGS: dict[str, Grouping] = {
    "deprel": Grouping("relation", lambda gold: gold.deprels, "errors"),
    "upos": Grouping("UPOS", lambda gold: gold.upos, "words"),
    "length": Grouping(
        "distance", _lengths, (ROOT, *_LENGTHS), "distance: of the gold head, in words."
    ),
    "signed-length": Grouping(
        "distance",
        _signed_lengths,
        (
            ROOT,
            *(_signed(band, left=True) for band in reversed(_LENGTHS)),
            *(_signed(band, left=False) for band in _LENGTHS),
        ),
        "distance: of the gold head, in words.",
    ),
    "sentence": Grouping("words in the sentence", _sentence_band, _SENTENCES),
    "projective": Grouping(
        "gold arc",
        _crossing,
        "words",
        "Arcs cross where exactly one end of one lies between the ends of the other; the root's "
        "arc starts before the first word.",
    ),
    "kind": Grouping(
        "kind",
        _kinds,
        "words",
        "; ".join(f"{kind}: {', '.join(names)}" for kind, names in _KINDS.items())
        + "; root: HEAD 0; other: the rest.",
    ),
}  # fmt: skip
PAGE_GROUPINGS = ("length", "sentence", "upos")
"""Those that pages show beside relations, asked for or not."""


@dataclass(frozen=True, slots=True)
class GroupScores:
    """Counts of the words of one group.

    heads: words with the gold HEAD; labels: with the gold DEPREL, whatever their HEAD; labelled:
    with both.  The scores are in percent, of full labels.
    """

    words: int
    heads: int
    labels: int
    labelled: int

    @property
    def errors(self) -> int:
        """Words that LAS counts as wrong."""
        return self.words - self.labelled

    @property
    def uas(self) -> float:
        """Words with the gold HEAD."""
        return 100.0 * self.heads / self.words

    @property
    def las(self) -> float:
        """Words with the gold HEAD and DEPREL."""
        return 100.0 * self.labelled / self.words

    @property
    def label_accuracy(self) -> float:
        """Words with the gold DEPREL."""
        return 100.0 * self.labels / self.words

    def to_dict(self) -> dict[str, int | float]:
        """JSON values."""
        return {
            "uas": self.uas,
            "las": self.las,
            "label_accuracy": self.label_accuracy,
            "heads": self.heads,
            "labels": self.labels,
            "labelled": self.labelled,
            "errors": self.errors,
        }


class Breakdown:
    """The counts of one system by the groups of some groupings, in constant memory.

    groupings: keys of GROUPINGS; ValueError for others.
    """

    def __init__(self, groupings: Iterable[str]) -> None:
        self._counts: dict[str, Counter[tuple[str, int]]] = {}
        for name in groupings:
            if name not in GROUPINGS:
                raise ValueError(f"grouping must be one of {', '.join(GROUPINGS)}, got {name!r}")
            self._counts[name] = Counter()

    def watch(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Pass pairs of a gold and a system's sentence on (`attachment.aligned`), counting them."""
        for gold, system in pairs:
            if self._counts:
                self._count(gold, system)
            yield gold, system

    def _count(self, gold: Sentence, system: Sentence) -> None:
        hits = (gold.heads == system.heads).tolist()
        labels = zip(gold.deprels, system.deprels, strict=True)
        outcomes = [
            _HEAD * hit | _LABEL * (g == s) for hit, (g, s) in zip(hits, labels, strict=True)
        ]
        for name, counts in self._counts.items():
            counts.update(zip(GROUPINGS[name].groups(gold), outcomes, strict=True))

    def scores(self, grouping: str) -> dict[str, GroupScores]:
        """The scores of each group that has words, in no special order."""
        counts = self._counts[grouping]
        return {
            group: GroupScores(
                words=sum(counts[group, outcome] for outcome in _OUTCOMES),
                heads=counts[group, _HEAD] + counts[group, _HEAD | _LABEL],
                labels=counts[group, _LABEL] + counts[group, _HEAD | _LABEL],
                labelled=counts[group, _HEAD | _LABEL],
            )
            for group in dict.fromkeys(group for group, _ in counts)
        }


def ordered_groups(grouping: str, systems: Sequence[Breakdown]) -> list[str]:
    """The groups in the order of their table: errors are the last system's."""
    scores = systems[-1].scores(grouping)
    order = GROUPINGS[grouping].order
    if isinstance(order, tuple):
        return [group for group in order if group in scores]
    return sorted(scores, key=lambda group: (-getattr(scores[group], order), group))


def breakdown_table(grouping: str, systems: Mapping[str, Breakdown]) -> Table:
    """One row a group; with several systems their scores side by side, numbered.

    systems: by name, of the same gold sentences.  Of two systems, the second's gain is shown, too.
    """
    found = list(systems.values())
    scores = [system.scores(grouping) for system in found]
    total = sum(group.words for group in scores[0].values())
    one, two = len(found) == 1, len(found) == 2
    numbers = [str(i) for i in range(1, len(found) + 1)]
    with_labels = grouping == "deprel"
    columns = [
        Column(GROUPINGS[grouping].heading, "group", align="left"),
        Column("words", "words"),
        Column("%", "share", digits=1),
    ]
    for metric, heading, shown in (
        ("uas", "UAS", True),
        ("las", "LAS", True),
        ("label_accuracy", "LA", with_labels),
        ("errors", "errors", True),
    ):
        if shown:
            names = [heading] if one else [f"{heading} 1", *numbers[1:]]
            columns += [Column(name, f"{metric} {i}") for i, name in enumerate(names, 1)]
        if shown and two:
            columns.append(Column("2-1", f"{metric} 2-1"))
    rows = []
    for group in ordered_groups(grouping, found):
        own = [of_system[group] for of_system in scores]
        row: list[Cell] = [group, own[0].words, 100.0 * own[0].words / total]
        for metric in ("uas", "las", *(["label_accuracy"] if with_labels else [])):
            values = [getattr(cell, metric) for cell in own]
            row += [*values, *([f"{values[1] - values[0]:+.2f}"] if two else [])]
        errors = [cell.errors for cell in own]
        row += [*errors, *([f"{errors[1] - errors[0]:+,}"] if two else [])]
        rows.append(tuple(row))
    notes = [] if one else [f"{i}: {name}" for i, name in enumerate(systems, 1)]
    about = "errors: words without the gold HEAD and DEPREL"
    notes.append(f"{about}; LA: words with the gold DEPREL." if with_labels else f"{about}.")
    notes += [note] if (note := GROUPINGS[grouping].note) else []
    return Table(
        title=f"By {grouping}", columns=tuple(columns), rows=tuple(rows), notes=tuple(notes)
    )


def breakdown_records(grouping: str, systems: Mapping[str, Breakdown]) -> list[dict[str, Any]]:
    """The same for JSON: one dict a group, numbers unrounded."""
    found = list(systems.values())
    scores = [system.scores(grouping) for system in found]
    records = []
    for group in ordered_groups(grouping, found):
        own = [of_system[group] for of_system in scores]
        record: dict[str, Any] = {
            "group": group,
            "words": own[0].words,
            "systems": [
                {"file": name, **cell.to_dict()} for name, cell in zip(systems, own, strict=True)
            ],
        }
        if len(own) == 2:
            record["difference"] = {
                name: getattr(own[1], name) - getattr(own[0], name)
                for name in ("uas", "las", "label_accuracy", "errors")
            }
        records.append(record)
    return records
