"""What might stand in the place of a suspicious annotation, and the words that argue for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tk_spacy.audit.neighbours import Neighbours
from tk_spacy.audit.parsed import FLOOR
from tk_spacy.audit.ranking import Evidence
from tk_spacy.audit.variation_ngrams import NIL, Variation
from tk_spacy.audit.words import Words
from tk_spacy.evaluation.well_formed import own_violations
from tk_spacy.trees.validity import check_tree

OF_LABELS = ("label given tags", "label given lemmas", "label given markers")
ROOT = "root"
SHOWN = 2
"""Sentences that are named in an argument."""
LEAST_SEEN = 3
"""Words that have a relation under such tags, or it is proposed by a parser alone."""
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
        self._rows: dict[tuple[str, str, str, str], list[int]] = {}
        self._broken: dict[int, Mapping[str, NDArray[np.bool_]]] = {}
        self._head_tags, self._sides = words.of_head(words.upos), words.directions
        for row, label in enumerate(words.deprels):
            self._rows.setdefault(self._key(row, label), []).append(row)

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours(self._words)

    def of(self, row: int) -> Proposal | None:
        """The proposal for a word, None where nothing else is likelier than what stands there."""
        for propose in (self._varied, self._parsed, self._expected):
            proposal = propose(row)
            if proposal is not None:
                return self._with_neighbours(row, proposal)
        return None

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
        _, position = words.place(row)
        stays = proposal.head == position + int(words.heads[row]) - row
        arc = "it" if stays else "the one proposed"
        otherwise = f" and {labels[words.deprels[row]]} {words.deprels[row]}" if stays else ""
        reason = (
            f"Of the {len(near.rows)} arcs most like {arc} by the template kernel {len(agree)} are "
            f"{proposal.label}{otherwise}; the nearest: {named}."
        )
        like = tuple(dict.fromkeys((*proposal.like, *agree)))[:LIKE]
        return replace(proposal, reasons=(*proposal.reasons, reason), like=like)

    def _expected(self, row: int) -> Proposal | None:
        """The likeliest relation that can be, the head being as it is.

        It must be likelier than what stands there, have been seen, and break no rule anew.
        """
        words, evidence = self._words, self._evidence
        if words.heads[row] < 0:
            return None
        votes: dict[str, float] = {}
        for name in OF_LABELS:
            found = evidence.expected[name]
            label = evidence.labels[found.best[row]]
            votes[label] = votes.get(label, 0.0) + float(found.margin[row])
        _, position = words.place(row)
        head = position + int(words.heads[row]) - row
        for label in sorted(votes, key=lambda label: -votes[label]):
            if label == words.deprels[row] or votes[label] <= 0:
                return None
            if self._seen(row, label) >= LEAST_SEEN and self._is_sound(row, head, label):
                return Proposal(head, label, tuple(self._reasons(row, label)))
        return None

    def _parsed(self, row: int) -> Proposal | None:
        """What parsers would have, as long as it is a tree."""
        words, parsed = self._words, self._evidence.parsed
        if parsed is None or parsed.margin[row] <= 0:
            return None
        _, position = words.place(row)
        there = int(parsed.heads[row])
        head = 0 if there < 0 else position + there - row
        label = parsed.labels[row]
        if not self._is_sound(row, head, label):
            return None
        own = float(parsed.own[row])
        there_with = f"with {100 * own:.2g} %" if own > FLOOR else "not at all"
        reason = (
            f"Parsers that never saw this sentence make it {label} of word {head} with "
            f"{100 * float(parsed.best_p[row]):.0f} %, and what stands there {there_with}."
        )
        others = self._reasons(row, label) if there == words.heads[row] and there >= 0 else ()
        return Proposal(head, label, (reason, *others))

    def _is_sound(self, row: int, head: int, label: str) -> bool:
        """Whether a word's sentence stays a tree with another arc, and breaks no rule of UD anew.

        Two roots break one, as do two objects: such a proposal would need another one beside it.
        """
        sentence, position = self._words.place(row)
        heads, labels = np.array(sentence.heads), list(sentence.deprels)
        heads[position - 1], labels[position - 1] = head, label
        if (head == 0) != (label == ROOT) or check_tree(heads, single_root=False) is not None:
            return False
        number = int(self._words.sentence[row])
        if number not in self._broken:
            self._broken[number] = own_violations(sentence).at
        new = own_violations(sentence.with_tree(heads, labels, single_root=False)).at
        known = self._broken[number]
        nowhere = np.zeros((1, len(sentence)), dtype=np.bool_)
        return not any((at & ~known.get(kind, nowhere)).any() for kind, at in new.items())

    def _varied(self, row: int) -> Proposal | None:
        """What the same string has elsewhere, the closest match first; as long as it is a tree."""
        words = self._words
        for level, varied in self._evidence.variations.items():
            if varied.margin[row] <= 0 or varied.labels[row] in (NIL, ""):
                continue
            _, position = words.place(row)
            head = position + int(varied.heads[row]) - row
            if not self._is_sound(row, head, varied.labels[row]):
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

    def _seen(self, row: int, label: str) -> int:
        """How often other words of such tags have the relation, see `_key`."""
        return sum(other != row for other in self._rows.get(self._key(row, label), ()))

    def _key(self, row: int, label: str) -> tuple[str, str, str, str]:
        """Tags of a word and its head, the side of the head, and a relation."""
        return self._words.upos[row], self._head_tags[row], self._sides[row], label

    def _reasons(self, row: int, label: str) -> Iterator[str]:
        words = self._words
        tag, head = words.upos[row], self._head_tags[row]
        article = "An" if tag.startswith(tuple("AEIOU")) else "A"
        side = "before" if self._sides[row] == "<" else "after"
        times, own = self._seen(row, label), self._seen(row, words.deprels[row])
        if times > own:
            yield (
                f"{article} {tag} {side} the {head} that it hangs on is {label} {times} times "
                f"elsewhere, and {words.deprels[row]} {own} times."
            )
        found = self._evidence.expected["label given markers"]
        if self._evidence.labels[found.best[row]] == label and found.margin[row] > 0:
            marked = f"marked by {words.markers[row]!r}" if words.markers[row] else "without marker"
            yield (
                f"With its features, {marked}, on this side of its head, the estimate is "
                f"{100 * found.best_p[row]:.0f} % for {label} and {100 * found.own[row]:.1f} % for "
                f"{words.deprels[row]}."
            )
        like = [
            other
            for other in self._rows.get(self._key(row, label), ())
            if words.lemmas[other] == words.lemmas[row] and other != row
        ]
        if like:
            names = dict.fromkeys(words.name(int(words.sentence[other])) for other in like)
            shown = ", ".join(list(names)[:SHOWN])
            yield f"{words.lemmas[row]!r} itself is {label} so in {shown}."
