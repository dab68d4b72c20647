"""What might stand in the place of a suspicious annotation, and the words that argue for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tk_spacy.audit.neighbours import Neighbours
from tk_spacy.audit.ranking import Evidence
from tk_spacy.audit.variation_ngrams import NIL, Variation
from tk_spacy.audit.words import Words
from tk_spacy.trees.validity import check_tree

OF_LABELS = ("label given tags", "label given lemmas", "label given markers")
ROOT = "root"
SHOWN = 2
"""Sentences that are named in an argument."""
LIKE = 3
"""Words that argue for a proposal."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another annotation of a word.

    head: its number in the sentence, 0 for the root.  label: DEPREL.
    reasons: sentences of plain English that argue for it.  like: rows of words whose annotation
    argues for it, the nearest first.
    """

    head: int
    label: str
    reasons: tuple[str, ...]
    like: tuple[int, ...] = ()


class Proposer:
    """Finds what to propose for words, one at a time."""

    def __init__(self, words: Words, evidence: Evidence) -> None:
        self._words, self._evidence = words, evidence
        self._rows: dict[tuple[str, str, str], list[int]] = {}
        self._head_tags = words.of_head(words.upos)
        for row, label in enumerate(words.deprels):
            key = words.upos[row], self._head_tags[row], label
            self._rows.setdefault(key, []).append(row)

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours(self._words)

    def of(self, row: int) -> Proposal | None:
        """The proposal for a word, None where nothing else is likelier than what stands there."""
        proposal = self._varied(row) or self._parsed(row) or self._expected(row)
        return None if proposal is None else self._with_neighbours(row, proposal)

    def _with_neighbours(self, row: int, proposal: Proposal) -> Proposal:
        """The proposal, with the arcs that are most like the one proposed as far as they agree."""
        words = self._words
        near = self._neighbours.of(row, proposal.head)
        labels = near.labels(words)
        agree = [other for other in near.rows.tolist() if words.deprels[other] == proposal.label]
        if not agree or labels[proposal.label] < max(labels.values()):
            return proposal
        named = ", ".join(
            f"{words.name(int(words.sentence[other]))} (word {words.place(other)[1]})"
            for other in agree[:SHOWN]
        )
        reason = (
            f"Of the {len(near.rows)} arcs most like it by the template kernel {len(agree)} are "
            f"{proposal.label} and {labels[words.deprels[row]]} {words.deprels[row]}; the nearest: "
            f"{named}."
        )
        if words.deprels[row] == proposal.label:
            reason = (
                f"Of the {len(near.rows)} arcs most like the one proposed by the template kernel "
                f"{len(agree)} are {proposal.label}; the nearest: {named}."
            )
        like = tuple(dict.fromkeys((*proposal.like, *agree)))[:LIKE]
        return replace(proposal, reasons=(*proposal.reasons, reason), like=like)

    def _expected(self, row: int) -> Proposal | None:
        """The relation that is the likeliest, the head being as it is."""
        words, evidence = self._words, self._evidence
        if words.heads[row] < 0:
            return None
        votes: dict[str, float] = {}
        for name in OF_LABELS:
            found = evidence.expected[name]
            label = evidence.labels[found.best[row]]
            votes[label] = votes.get(label, 0.0) + float(found.margin[row])
        votes = {label: vote for label, vote in votes.items() if label != ROOT}
        if not votes:
            return None
        label = max(votes, key=lambda label: votes[label])
        if label == words.deprels[row]:
            return None
        _, position = words.place(row)
        head = position + int(words.heads[row]) - row
        return Proposal(head, label, tuple(self._reasons(row, label)))

    def _parsed(self, row: int) -> Proposal | None:
        """What parsers would have, as long as it is a tree."""
        words, parsed = self._words, self._evidence.parsed
        if parsed is None or parsed.margin[row] <= 0:
            return None
        _, position = words.place(row)
        there = int(parsed.heads[row])
        head = 0 if there < 0 else position + there - row
        label = parsed.labels[row]
        if not self._is_tree(row, head):
            return None
        own = 100 * float(parsed.own[row])
        reason = (
            f"Parsers that never saw this sentence make it {label} of word {head} with "
            f"{100 * float(parsed.best_p[row]):.0f} %, and what stands there with {own:.2g} %."
        )
        others = self._reasons(row, label) if there == words.heads[row] and there >= 0 else ()
        return Proposal(head, label, (reason, *others))

    def _is_tree(self, row: int, head: int) -> bool:
        """Whether a word's sentence stays a tree with another head of the word."""
        sentence, position = self._words.place(row)
        heads = np.array(sentence.heads)
        heads[position - 1] = head
        return check_tree(heads, single_root=False) is None

    def _varied(self, row: int) -> Proposal | None:
        """What the same string has elsewhere, the closest match first; as long as it is a tree."""
        words = self._words
        for level, varied in self._evidence.variations.items():
            if varied.margin[row] <= 0 or varied.labels[row] in (NIL, ""):
                continue
            _, position = words.place(row)
            head = position + int(varied.heads[row]) - row
            if not self._is_tree(row, head):
                continue
            reasons = (self._same_string(row, level, varied),)
            return Proposal(head, varied.labels[row], reasons, (int(varied.witnesses[row]),))
        return None

    def _same_string(self, row: int, level: str, varied: Variation) -> str:
        words = self._words
        _, position = words.place(row)
        witness = int(varied.witnesses[row])
        sentence, there = words.place(witness)
        other, head = position + int(varied.heads[row]) - row, int(sentence.heads[there - 1])
        same = {"forms": "The same words", "lemmas": "The same lemmas", "tags": "The same tags"}
        return (
            f"{same[level]} around {sentence.forms[there - 1]!r} stand in "
            f"{words.name(int(words.sentence[witness]))} (word {there}), where it is "
            f"{varied.labels[row]} of word {head}; here that would be word {other}."
        )

    def _reasons(self, row: int, label: str) -> Iterator[str]:
        words = self._words
        tag, head = words.upos[row], self._head_tags[row]
        counts = {
            name: sum(other != row for other in self._rows.get((tag, head, name), ()))
            for name in (label, words.deprels[row])
        }
        yield (
            f"A {tag} under a {head} is {label} {counts[label]} times elsewhere, and "
            f"{words.deprels[row]} {counts[words.deprels[row]]} times."
        )
        found = self._evidence.expected["label given markers"]
        if self._evidence.labels[found.best[row]] == label:
            marked = f"marked by {words.markers[row]!r}" if words.markers[row] else "without marker"
            yield (
                f"With its features, {marked}, on this side of its head, the estimate is "
                f"{100 * found.best_p[row]:.0f} % for {label} and {100 * found.own[row]:.1f} % for "
                f"{words.deprels[row]}."
            )
        like = [
            other
            for other in self._rows.get((tag, head, label), ())
            if words.lemmas[other] == words.lemmas[row] and other != row
        ]
        if like:
            names = dict.fromkeys(words.name(int(words.sentence[other])) for other in like)
            shown = ", ".join(list(names)[:SHOWN])
            yield f"{words.lemmas[row]!r} itself is {label} so in {shown}."
