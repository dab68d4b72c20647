"""The kernel against an explicit enumeration of shared property combinations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from tk_spacy.features.part_types import PART_TYPES, part_type
from tk_spacy.features.parts import contested_parts, extract_parts, slot_rows
from tk_spacy.features.schema import Schema
from tk_spacy.kernels.template_kernel import kernel_matrix, tree_kernel
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.trees.tree_rows import invalid_trees

KERNEL_TYPES = ["arc", "sibling", "grandparent"]


def random_tree(rng, n):
    """A random valid HEAD array."""
    while True:
        heads = rng.integers(0, n + 1, size=n).astype(np.int32)
        heads[rng.integers(n)] = 0
        if not len(invalid_trees(heads[None])):
            return heads


def random_sentence(rng, *, n=None, alphabet="ab"):
    """A sentence over so small an alphabet that properties collide all the time."""
    n = int(rng.integers(1, 7)) if n is None else n

    def pick(values):
        return [str(v) for v in rng.choice(list(values), size=n)]

    feats = ["_", "Case=Nom", "Case=Acc|Number=Sing", "Number=Sing", "Case=Nom|Number=Plur"]
    return Sentence.from_columns(
        forms=pick(alphabet),
        lemmas=pick(alphabet),
        upos=pick(["NOUN", "VERB"]),
        xpos=pick(["N1", "N2", "V"]),
        feats=pick(feats),
        heads=random_tree(rng, n),
        deprels=pick(["x", "y"]),
    )


def choices_of(schema):
    return {
        "pos_column": schema.pos_column,
        "use_cpos": schema.use_cpos,
        "morph": schema.morph,
        "use_lemma": schema.use_lemma,
        "extras": [extra.name for extra in schema.extras],
        "tables": schema.tables,
    }


def encoded_parts(schema, sentence, kind):
    labels = np.array([[schema.label_id(label) for label in sentence.deprels]], dtype=np.int32)
    rows, _, _ = extract_parts(sentence.heads[None], labels, kind)
    return schema.encode(sentence).nodes, slot_rows(rows, kind)


def enumerated(a, b, type_name, skip, choices):
    """Kernel values of all pairs of parts of two trees, from explicit combinations."""
    counted = [
        [
            reference.combinations(s, part, type_name, skip=skip, **choices)
            for part in reference.tree_parts(s.heads.tolist(), s.deprels, type_name)
        ]
        for s in (a, b)
    ]
    return np.array([[reference.kernel(x, y) for y in counted[1]] for x in counted[0]]).reshape(
        len(counted[0]), len(counted[1])
    )


@pytest.mark.parametrize("type_name", KERNEL_TYPES)
@pytest.mark.parametrize("skip", [(), ("h",), ("m", "s", "g")])
@pytest.mark.parametrize("use_lemma", [False, True])
def test_kernel_counts_shared_combinations(type_name, skip, use_lemma):
    rng = np.random.default_rng(7)
    kind = part_type(type_name)
    seen_parts = 0
    for _ in range(6):
        pair = [random_sentence(rng), random_sentence(rng)]
        schema = Schema.fit(pair, use_lemma=use_lemma)
        a, b = (encoded_parts(schema, s, kind) for s in pair)
        found = kernel_matrix(kind, *a, *b, skips=kind.skips(skip), n_threads=1)
        expected = enumerated(*pair, type_name, skip, choices_of(schema))
        assert found.tolist() == expected.tolist()
        total = tree_kernel(kind, *a, *b, skips=kind.skips(skip), n_threads=1)
        assert total == expected.sum()
        seen_parts += expected.size
    assert seen_parts > 30


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KERNEL_TYPES))
def test_kernel_is_symmetric_and_nonnegative(seed, type_name):
    rng = np.random.default_rng(seed)
    kind = part_type(type_name)
    pair = [random_sentence(rng), random_sentence(rng)]
    schema = Schema.fit(pair)
    a, b = (encoded_parts(schema, s, kind) for s in pair)
    matrix = kernel_matrix(kind, *a, *b, n_threads=1)
    assert (matrix >= 0).all()
    assert (matrix == kernel_matrix(kind, *b, *a, n_threads=1).T).all()
    own = kernel_matrix(kind, *a, *a, n_threads=1).astype(float)
    if own.size:
        assert np.linalg.eigvalsh(own).min() > -1e-6 * max(1.0, own.max())


@pytest.mark.shared
@pytest.mark.parametrize("type_name", KERNEL_TYPES)
def test_kernel_counts_on_real_sentences(shared_dir, type_name):
    path = next((shared_dir / "treebanks" / "UD_Tamil-TTB").glob("*-dev.conllu"))
    sentences = sorted(load_treebank(path), key=len)[:6]
    schema = Schema.fit(sentences)
    kind = part_type(type_name)
    for a, b in pairwise(sentences):
        found = kernel_matrix(
            kind, *encoded_parts(schema, a, kind), *encoded_parts(schema, b, kind), n_threads=1
        )
        # Siblings and grandparents have too many combinations to spell out for every pair.
        if type_name == "arc":
            assert found.tolist() == enumerated(a, b, type_name, (), choices_of(schema)).tolist()
            continue
        sets = [
            [
                reference.slot_sets(s, part, type_name, **choices_of(schema))
                for part in reference.tree_parts(s.heads.tolist(), s.deprels, type_name)
            ]
            for s in (a, b)
        ]
        assert found.tolist() == [
            [reference.kernel_by_slots(x, y) for y in sets[1]] for x in sets[0]
        ]


def test_kernel_missing_and_unseen_values_equal_nothing():
    known = Sentence.from_columns(
        forms=["a", "b"], upos=["NOUN", "NOUN"], heads=[0, 1], deprels=["root", "x"]
    )
    other = Sentence.from_columns(
        forms=["q", "q"], upos=["ADV", "ADV"], heads=[0, 1], deprels=["root", "zz"]
    )
    schema = Schema.fit([known])
    nodes = schema.encode(other).nodes
    kind = part_type("arc")
    _, parts = encoded_parts(schema, other, kind)
    matrix = kernel_matrix(kind, nodes, parts, nodes, parts, n_threads=1)
    # The second arc joins two words of unseen form and tag: what they share are the values beyond
    # the sentence, which the words' left and right neighbours do not have in common.
    assert matrix[1, 1] == (2 * 2) * 3  # (form-1, pos-1) x (dist, len, always on) x (form+1, pos+1)


def test_kernel_threads_do_not_matter():
    rng = np.random.default_rng(1)
    pair = [random_sentence(rng, n=40, alphabet="abcd") for _ in range(2)]
    schema = Schema.fit(pair)
    for name in KERNEL_TYPES:
        kind = part_type(name)
        a, b = (encoded_parts(schema, s, kind) for s in pair)
        one = kernel_matrix(kind, *a, *b, n_threads=1)
        assert all((kernel_matrix(kind, *a, *b, n_threads=t) == one).all() for t in (2, 3))


def test_kernel_refuses_what_does_not_fit():
    kind = part_type("arc")
    nodes = np.zeros((2, 5), dtype=np.int32)
    parts = np.array([[0, 3, 1, 1]], dtype=np.int32)
    with pytest.raises(ValueError, match="skips are"):
        kernel_matrix(kind, nodes, parts, nodes, parts, skips=(0, 2, 0))
    with pytest.raises(ValueError, match=r"outside 0\.\.1"):
        kernel_matrix(kind, nodes, parts + 1, nodes, parts)
    with pytest.raises(ValueError, match="parts must be"):
        kernel_matrix(kind, nodes, parts[:, :3], nodes, parts)
    with pytest.raises(ValueError, match="properties"):
        kernel_matrix(kind, nodes, parts, nodes[:, :4], parts)
    with pytest.raises(ValueError, match="unknown part type 'arcs'"):
        part_type("arcs")


@pytest.mark.parametrize("type_name", list(PART_TYPES))
def test_parts_are_those_of_the_definition(type_name):
    rng = np.random.default_rng(3)
    kind = part_type(type_name)
    for _ in range(20):
        n = int(rng.integers(1, 8))
        trees = np.stack([random_tree(rng, n) for _ in range(4)])
        labels = rng.integers(3, 6, size=trees.shape).astype(np.int32)
        rows, starts, members = extract_parts(trees, labels, kind)
        assert len({row.tobytes() for row in rows}) == len(rows)
        for j in range(4):
            expected = [
                as_row(part, n, type_name)
                for part in reference.tree_parts(trees[j].tolist(), labels[j].tolist(), type_name)
            ]
            assert rows[members[starts[j] : starts[j + 1]]].tolist() == expected


def as_row(part, n, type_name):
    """A reference part as the int32[9] row of extract_parts."""
    place = {role: n + 1 if part.get(role, 0) is None else part.get(role, -1) for role in "ghtsm"}
    label = {
        role: 1 if part.get(f"label_{role}") == "<boundary>" else part.get(f"label_{role}", 0)
        for role in "htsm"
    }
    return [place[role] for role in "ghtsm"] + [label[role] for role in "htsm"]


@given(seed=st.integers(0, 1000))
def test_slot_rows_hold_positions_labels_and_distances(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 5, size=(8, 9), dtype=np.int32)  # label 1 is the boundary's
    roles, dependents = {"g": 0, "h": 1, "t": 2, "s": 3, "m": 4}, {"h": 5, "t": 6, "s": 7, "m": 8}
    for kind in PART_TYPES.values():
        expected = []
        for row in rows.tolist():
            slots = []
            for slot in kind.slots:
                word = row[roles[slot.role]]
                if slot.kind == "node":
                    slots.append(word)
                    continue
                label, head = row[dependents[slot.role]], row[0 if slot.role == "h" else 1]
                slots += [label, 0 if label == 1 else word - head]
            expected.append(slots)
        assert slot_rows(rows, kind).tolist() == expected
        assert slot_rows(rows[:0], kind).shape == (0, len(expected[0]))


def test_contested_parts_leave_out_what_all_share():
    trees = np.array([[2, 0, 2, 3], [2, 0, 2, 2], [2, 0, 4, 2]], dtype=np.int32)
    labels = np.full_like(trees, 5)
    rows, starts, members = contested_parts(*extract_parts(trees, labels, part_type("arc")))
    arcs = [
        {(int(r[1]), int(r[4])) for r in rows[members[starts[j] : starts[j + 1]]]} for j in range(3)
    ]
    assert arcs == [{(2, 3), (3, 4)}, {(2, 3), (2, 4)}, {(4, 3), (2, 4)}]
