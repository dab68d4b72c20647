"""What a person reads: entries, each of the words that one edit would mend, in two lists.

Words belong to one entry where the one is the other's head, both are suspicious, and both stand in
one sentence: whoever moves an arc mostly mends its neighbours, too.  Entries of one pattern (tags,
relation, side of the head, and the relation proposed) that recur are a systematic inconsistency,
told once; all others are scattered mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tk_spacy.audit.proposals import Proposal
from tk_spacy.audit.words import Words
from tk_spacy.utils.array_types import Float64

SYSTEMATIC = 5
"""Entries of one pattern that make it systematic."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Words of one sentence that belong together, the most suspicious first.

    rows: their rows.  confidence: that the first is a mistake, 0..1.
    proposal: for the first, if there is any.
    """

    rows: tuple[int, ...]
    confidence: float
    proposal: Proposal | None


@dataclass(frozen=True, slots=True)
class Pattern:
    """What entries may have in common: tags, relation, side of the head, relation proposed."""

    tag: str
    label: str
    head_tag: str
    side: str
    proposed: str

    def query(self) -> str:
        """The pattern in Grew's syntax, for all arcs that are annotated so."""
        label = f"H -[{self.label}]-> D"
        if self.side == "0":
            return f'pattern {{ H [form="__0__"]; D [upos={self.tag}]; {label} }}'
        order = "D << H" if self.side == "<" else "H << D"
        return f"pattern {{ H [upos={self.head_tag}]; D [upos={self.tag}]; {label}; {order} }}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A systematic inconsistency: entries of one pattern.

    annotated: arcs of the treebank that the pattern's query finds.
    otherwise: arcs of the same tags and side that have the relation proposed.
    """

    pattern: Pattern
    entries: tuple[Entry, ...]
    annotated: int
    otherwise: int


def make_entries(
    words: Words,
    scores: Float64,
    propose: Callable[[int], Proposal | None],
    *,
    most: int,
    ignored: Callable[[int], bool] = lambda row: False,
) -> list[Entry]:
    """The most suspicious entries, in falling order.

    scores: float64[n].  propose: for a row.  most: words to make entries of.
    ignored: whether a row was looked at and is right.
    """
    order: list[int] = []
    for row in (-scores).argsort(kind="stable").tolist():
        if len(order) == most:
            break
        if not ignored(row):
            order.append(row)
    chosen = set(order)
    heads = words.heads.tolist()
    group = {row: row for row in order}

    def top(row: int) -> int:
        while group[row] != row:
            row = group[row]
        return row

    for row in order:
        if heads[row] in chosen:
            group[top(row)] = top(heads[row])
    members: dict[int, list[int]] = {}
    for row in order:
        members.setdefault(top(row), []).append(row)
    found = [
        Entry(tuple(rows), float(scores[rows[0]]), propose(rows[0])) for rows in members.values()
    ]
    return sorted(found, key=lambda entry: -entry.confidence)


def pattern_of(words: Words, entry: Entry) -> Pattern | None:
    """The pattern of an entry; None where nothing is proposed, or another head."""
    row, proposal = entry.rows[0], entry.proposal
    _, position = words.place(row)
    head = int(words.heads[row])
    if proposal is None or head < 0 or proposal.head != position + head - row:
        return None
    side = "<" if row < head else ">"
    return Pattern(words.upos[row], words.deprels[row], words.upos[head], side, proposal.label)


def in_two_lists(
    words: Words, entries: Sequence[Entry], *, least: int = SYSTEMATIC
) -> tuple[list[Entry], list[Cluster]]:
    """Scattered mistakes, and systematic inconsistencies, the most entries first.

    least: entries of one pattern that make it systematic.
    """
    of_pattern: dict[Pattern, list[Entry]] = {}
    for entry in entries:
        if (pattern := pattern_of(words, entry)) is not None:
            of_pattern.setdefault(pattern, []).append(entry)
    large = {pattern: found for pattern, found in of_pattern.items() if len(found) >= least}
    systematic = {entry.rows for found in large.values() for entry in found}
    scattered = [entry for entry in entries if entry.rows not in systematic]
    arcs = list(
        zip(words.upos, words.of_head(words.upos), words.directions, words.deprels, strict=True)
    )
    clusters = [
        Cluster(
            pattern,
            tuple(found),
            _count(arcs, pattern, pattern.label),
            _count(arcs, pattern, pattern.proposed),
        )
        for pattern, found in large.items()
    ]
    return scattered, sorted(clusters, key=lambda cluster: -len(cluster.entries))


def _count(arcs: Iterable[tuple[str, str, str, str]], pattern: Pattern, label: str) -> int:
    return sum(arc == (pattern.tag, pattern.head_tag, pattern.side, label) for arc in arcs)


def outline(words: Words, row: int) -> str:
    """What stands there, in one line: "sleep -nsubj-> owls"; ROOT is above a tree."""
    head = int(words.heads[row])
    other = "ROOT" if head < 0 else words.forms[head]
    return f"{other} -{words.deprels[row]}-> {words.forms[row]}"
