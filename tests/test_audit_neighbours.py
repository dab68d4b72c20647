"""The arcs most like one: against the kernel counted by hand, property by property."""

from __future__ import annotations

import math

import pytest
from samples import sentence

from tk_spacy.audit.neighbours import Neighbours
from tk_spacy.audit.words import Words
from tk_spacy.features.schema import Schema
from tk_spacy.treebank.conllu import Sentence

SENTENCES = [
    sentence("owls/NOUN/2/nsubj see/VERB/0/root old/ADJ/4/amod mice/NOUN/2/obj"),
    sentence("bats/NOUN/2/nsubj see/VERB/0/root old/ADJ/4/amod rats/NOUN/2/obj"),
    sentence("old/ADJ/2/amod owls/NOUN/3/nsubj hear/VERB/0/root"),
    sentence("see/VERB/0/root mice/NOUN/1/obj"),
    *(sentence("bats/NOUN/2/nsubj see/VERB/0/root rats/NOUN/2/obj") for _ in range(3)),
]
BINS = (1, 2, 3, 4, 5, 7, 11, 21)


def properties(s: Sentence, schema: Schema, position: int) -> list[int]:
    return schema.encode(s).nodes[position].tolist()


def by_hand(
    schema: Schema, one: tuple[Sentence, int, int], other: tuple[Sentence, int, int]
) -> int:
    """The template kernel of two arcs without their relation: (sentence, head, modifier)."""

    def equal(a: list[int], b: list[int]) -> int:
        return sum(x == y != 0 for x, y in zip(a, b, strict=True))

    (s, h, m), (t, g, n) = one, other
    of_heads = equal(properties(s, schema, h), properties(t, schema, g))
    of_words = equal(properties(s, schema, m), properties(t, schema, n))
    bins = [sum(abs(a - b) >= least for least in BINS) for a, b in ((h, m), (g, n))]
    return of_heads * of_words * (1 + (h - m == g - n) + (bins[0] == bins[1]))


def test_nearest_arcs_are_those_of_the_kernel_counted_by_hand() -> None:
    words = Words.of(SENTENCES)
    schema = Schema.fit(SENTENCES, use_lemma=True)
    neighbours, cut = Neighbours(words), 0
    for row in range(13):
        s, position = words.place(row)
        for head in range(len(s) + 1):
            if head == position:
                with pytest.raises(ValueError, match="as its own head"):
                    neighbours.of(row, head)
                continue
            near = neighbours.of(row, head)
            expected: dict[int, float] = {}
            for other in range(len(words)):
                if words.sentence[other] == words.sentence[row]:
                    continue
                t, m = words.place(other)
                one, two = (s, head, position), (t, int(t.heads[m - 1]), m)
                if common := by_hand(schema, one, two):
                    own = by_hand(schema, one, one) * by_hand(schema, two, two)
                    expected[other] = common / math.sqrt(own)
            # The nearest ten; of equally near ones the first.
            nearest = sorted(expected, key=lambda other: (-round(expected[other], 9), other))[:10]
            cut += len(expected) > 10
            assert near.rows.tolist() == nearest
            assert near.likeness.tolist() == pytest.approx([expected[i] for i in nearest])
            assert near.labels(words).total() == len(near.rows)
    assert cut > 1


def test_the_same_arc_elsewhere_is_the_nearest() -> None:
    words = Words.of(SENTENCES)
    near = Neighbours(words).of(2, 4)  # old, of mice
    assert near.rows[0] == 6  # old, of rats
    assert near.labels(words).most_common(1)[0][0] == "amod"
