"""Projective trees in the place of others, and the way back."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_projective import below, lifted, lifts, nonprojective_words, trees
from reference_spanning import is_tree, tree_shapes

from tk_spacy.errors import UserError
from tk_spacy.trees.crossing import crossing_arcs
from tk_spacy.trees.pseudo_projective import (
    LIFTED,
    PASSED,
    SCHEMES,
    deprojectivize,
    lost_arcs,
    projectivize,
)

# A hearing is scheduled on the issue today: "issue" goes from "hearing" to "scheduled".
HEARING = (
    [2, 4, 4, 0, 7, 7, 2, 4],
    "det nsubj:pass aux:pass root case det nmod advmod".split(),
)
# Word 4 goes from 1 to 2, since 3 lies between, and then to 3.
TWICE = ([2, 3, 0, 1], ["nmod", "obl", "root", "acl:relcl"])
# Words 3 and 5 are lifted out of 1 and 3; 3 goes first, being as short and further to the left.
CHAIN = ([2, 0, 1, 2, 3], ["obj", "root", "xcomp", "punct", "advmod"])
# Words 4 and 5 are lifted from 2 and 1, both of which are left marked.
TWO_PATHS = ([3, 3, 0, 2, 1], ["nsubj", "obj", "root", "nmod", "acl"])

BY_HAND = [
    (HEARING, "head", [2, 4, 4, 0, 7, 7, 4, 4], {7: "nmod↑nsubj:pass"}),
    (HEARING, "head+path", [2, 4, 4, 0, 7, 7, 4, 4], {2: "nsubj:pass↓", 7: "nmod↑nsubj:pass"}),
    (HEARING, "path", [2, 4, 4, 0, 7, 7, 4, 4], {2: "nsubj:pass↓", 7: "nmod↑"}),
    (TWICE, "head", [2, 3, 0, 3], {4: "acl:relcl↑nmod"}),
    (TWICE, "head+path", [2, 3, 0, 3], {1: "nmod↓", 2: "obl↓", 4: "acl:relcl↑nmod"}),
    (TWICE, "path", [2, 3, 0, 3], {1: "nmod↓", 2: "obl↓", 4: "acl:relcl↑"}),
    (CHAIN, "head", [2, 0, 2, 2, 2], {3: "xcomp↑obj", 5: "advmod↑xcomp"}),
    (CHAIN, "head+path", [2, 0, 2, 2, 2], {1: "obj↓", 3: "xcomp↑obj↓", 5: "advmod↑xcomp"}),
    (CHAIN, "path", [2, 0, 2, 2, 2], {1: "obj↓", 3: "xcomp↑↓", 5: "advmod↑"}),
    (TWO_PATHS, "head", [3, 3, 0, 3, 3], {4: "nmod↑obj", 5: "acl↑nsubj"}),
    (TWO_PATHS, "head+path", [3, 3, 0, 3, 3],
     {1: "nsubj↓", 2: "obj↓", 4: "nmod↑obj", 5: "acl↑nsubj"}),
    (TWO_PATHS, "path", [3, 3, 0, 3, 3], {1: "nsubj↓", 2: "obj↓", 4: "nmod↑", 5: "acl↑"}),
]  # fmt: skip

LABELS = st.sampled_from(["a", "b", "acl:relcl"])


@pytest.mark.parametrize(("tree", "scheme", "heads", "marked"), BY_HAND)
def test_projectivize_by_hand(tree, scheme, heads, marked) -> None:
    labels = [marked.get(word, label) for word, label in enumerate(tree[1], 1)]
    assert projectivize(*tree, scheme) == (heads, labels)
    if (tree, scheme) != (TWO_PATHS, "path"):
        assert deprojectivize(heads, labels, scheme) == tree
        assert lost_arcs(*tree, scheme) == 0


def test_deprojectivize_takes_the_first_of_two_paths() -> None:
    heads, labels = deprojectivize(*projectivize(*TWO_PATHS, "path"), "path")
    assert (heads, labels) == ([3, 3, 0, 1, 1], TWO_PATHS[1])
    assert lost_arcs(*TWO_PATHS, "path") == 1


def test_deprojectivize_takes_the_first_of_two_labels() -> None:
    same = TWO_PATHS[0], ["obl", "obl", "root", "nmod", "acl"]
    assert [lost_arcs(*same, scheme) for scheme in SCHEMES] == [1, 1, 1]
    # Words 1 and 5 go up to 3; word 2, on no path, has the label of the head that 5 had.
    other = [4, 3, 0, 3, 1], ["nmod", "nmod", "root", "obl", "acl"]
    assert [lost_arcs(*other, scheme) for scheme in SCHEMES] == [1, 0, 0]


@pytest.mark.parametrize(
    ("scheme", "labels", "heads", "wanted"),
    [
        # Nothing below the head has the label, or lies on a path: the word stays.
        ("head", "root a b↑c", [0, 1, 1], "root a b"),
        ("path", "root a b↑", [0, 1, 1], "root a b"),
        # Without a path that ends in the label, as with "head".
        ("head+path", "root a b↑a", [0, 1, 2], "root a b"),
        ("head+path", "root c↓ b↑a", [0, 1, 1], "root c b"),
        # The root stays, as do marks of another scheme; a word never goes below itself.
        ("path", "root↑↓ a b", [0, 1, 1], "root a b"),
        ("head", "root a b↑", [0, 1, 1], "root a b"),
        ("head", "root a b↑a↑↓a", [0, 1, 2], "root a b"),
        ("path", "root a↑↓ b↑↓", [0, 3, 1], "root a b"),
        ("path", "↑ ↓ ↑b", [0, 1, 2], "dep dep dep"),
    ],
)
def test_deprojectivize_of_a_parsers_mistakes(scheme, labels, heads, wanted) -> None:
    assert deprojectivize([0, 1, 1], labels.split(), scheme) == (heads, wanted.split())


@given(trees(), st.data())
def test_projectivize_as_the_plain_algorithm(heads, data) -> None:
    labels = data.draw(st.lists(LABELS, min_size=len(heads), max_size=len(heads)))
    done, wanted = lifts(heads)
    passed = {head for _, head in done}
    for scheme in SCHEMES:
        new, marked = projectivize(heads, labels, scheme)
        assert new == wanted
        assert nonprojective_words(new) == []
        assert not any(crossing_arcs(new))
        assert is_tree(new, single_root=True)
        for word, label in enumerate(marked, 1):
            assert (LIFTED in label) == (new[word - 1] != heads[word - 1])
            assert (PASSED in label) == (word in passed and scheme != "head")
            # Up, along its old ancestors, and so below them still.
            assert word in below(heads, new[word - 1])
        if not done:
            assert (new, marked) == (heads, labels)


@given(trees(), st.sampled_from(SCHEMES), st.data())
def test_deprojectivize_gives_a_tree_whatever_the_labels(heads, scheme, data) -> None:
    texts = st.text(f"ab:{LIFTED}{PASSED}", min_size=1, max_size=6)
    labels = data.draw(st.lists(texts, min_size=len(heads), max_size=len(heads)))
    new, plain = deprojectivize(heads, labels, scheme)
    assert is_tree(new, single_root=True)
    assert all(plain)
    assert not any({LIFTED, PASSED} & set(label) for label in plain)
    for word, (old, head, label) in enumerate(zip(heads, new, labels, strict=True), 1):
        assert head == old or LIFTED in label
        assert head not in below(new, word)


def test_deprojectivize_finds_a_head_that_comes_back_later() -> None:
    # 3 hangs on 7, which was lifted from 2 and comes back below it after 3 is looked at.
    heads, labels = [0, 9, 7, 1, 1, 1, 2, 9, 1], [f"l{word}" for word in range(9)]
    lifted = projectivize(heads, labels, "head")
    assert lifted[0] == [0, 1, 2, 1, 1, 1, 9, 9, 1]
    assert deprojectivize(*lifted, "head") == (heads, labels)


@given(trees(), st.sampled_from(SCHEMES))
def test_deprojectivize_cuts_all_marks_and_finds_heads_of_their_own_labels(heads, scheme) -> None:
    labels = [f"l{word}" for word in range(len(heads))]
    back = deprojectivize(*projectivize(heads, labels, scheme), scheme)
    assert back[1] == labels
    if scheme != "path":
        assert back[0] == heads
        assert lost_arcs(heads, labels, scheme) == 0


@given(trees(), st.sampled_from(SCHEMES))
def test_lost_arcs_counts_those_that_differ(heads, scheme) -> None:
    labels = ["a"] * len(heads)
    back, _ = deprojectivize(*projectivize(heads, labels, scheme), scheme)
    lost = lost_arcs(heads, labels, scheme)
    assert lost == sum(old != new for old, new in zip(heads, back, strict=True))
    assert lost <= sum(a != b for a, b in zip(heads, lifts(heads)[1], strict=True))


@pytest.mark.parametrize("n", [3, 4, 5])
def test_projectivize_lifts_only_what_every_order_of_lifts_has_to(n) -> None:
    """Whatever else is lifted first, an arc that is not projective stays so."""
    for heads in tree_shapes(n, single_root=True).tolist():
        for word in nonprojective_words(heads):
            seen, todo = {tuple(heads)}, [heads]
            for tree in todo:
                assert word in nonprojective_words(tree)
                for other, head in enumerate(tree, 1):
                    if other != word and head and tree[head - 1]:
                        new = lifted(tree, other)
                        if tuple(new) not in seen:
                            seen.add(tuple(new))
                            todo.append(new)


def test_projectivize_takes_arrays_and_leaves_its_arguments_alone() -> None:
    heads, labels = np.array(TWICE[0], np.int32), tuple(TWICE[1])
    heads.setflags(write=False)
    new, marked = projectivize(heads, labels)
    assert (new, marked) == projectivize(*TWICE, "path")
    assert deprojectivize(np.array(new), tuple(marked)) == TWICE
    assert projectivize([0, 1], ["root", "_"]) == ([0, 1], ["root", "_"])


@pytest.mark.parametrize("mark", [LIFTED, PASSED])
def test_projectivize_refuses_labels_with_marks(mark) -> None:
    with pytest.raises(UserError, match=rf"DEPREL of word 2 is 'a{mark}', but .* mark lifted arcs"):
        projectivize([0, 1], ["root", f"a{mark}"])


def test_projectivize_refuses_what_is_no_tree() -> None:
    for function in (projectivize, deprojectivize, lost_arcs):
        with pytest.raises(ValueError, match="are no tree: cycle"):
            function([0, 3, 2], ["root", "a", "b"])
        with pytest.raises(ValueError, match="deprels has 1 values for 2 words"):
            function([0, 1], ["root"])
        with pytest.raises(
            UserError, match="scheme is 'paths'; choose from head, head\\+path, path"
        ):
            function([0, 1], ["root", "a"], "paths")
    with pytest.raises(ValueError, match="words 1 and 2 have HEAD 0"):
        projectivize([0, 0], ["root", "root"])
    # Of a parser that makes several roots they stay.
    assert deprojectivize([0, 0], ["root↑", "a↑"], "head") == ([0, 0], ["root", "a"])


def test_projectivize_of_a_long_sentence_is_quick() -> None:
    """Each word hangs on the last but one, so that nearly all arcs cross others."""
    n = 400
    heads = [0, 1, *range(1, n - 1)]
    started = time.perf_counter()
    new, _ = projectivize(heads, ["a"] * n)
    assert time.perf_counter() - started < 10
    assert not any(crossing_arcs(new))


def test_projectivize_of_all_small_trees_as_the_plain_algorithm() -> None:
    for n in range(1, 6):
        for heads in tree_shapes(n, single_root=True).tolist():
            assert projectivize(heads, ["a"] * n)[0] == lifts(heads)[1]
