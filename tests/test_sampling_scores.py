"""Scores of trees: those of the lists, those of any tree, and what single parts score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference_sampling import crossing_pairs, part_rows, tree_scores
from sampling_parsers import (
    is_projective,
    list_of,
    own_scores,
    random_parser,
    random_sentence,
    random_tree,
    trained,
    treebank,
    with_settings,
)

from tk_spacy.errors import UserError
from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.features.parts import extract_parts
from tk_spacy.kbest.candidates import CandidateList, LabelInventory

ORDERS = pytest.mark.parametrize("order", [1, 2, 3])


def random_trees(rng, n, count, *, single_root=True):
    """Trees with label ids of a random parser."""
    trees = []
    for _ in range(count):
        heads = random_tree(rng, n, single_root=single_root)
        trees.append(
            (tuple(heads.tolist()), tuple(3 if h == 0 else int(rng.integers(4, 6)) for h in heads))
        )
    return trees


@ORDERS
@pytest.mark.parametrize(("max_heads", "crossing"), [(3, True), (8, True), (8, False)])
def test_scores_of_long_lists_are_those_of_their_trees(order, max_heads, crossing):
    rng = np.random.default_rng(order)
    sentences = [random_sentence(rng, n) for n in (30, 41, 60)]
    parser = random_parser(
        rng, sentences, order=order, max_heads=max_heads, prune_margin=5.0, crossing=crossing
    )
    inventory = LabelInventory()
    lists = list(parser.kbest(sentences, k=30, inventory=inventory, n_threads=1))
    for trees, own in zip(lists, parser.score(sentences, lists, n_threads=1), strict=True):
        assert len(trees) == 30
        assert trees.sources == ("sampling",)
        np.testing.assert_array_equal(trees.scores[:, 0], own)
        assert (np.diff(own) <= 0).all()
        assert not any(is_projective(heads.tolist()) for heads in trees.heads)


@ORDERS
def test_scores_of_a_trained_parsers_lists_are_those_of_their_trees(order):
    parser, sentences = trained(order), treebank()[1]
    lists = list(parser.kbest(sentences, k=12, inventory=LabelInventory(), n_threads=1))
    parses = list(parser.parse(sentences, n_threads=1))
    for trees, own in zip(lists, parser.score(sentences, lists, n_threads=1), strict=True):
        np.testing.assert_array_equal(trees.scores[:, 0], own)
    # Whether neighbours are kept or not does not change the search.
    for trees, (heads, deprels) in zip(lists, parses, strict=True):
        if (trees.heads[0] != heads).any() or trees.deprels(0) != deprels:
            j = (trees.heads == heads).all(axis=1).tolist().index(True)
            assert trees.scores[0, 0] - trees.scores[j, 0] < 1.0


@ORDERS
def test_scores_of_any_tree_are_sums_over_its_parts(order):
    # Of arcs that the pruner would not keep, of several roots, non-projective ones too.
    rng = np.random.default_rng(order)
    sentences = [random_sentence(rng, n) for n in (1, 2, 7, 19, 33)]
    parser = random_parser(rng, sentences, order=order, max_heads=1, prune_margin=0.0)
    for sentence in sentences:
        trees = random_trees(rng, len(sentence), 6)
        trees += random_trees(rng, len(sentence), 3, single_root=False)
        np.testing.assert_allclose(
            own_scores(parser, sentence, trees),
            tree_scores(parser, sentence, trees),
            rtol=0,
            atol=1e-11,
        )
        # Without the features of crossing arcs the same parts remain, and these alone.
        without = replace(parser, settings=replace(parser.settings, crossing=False))
        np.testing.assert_allclose(
            own_scores(without, sentence, trees),
            tree_scores(without, sentence, trees),
            rtol=0,
            atol=1e-11,
        )
        crossed = [bool(crossing_pairs(heads)) for heads, _ in trees]
        differ = own_scores(parser, sentence, trees) != own_scores(without, sentence, trees)
        assert differ.tolist() == [order > 1 and crosses for crosses in crossed]
    # Arcs 3 -> 1 and 4 -> 2; 4 -> 2 and 0 -> 3; arcs that share an end do not cross.
    assert crossing_pairs((3, 4, 0, 3)) == [(1, 2), (2, 3)]


def test_parts_of_a_tree_by_hand():
    # 1 and 2 under 4, which is under 0; 6, then 5, under 4 as well.
    heads, labels = (4, 4, 2, 0, 4, 4), (11, 12, 13, 14, 15, 16)
    beyond = len(heads) + 1
    assert part_rows(heads, labels, "sibling") == [
        (-1, 4, -1, 2, 1, 0, 0, 12, 11),
        (-1, 4, -1, beyond, 2, 0, 0, 1, 12),
        (-1, 2, -1, beyond, 3, 0, 0, 1, 13),
        (-1, 0, -1, beyond, 4, 0, 0, 1, 14),
        (-1, 4, -1, beyond, 5, 0, 0, 1, 15),
        (-1, 4, -1, 5, 6, 0, 0, 15, 16),
    ]
    assert part_rows(heads, labels, "tri-sibling") == [
        (-1, 4, beyond, 2, 1, 0, 1, 12, 11),
        (-1, 4, beyond, 5, 6, 0, 1, 15, 16),
    ]
    for name, part_type in PART_TYPES.items():
        rows, _, members = extract_parts([heads], [labels], part_type)
        assert [tuple(row) for row in rows[members].tolist()] == part_rows(heads, labels, name)


def test_scores_do_not_depend_on_the_batch_nor_on_threads():
    rng = np.random.default_rng(4)
    sentences = [random_sentence(rng, int(n)) for n in rng.integers(1, 9, size=300)]
    parser = random_parser(rng, sentences, order=3)
    lists = [list_of(random_trees(rng, len(s), 2), parser) for s in sentences]
    together = parser.score(sentences, lists, n_threads=3)
    for i in (0, 7, 255, 256, 299):
        alone = parser.score(sentences[i : i + 1], lists[i : i + 1], n_threads=1)[0]
        np.testing.assert_array_equal(together[i], alone)


def test_scores_of_lists_with_inventories_of_their_own():
    rng = np.random.default_rng(6)
    sentence = random_sentence(rng, 5)
    parser = random_parser(rng, [sentence])
    names = [("root", "x", "y"), ("y", "root", "x"), ("x", "y", "root")]
    heads, deprels = [2, 0, 2, 3, 3], ["x", "root", "y", "x", "x"]
    lists = [
        CandidateList.build(
            [(heads, deprels, 0.0)], inventory=LabelInventory(order), sources=("made",)
        )
        for order in names
    ]
    scores = parser.score([sentence] * 3, lists, n_threads=1)
    assert scores[0][0] == scores[1][0] == scores[2][0]


def test_scores_of_unknown_labels_are_no_numbers():
    rng = np.random.default_rng(6)
    sentence = random_sentence(rng, 4)
    parser = random_parser(rng, [sentence])
    heads = [2, 0, 2, 3]
    trees = CandidateList.build(
        [
            (heads, ["x", "root", "y", "x"], 3.0),
            (heads, ["x", "root", "never seen", "x"], 2.0),
            (heads, ["x", "_", "y", "x"], 1.0),
            ([2, 0, 4, 2], ["x", "root", "y", "y"], 0.0),
        ],
        inventory=LabelInventory(),
        sources=("made",),
    )
    scores = parser.score([sentence], [trees], n_threads=1)[0]
    assert np.isnan(scores).tolist() == [False, True, True, False]


def test_scores_of_nothing():
    rng = np.random.default_rng(6)
    parser = random_parser(rng, [random_sentence(rng, 4)])
    assert parser.score([], []) == []
    assert list(parser.parse([])) == []
    assert list(parser.kbest([], k=3, inventory=LabelInventory())) == []


def test_scores_of_lists_that_fit_no_sentence_are_refused():
    rng = np.random.default_rng(6)
    sentences = [random_sentence(rng, n) for n in (4, 6)]
    parser = random_parser(rng, sentences)
    lists = [list_of(random_trees(rng, len(s), 2), parser) for s in sentences]
    with pytest.raises(ValueError, match="1 lists for 2 sentences"):
        parser.score(sentences, lists[:1])
    with pytest.raises(ValueError, match="a list of 6 words for a sentence of 4"):
        parser.score(sentences, lists[::-1])


@pytest.mark.parametrize("k", [0, -1])
def test_lists_of_no_trees_are_refused(k):
    rng = np.random.default_rng(6)
    sentence = random_sentence(rng, 4)
    parser = random_parser(rng, [sentence])
    with pytest.raises(ValueError, match=f"k is {k}, expected from 1 to"):
        list(parser.kbest([sentence], k=k, inventory=LabelInventory()))


def test_lists_of_several_roots():
    rng = np.random.default_rng(9)
    sentences = [random_sentence(rng, n) for n in (1, 3, 6, 9)]
    # Starts from far away, so that the best tree of several roots is found too.
    starts = {"restarts": 100, "patience": 100, "exact_starts": 3, "temperature": 1.0}
    parser = random_parser(rng, sentences, single_root=False, arc_margin=1e9, **starts)
    found = list(parser._lists(sentences, 8, 1))
    several = [(heads == 0).sum(axis=1).max() for heads, _, _ in found]
    assert max(several) > 1
    with pytest.raises(UserError, match="trained for several; train it with single_root"):
        parser.kbest(sentences, k=8, inventory=LabelInventory())  # before anything is parsed
    alone = with_settings(parser, single_root=True)
    lists = list(alone.kbest(sentences, k=8, inventory=LabelInventory(), n_threads=1))
    assert all(((trees.heads == 0).sum(axis=1) == 1).all() for trees in lists)
    for (_, _, scores), trees in zip(found, lists, strict=True):
        assert scores[0] >= trees.scores[0, 0]


def test_lists_add_only_labels_that_occur_to_the_inventory():
    parser, sentences = trained(), treebank()[1][:3]
    inventory = LabelInventory(["other", parser.labels[-1]])
    lists = list(parser.kbest(sentences, k=2, inventory=inventory, n_threads=1))
    found = {name for trees in lists for j in range(len(trees)) for name in trees.deprels(j)}
    assert set(inventory.names) == {"other", parser.labels[-1]} | found
    assert len(found) < len(parser.labels)
    best = list(parser.parse(sentences, n_threads=1))
    alone = list(parser.kbest(sentences, k=1, inventory=LabelInventory(), n_threads=1))
    for trees, (heads, deprels) in zip(alone, best, strict=True):
        assert trees.heads[0].tolist() == heads.tolist()
        assert trees.deprels(0) == deprels
