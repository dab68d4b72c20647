"""The signals of an audit that need no parser, against counting by hand and by plain loops."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from samples import corrupted, sentence

from tk_spacy.audit.backoff import leave_one_out
from tk_spacy.audit.entries import outline
from tk_spacy.audit.parsed import FLOOR, judge
from tk_spacy.audit.rarity import attachments, label_given_tags, rarities, tag
from tk_spacy.audit.rules import broken_rules
from tk_spacy.audit.variation_ngrams import NIL, variation
from tk_spacy.audit.words import EDGE, Words, ids
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.treebank.synthetic import generate

SLEEP = "old/ADJ/2/amod owls/NOUN/3/nsubj sleep/VERB/0/root"


def plain_probability(outcomes, contexts, word, outcome, n_outcomes) -> Fraction:
    """Witten and Bell's interpolation with the word taken out, by counting the others."""
    others = [i for i in range(len(outcomes)) if i != word]
    p = Fraction(1, n_outcomes)
    for context in contexts:
        seen = Counter(outcomes[i] for i in others if context[i] == context[word])
        if seen:
            total, kinds = sum(seen.values()), len(seen)
            p = (seen[outcome] + kinds * p) / (total + kinds)
    return p


def test_audit_backoff_of_three_words():
    one = np.zeros(3, np.int32)
    found = leave_one_out(np.array([0, 0, 1], np.int32), [one], n_outcomes=2)
    # The first has one 0 and one 1 beside it, the last two 0.
    np.testing.assert_allclose(found.own, [0.5, 0.5, 1 / 6], rtol=1e-6)
    assert found.best[2] == 0
    assert found.margin[2] == pytest.approx(5 / 6 - 1 / 6)
    assert found.surprise[2] == pytest.approx(math.log(6))
    assert found.seen.tolist() == [2, 2, 2]


@pytest.mark.parametrize("seed", range(5))
def test_audit_backoff_equals_plain_counting(seed):
    rng = random.Random(seed)
    n, kinds = 30, 4
    outcomes = [rng.randrange(kinds) for _ in range(n)]
    coarse = [rng.randrange(2) for _ in range(n)]
    fine = [2 * rng.randrange(6) + c for c in coarse]
    arrays = [np.array(column, np.int32) for column in (outcomes, coarse, fine)]
    found = leave_one_out(arrays[0], arrays[1:], n_outcomes=kinds)
    for word in range(n):
        p = [plain_probability(outcomes, [coarse, fine], word, y, kinds) for y in range(kinds)]
        assert found.own[word] == pytest.approx(float(p[outcomes[word]]), rel=1e-5)
        assert found.best_p[word] == pytest.approx(float(max(p)), rel=1e-5)
        assert sum(p) == 1


def test_audit_backoff_without_words():
    none = np.zeros(0, np.int32)
    assert len(leave_one_out(none, [none], n_outcomes=3).own) == 0


def test_audit_words_know_the_tree_around_them():
    words = Words.of([sentence(SLEEP, "a"), sentence("in/ADP/2/case woods/NOUN/0/root", "b")])
    assert words.heads.tolist() == [1, 2, -1, 4, -1]
    assert words.of_head(words.upos) == ["NOUN", "VERB", EDGE, "NOUN", EDGE]
    assert words.beside(words.forms, 1) == ["owls", "sleep", EDGE, "woods", EDGE]
    assert words.directions == ["<", "<", "0", "<", "0"]
    assert words.distances == [1, 1, 0, 1, 0]
    assert words.markers == ["", "", "", "", "in"]
    assert [words.place(row)[1] for row in range(5)] == [1, 2, 3, 1, 2]
    assert words.name(1) == "b"


def test_audit_words_need_trees():
    with pytest.raises(ValueError, match="sentence x has no tree"):
        Words.of([sentence("owls/NOUN/-1/_", "x")])


def test_audit_distances_are_binned():
    flat = " ".join(f"w{i}/X/{int(i > 0)}/{'dep' if i else 'root'}" for i in range(13))
    words = Words.of([sentence(flat)])
    assert words.distances == [0, 1, 2, 3, 4, 5, 5, 7, 7, 7, 7, 11, 11]


def test_audit_rarity_finds_the_odd_relation():
    odd = SLEEP.replace("nsubj", "obj")
    words = Words.of([*(sentence(SLEEP) for _ in range(9)), sentence(odd)])
    labels = ids(words.deprels)
    for name, found in rarities(words, labels, n_labels=4):
        if name.startswith("label"):
            assert int(found.surprise.argmax()) == 9 * 3 + 1, name
    found = label_given_tags(words, labels, n_labels=4)
    # Of the nine other owls all are subjects: one kind, nine times, over the tag alone (the same).
    p = (0 + (0 + Fraction(1, 4)) / 10) / 10
    assert found.own[28] == pytest.approx(float(p), rel=1e-5)
    assert words.deprels[int(np.flatnonzero(labels == found.best[28])[0])] == "nsubj"


def test_audit_attachment_and_tag_name_their_outcomes():
    words = Words.of([sentence(SLEEP)])
    places, names = attachments(words)
    assert [names[i] for i in places] == ["<1 NOUN", "<1 VERB", "00 <edge>"]
    other = sentence(SLEEP.replace("owls/NOUN", "owls/VERB"))
    found = tag(Words.of([*(sentence(SLEEP) for _ in range(5)), other]))
    assert int(found.surprise.argmax()) == 5 * 3 + 1


def ngrams(*texts: str, level: str = "forms"):
    words = Words.of([sentence(text) for text in texts])
    return words, variation(words, level)


def test_audit_variation_of_a_relation():
    odd = SLEEP.replace("amod", "nmod")
    words, found = ngrams(SLEEP, SLEEP, SLEEP, odd)
    # Three others say amod, none nmod: (3 - 0) / (3 + 1).
    assert found.margin[9] == pytest.approx(0.75)
    assert found.labels[9] == "amod"
    assert found.heads[9] == 10
    assert words.deprels[found.witnesses[9]] == "amod"
    # Of the others' three, two say amod and one nmod: (1 - 2) is no reason for doubt.
    assert found.margin[0] == 0
    assert found.labels[0] == ""


def test_audit_variation_of_an_arc_that_is_not_there():
    flat = "old/ADJ/3/amod owls/NOUN/3/nsubj sleep/VERB/0/root"
    _, found = ngrams(SLEEP, SLEEP, flat)
    # The pair old owls has no arc here, but twice elsewhere: laid to the dependent.
    assert found.margin[6] == pytest.approx(2 / 3)
    assert (found.heads[6], found.labels[6]) == (7, "amod")
    assert found.margin[7] == 0


def test_audit_variation_of_an_arc_that_only_stands_here():
    flat = "old/ADJ/3/amod owls/NOUN/3/nsubj sleep/VERB/0/root"
    _, found = ngrams(flat, flat, SLEEP)
    assert found.labels[6] in (NIL, "amod")
    assert found.margin[6] == pytest.approx(2 / 3)


def test_audit_variation_needs_equal_neighbours():
    other = "old/ADJ/2/nmod owls/NOUN/3/nsubj hoot/VERB/0/root"
    _, found = ngrams(SLEEP, SLEEP, other)
    assert not found.margin.any()


def test_audit_variation_by_tags_passes_over_other_words():
    one = "the/DET/3/det old/ADJ/3/amod owls/NOUN/0/root"
    two = "the/DET/3/nmod wise/ADJ/3/amod owls/NOUN/0/root"
    _, found = ngrams(one, one, two)
    assert found.margin[6] == 0
    _, found = ngrams(one, one, two, level="tags")
    assert found.margin[6] == pytest.approx(2 / 3)
    assert found.labels[6] == "det"


def test_audit_outlines_an_arc_from_its_head():
    words = Words.of([sentence(SLEEP)])
    assert outline(words, 1) == "sleep -nsubj-> owls"
    assert outline(words, 2) == "ROOT -root-> sleep"


def test_audit_blames_both_of_two_subjects_and_the_leaf_with_a_dependent():
    two = "owls/NOUN/3/nsubj mice/NOUN/3/nsubj see/VERB/0/root"
    leaf = "in/ADP/3/case old/ADJ/1/amod woods/NOUN/0/root"
    found = broken_rules(Words.of([sentence(SLEEP), sentence(two), sentence(leaf)]))
    assert found.column.tolist() == [0, 0, 0, 1, 1, 0, 1, 1, 0]
    assert found.of(3) == found.of(4) == ["too-many-subjects"]
    assert found.of(7) == ["leaf-mark-case"]
    assert found.of(0) == found.of(5) == []


def proposed(gold, rate, parsers=3, seed=1):
    """Lists of parsers that err at this rate."""
    inventory = LabelInventory()
    parses = [list(corrupted(gold, rate, seed=seed + number)) for number in range(parsers)]
    return [
        CandidateList.build(
            [(tree.heads, tree.deprels, -float(place)) for place, tree in enumerate(trees)],
            inventory=inventory,
            sources=("a",),
        )
        for trees in zip(*parses, strict=True)
    ]


def test_audit_probability_of_an_arc_that_parsers_propose():
    words = Words.of(list(generate(80, seed=3)))
    lists = proposed(words.sentences, 0.1)
    found = judge(words, lists)
    assert len(found.labels) == len(found.own) == len(words)
    assert (found.own >= FLOOR).all()
    assert (found.best_p <= 1).all()
    assert (found.margin >= -1e-6).all()
    for number, (candidates, start) in enumerate(zip(lists, words.starts.tolist(), strict=False)):
        gold = words.sentences[number]
        for word in range(len(gold)):
            arcs = {(int(h[word]), candidates.inventory.names[d[word]])
                    for h, d in zip(candidates.heads, candidates.labels, strict=True)}  # fmt: skip
            row, there = start + word, (int(gold.heads[word]), gold.deprels[word])
            head = int(found.heads[row])
            best = 0 if head < 0 else head - start + 1, found.labels[row]
            assert best in arcs
            if there not in arcs:
                assert found.own[row] == np.float32(FLOOR)
                assert best != there
            elif len(arcs) == 1:
                assert found.own[row] == found.best_p[row] == pytest.approx(1)
    # Three parsers of which each is right nine times in ten are mostly right together.
    assert (found.margin == 0).mean() > 0.9


def test_audit_of_a_mistake_that_parsers_would_not_make():
    right = list(generate(80, seed=3))
    lists = proposed(right, 0.02)
    wrong = list(corrupted(right, 0.05, seed=99))
    changed = np.concatenate(
        [
            (a.heads != b.heads) | (np.array(a.deprels) != np.array(b.deprels))
            for a, b in zip(right, wrong, strict=True)
        ]
    )
    found = judge(Words.of(wrong), lists)
    assert 50 < changed.sum() < 200
    assert found.surprise[changed].min() > found.surprise[~changed].mean()
    assert found.margin[changed].mean() > 0.9
