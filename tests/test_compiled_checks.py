"""Public compiled functions refuse what would crash or hang them: ranges, trees, shapes, kinds."""

import gc
import multiprocessing
import pickle
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from samples import sentence

from tk_spacy.ensemble.combiner.learning import arc_log_probabilities, learn_arcs
from tk_spacy.ensemble.combiner.list_trees import extended_rows
from tk_spacy.features.candidate_scores import add_candidate_scores, add_list_scores
from tk_spacy.features.consensus import share_features
from tk_spacy.features.encoder import ListEncoder
from tk_spacy.features.node_ids import node_ids
from tk_spacy.features.part_lists import ListTrees
from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.features.parts import (
    contested_parts,
    exclusive_members,
    extract_frames,
    extract_parts,
    extract_spans,
    slot_rows,
)
from tk_spacy.features.schema import Schema
from tk_spacy.features.templates import (
    add_feature_counts,
    add_scores,
    add_sentence_scores,
    type_code,
)
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.compact_lines import read_lines
from tk_spacy.kbest.list_arrays import arrange_lists
from tk_spacy.kernels.compiled.node_groups import NodeGroups
from tk_spacy.kernels.compiled.row_cache import RowKeeper
from tk_spacy.kernels.compiled.scoring import CompiledParts
from tk_spacy.kernels.hashed_map import add_map_scores, add_support, node_hashes
from tk_spacy.kernels.plain_scoring import add_part_scores, count_matches
from tk_spacy.kernels.polynomial_kernel import PolynomialSupport
from tk_spacy.kernels.template_kernel import kernel_matrix, signed_kernel
from tk_spacy.parsers.biaffine.label_choice import choose_labels
from tk_spacy.parsers.biaffine.softmax import log_softmax_parts
from tk_spacy.parsers.sampling.search.decoder import Scorer, decode
from tk_spacy.parsers.sampling.search.search_space import kept_heads, lattice_arcs
from tk_spacy.parsers.sampling.search.tree_scores import crossing_scores, part_scores
from tk_spacy.parsers.sampling.search.updates import Learner
from tk_spacy.parsers.spacy_transition.context_scores import ContextScores
from tk_spacy.parsers.spacy_transition.tree_scores import score_trees
from tk_spacy.trees.tree_rows import CheckedTrees, group_equal, invalid_trees
from tk_spacy.trees.violations import Rules
from tk_spacy.utils.array_checks import checked, checked_range, checked_target
from tk_spacy.workflows.benchmark.loop_scoring import add_column_scores, add_pair_scores

Call = Callable[[], object]


def i32(*values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int32)


CYCLE = i32([2, 3, 2])
"""Word 1 hangs on 2, and 2 and 3 on each other: no walk up from them ends."""
TREE, LABELS = i32([2, 0, 2]), i32([3, 4, 5])
ARC = PART_TYPES["arc"]
FIELDS = np.full((5, 6), 3, dtype=np.int32)
ROW = i32([-1, 2, -1, 4, 1, 0, 0, 0, 3])
WEIGHTS = np.zeros(256)


# Candidate lists made by hand


def made_by_hand(heads: np.ndarray, labels: np.ndarray) -> CandidateList:
    return CandidateList(
        heads=heads,
        labels=labels,
        inventory=LabelInventory(["nsubj", "root", "obj"]),
        sources=("a",),
        scores=np.zeros((len(heads), 1)),
    )


THREE = sentence("a/X/2/nsubj b/X/0/root c/X/2/obj")


def encode_with(heads: np.ndarray, labels: np.ndarray) -> object:
    encoder = ListEncoder(
        Schema.fit([THREE]), kernel_parts=("arc",), manual_parts=("frame", "span")
    )
    return encoder.encode(THREE, made_by_hand(heads, labels))


def _cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="from word 2 back to it"):
        encode_with(CYCLE, i32([0, 1, 2]))
    with pytest.raises(ValueError, match="from word 2 back to it"):
        extract_spans(CYCLE, LABELS)


def test_checks_a_list_with_a_cycle_is_refused_in_time() -> None:
    """In a process of its own: a walk without the interpreter's lock hears no alarm."""
    process = multiprocessing.get_context("fork").Process(target=_cycle_is_refused)
    process.start()
    process.join(30)
    hangs = process.is_alive()
    process.kill()
    process.join()
    assert not hangs
    assert process.exitcode == 0


@pytest.mark.parametrize(
    ("heads", "labels", "message"),
    [
        (i32([2, 0, 4]), i32([0, 1, 2]), r"heads\[0, 2\] is 4, expected 0 to 3"),
        (i32([2, 0, -1]), i32([0, 1, 2]), r"heads\[0, 2\] is -1, expected 0 to 3"),
        (i32([2, 0, 2]), i32([0, 1, 3]), r"labels\[0, 2\] is 3, expected 0 to 2"),
        (i32([2, 0, 2]), i32([0, -1, 2]), r"labels\[0, 1\] is -1, expected 0 to 2"),
    ],
)
def test_checks_a_list_made_by_hand(heads: np.ndarray, labels: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode_with(heads, labels)


def test_checks_a_list_made_by_hand_that_is_right_passes() -> None:
    # Also as int64 and in Fortran's order: a matter of memory, not of content.
    heads = np.asfortranarray(np.array([[2, 0, 2], [3, 0, 2]], dtype=np.int64))
    assert encode_with(heads, i32([0, 1, 2], [0, 1, 2])) is not None


def test_checks_candidates_are_not_cast() -> None:
    inventory = LabelInventory(["x"])
    good = {"inventory": inventory, "sources": ("a",)}
    labels, scores = np.zeros((1, 2), dtype=np.int32), np.zeros((1, 1))
    with pytest.raises(TypeError, match=r"heads must be int32\[_, _\], got float64"):
        CandidateList.from_arrays(np.array([[0.7, 1.0]]), labels, scores, **good)
    with pytest.raises(ValueError, match=f"heads holds {2**32 + 1}, which no int32 can be"):
        CandidateList.from_arrays(np.array([[0, 2**32 + 1]]), labels, scores, **good)
    with pytest.raises(ValueError, match=r"labels\[0, 0\] is 1, expected 0 to 0"):
        CandidateList.from_arrays(i32([0, 1]), labels + 1, scores, **good)
    with pytest.raises(ValueError, match="base must be a row from 0 to 0, got 1"):
        CandidateList.from_arrays(i32([0, 1]), labels, scores, base=1, **good)


# Lists that were checked once


def built() -> CandidateList:
    """Two trees, the second one the better, from an array that the caller keeps."""
    return CandidateList.from_arrays(
        i32([2, 0, 2], [3, 0, 2]),
        i32([0, 1, 2], [0, 1, 2]),
        np.array([[1.0], [2.0]]),
        inventory=LabelInventory(["nsubj", "root", "obj"]),
        sources=("a",),
    )


def test_checks_a_list_by_hand_is_refused_when_altered_after_it_passed() -> None:
    heads = i32([2, 0, 2])
    writable = heads[:]  # which setting the list's own array read-only does not reach
    trees = made_by_hand(heads, i32([0, 1, 2]))
    encoder = ListEncoder(Schema.fit([THREE]), kernel_parts=("arc",), manual_parts=("span",))
    encoder.encode(THREE, trees)
    writable[0] = CYCLE
    with pytest.raises(ValueError, match="from word 2 back to it"):
        encoder.encode(THREE, trees)


def test_checks_a_built_list_is_checked_once_and_cannot_be_altered() -> None:
    given = i32([2, 0, 2], [3, 0, 2])
    trees = CandidateList.from_arrays(
        given, np.zeros((2, 3), dtype=np.int32), np.zeros((2, 1)),
        inventory=LabelInventory(["x"]), sources=("a",),
    )  # fmt: skip
    given[:] = CYCLE
    assert trees.heads.tolist() == [[2, 0, 2], [3, 0, 2]]
    assert trees.trees is trees.trees
    array = trees.heads
    while isinstance(array, np.ndarray):  # nor what lies below it
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)
        array = array.base


def test_checks_changed_lists_keep_the_check_only_of_the_same_trees() -> None:
    trees = built()
    assert trees.heads.tolist() == [[3, 0, 2], [2, 0, 2]]
    renamed = replace(trees, sources=("b",))
    assert renamed.trees is trees.trees
    turned = trees.with_scores(np.array([[1.0], [2.0]]))
    assert turned.heads.tolist() == turned.trees.heads.tolist() == [[2, 0, 2], [3, 0, 2]]
    assert turned.trees is turned.trees
    other = replace(trees, heads=np.concatenate([CYCLE, CYCLE]))
    with pytest.raises(ValueError, match="from word 2 back to it"):
        extract_parts(other.trees, other.labels, ARC)
    copy = pickle.loads(pickle.dumps(trees))
    assert copy.heads.tolist() == copy.trees.heads.tolist() == trees.heads.tolist()
    assert not copy.heads.flags.writeable


def test_checks_checked_trees_hold_only_what_was_checked() -> None:
    trees = CheckedTrees(i32([2, 0, 2], [3, 0, 2], [0, 1, 2]))
    for wrong, message in ((CYCLE, "back to it"), (i32([2, 0, 4]), "is 4, expected 0 to 3")):
        with pytest.raises(ValueError, match=message):
            CheckedTrees(wrong)
        with pytest.raises(ValueError, match=message):
            CheckedTrees(wrong, object())
    with pytest.raises(TypeError):
        CheckedTrees.__new__(CheckedTrees)
    with pytest.raises(AttributeError):
        trees.heads = CYCLE
    with pytest.raises(ValueError, match=r"labels must be int32\[3, 3\]"):
        extract_parts(trees, LABELS, ARC)


def test_checks_parts_of_checked_trees_are_those_of_their_heads() -> None:
    heads, labels = i32([2, 0, 2], [3, 0, 2]), i32([3, 4, 5], [3, 4, 5])
    fields = FIELDS
    for with_arrays, without in (
        (extract_parts(heads, labels, ARC), extract_parts(CheckedTrees(heads), labels, ARC)),
        (extract_spans(heads, labels), extract_spans(CheckedTrees(heads), labels)),
        (
            extract_frames(fields, heads, labels),
            extract_frames(fields, CheckedTrees(heads), labels),
        ),
    ):
        for one, other in zip(with_arrays, without, strict=True):
            assert one.tolist() == other.tolist()
    # Arcs 1<-2, 2<-0, 3<-2 of the first tree, and 1<-3 of the second.
    rows, starts, members = extract_parts(CheckedTrees(heads), labels, ARC)
    assert rows[:, [1, 4]].tolist() == [[2, 1], [0, 2], [2, 3], [3, 1]]
    assert members.tolist() == [0, 1, 2, 3, 1, 2]
    assert starts.tolist() == [0, 3, 6]


@pytest.mark.parametrize("value", [-1, 40, -(2**31), 2**31 - 1])
def test_checks_a_wrong_value_is_found_wherever_it_stands(value: int) -> None:
    """Several values are compared at a time, and what is left over one by one."""
    for length in (1, 3, 4, 7, 8, 33):
        for place in range(length):
            members = np.full(length, 39, dtype=np.int32)
            starts = i32(0, length)
            add_candidate_scores(np.ones(40), starts, members, np.zeros(1))
            members[place] = value
            message = rf"members\[{place}\] is {value}, expected 0 to 39"
            with pytest.raises(ValueError, match=message):
                add_candidate_scores(np.ones(40), starts, members, np.zeros(1))


@pytest.mark.parametrize("value", [-2, 5, -(2**31), 2**31 - 1])
@pytest.mark.parametrize("column", range(5))
def test_checks_a_part_names_words_of_its_sentence(column: int, value: int) -> None:
    row = ROW.copy()
    row[0, :5] = [-1, 0, 4, 4, 1]
    scores = np.zeros(1)
    add_sentence_scores(FIELDS, row, type_code("arc"), WEIGHTS, scores)
    row[0, column] = value
    message = rf"rows\[0, {column}\] names word {value}, expected -1 to 4"
    with pytest.raises(ValueError, match=message):
        add_sentence_scores(FIELDS, row, type_code("arc"), WEIGHTS, scores)


def test_checks_an_encoder_keeps_no_inventory() -> None:
    encoder = ListEncoder(Schema.fit([THREE]), kernel_parts=("arc",), manual_parts=())
    trees = made_by_hand(i32([2, 0, 2]), i32([0, 1, 2]))
    again = encoder.encode(THREE, trees).kernel[0].rows.tolist()
    met = weakref.ref(trees.inventory)
    assert encoder.encode(THREE, trees).kernel[0].rows.tolist() == again
    del trees
    gc.collect()
    assert met() is None


def test_checks_an_encoder_sees_an_inventory_grow() -> None:
    schema = Schema.fit([THREE])
    encoder = ListEncoder(schema, kernel_parts=("arc",), manual_parts=(), contested_only=False)
    inventory = LabelInventory(["nsubj"])
    for label in ("root", "obj"):
        trees = CandidateList.build(
            [([2, 0, 2], ("nsubj", "root", label), 0.0)], inventory=inventory, sources=("a",)
        )
        rows = encoder.encode(THREE, trees).kernel[0].rows
        assert rows[:, 8].tolist() == [schema.label_id(x) for x in ("nsubj", "root", label)]


# Each function


def _scorer() -> Scorer:
    return Scorer(
        np.zeros(256 + 6, dtype=np.float32),
        np.zeros(64, dtype=np.float32),
        np.full(6, 3, dtype=np.uint8),
        order=2, max_heads=3, prune_margin=5.0, max_labels=2, label_margin=5.0, arc_margin=5.0,
        single_root=True, morph_end=6,
    )  # fmt: skip


CORPUS = {"fields": np.full((5, 12), 3, dtype=np.int32), "starts": i32(0), "lengths": i32(5)}
SEARCH: dict[str, Any] = {
    "restarts": 1, "patience": 1, "temperature": 1.0, "label_share": 0.5,
    "seeds": np.zeros(1, dtype=np.uint64),
}  # fmt: skip


def decode_with(**changes: Any) -> object:
    given = {**CORPUS, "sentences": i32(0), **SEARCH, **changes}
    return decode(_scorer(), **given)


def arcs_with(place: int, value: Any) -> tuple[np.ndarray, ...]:
    arcs = [array.copy() for array in lattice_arcs(_scorer(), **CORPUS, sentences=i32(0))]
    arcs[place][-1] = value
    return tuple(arcs)


def updated(**changes: Any) -> object:
    learner = Learner(size=64, n_cells=6, order=2, C=1.0, morph_end=6)
    tree = {"gold_heads": i32(0, 2, 0, 2, 0), "gold_labels": i32(0, 3, 4, 5, 0)}
    other = {"heads": i32(0, 2, 0, 1, 0), "labels": i32(0, 3, 4, 5, 0)}
    return learner.update(**{"fields": CORPUS["fields"], **tree, **other, "loss": 1.0, **changes})


def compiled() -> tuple[CompiledParts, np.ndarray, np.ndarray]:
    groups = NodeGroups([[0, 1]], 3)
    nodes = np.array([[3, 4, 5], [3, 5, 6]], dtype=np.int32)
    ids, singles = groups.encode(nodes)
    parts = CompiledParts(i32(0, 1, 0), i32(0, 1, 0), groups, [i32(), i32()], 16)
    parts.append(i32([0], [3], [1], [1], [1]), np.ones(1), ids, singles)
    return parts, ids, singles


def compiled_scores(**changes: Any) -> object:
    parts, ids, singles = compiled()
    given = {"ids": ids, "singles": singles, "parts": i32([0, 3, 1, 1]), "out": np.zeros(1)}
    return parts.add_scores(**{**given, **changes})


def compiled_append(**changes: Any) -> object:
    parts, ids, singles = compiled()
    given = {
        "columns": i32([0], [3], [1], [1], [1]), "weights": np.ones(1), "ids": ids,
        "singles": singles,
    }  # fmt: skip
    return parts.append(**{**given, **changes})


def looped(function: Callable[..., Any], heads: np.ndarray, **changes: Any) -> object:
    given = {
        "nodes": np.full((2, 3), 4, dtype=np.int32), "parts": i32([0, 3, 1, 1]), "heads": heads,
        "modifiers": heads, "edges": i32([3], [1], [1]), "weights": np.ones(1),
        "out": np.zeros(1), "skips": (0, 0),
    }  # fmt: skip
    return function(**{**given, **changes})


def context(**changes: Any) -> ContextScores:
    given = {"move_types": [0, 1, 2, 3], "lower_b": np.zeros((4, 1), dtype=np.float32)}
    return ContextScores(**{**given, **changes})


def begun() -> ContextScores:
    scorer = context()
    scorer.begin(np.zeros((4, 8 * 4), dtype=np.float32), first=0, n_words=3)
    return scorer


NODES = np.full((2, 5), 3, dtype=np.int32)
KINDS, SKIPS = i32(0, 1, 0), i32(0, 0, 0)
STARTS, MEMBERS = i32(0, 2, 3), i32(0, 1, 1)
DENSE, HASHED = np.zeros((3, 2), dtype=np.float32), i32([0], [1], [2])


def node_ids_of(*values: int) -> np.ndarray:
    return node_ids(i32([3], [3], [3]), i32(3), i32([*values]))


def rules() -> Rules:
    names = ("advmod", "det", "fixed", "goeswith", "obj", "obl", "punct", "root")
    return Rules({name: number for number, name in enumerate(names, 1)})


def listed(columns: Any) -> object:
    """The lists of one sentence of two words in two parts, with a score in each column."""
    heads, starts = i32(0, 1, 2, 0), np.array([0, 1, 2])
    return arrange_lists(
        heads, heads, np.zeros(2), starts, np.array([2]), columns=columns, n_labels=3
    )


def extended(*, arcs: int = 4, arrays: int = 3) -> object:
    """The trees of one sentence of one word, given some of its arrays."""
    own = [i32(0), i32(0), i32(0), i32([0])]
    given = [i32([0]), i32([0]), np.zeros((1, 1))]
    return extended_rows([own[:arcs]], np.zeros(1), [given[:arrays]], [None], 1)


REFUSED: dict[str, tuple[Call, str]] = {
    "node ids, offset": (lambda: node_ids_of(0, 2, -1, 0, 0), "beyond the neighbours"),
    # Its absolute value is no int32.
    "node ids, least": (lambda: node_ids_of(0, -(2**31), -1, 0, 0), "beyond the neighbours"),
    "node ids, second": (lambda: node_ids_of(0, 0, 0, -(2**31), 0), "beyond the neighbours"),
    "softmaxes, sum": (
        # In 64 bits, sums of these are no larger than 5, and their differences positive.
        lambda: log_softmax_parts(np.zeros((2, 5), dtype=np.float32), [3, 2**63 - 1]),
        "columns of 5 scores",
    ),
    "softmaxes, none": (
        lambda: log_softmax_parts(np.zeros((2, 5), dtype=np.float32), []),
        "columns of 5 scores",
    ),
    "softmaxes, floats": (
        lambda: log_softmax_parts(np.zeros((2, 5), dtype=np.float32), [1.5, 2]),
        "sizes must be",
    ),
    "lists, columns": (lambda: listed([1.5, 1.5]), r"columns must be int64\[2\], got float64"),
    "lists, many columns": (lambda: listed([1, 2]), "2 scores, not as many"),
    "combiner, arcs": (lambda: extended(arcs=3), "3 arrays of arcs and 3 of a list"),
    "combiner, no arcs": (lambda: extended(arcs=0), "0 arrays of arcs and 3 of a list"),
    "combiner, list": (lambda: extended(arrays=2), "4 arrays of arcs and 2 of a list"),
    "rules, leaf": (lambda: rules().add_leaf(64, 1, 0), "a relation has the number 64"),
    "rules, far leaf": (lambda: rules().add_leaf(-(10**6), 1, 0), "number -1000000"),
    "rules, left": (lambda: rules().add_left_headed(10**6, 1), "number 1000000, expected 0 to 63"),
    "rules, tags": (lambda: rules().add_tags(-1, 1), "a relation has the number -1"),
    "rules, kind": (lambda: rules().add_tags(1, 64), "a kind has the number 64"),
    "rules, kinds": (lambda: rules().set_kinds(0, 1, 2, 3, 4, 5, 6, -1), "kind has the number -1"),
    "parts, cycle": (lambda: extract_parts(CYCLE, LABELS, ARC), "back to it"),
    "parts, head": (lambda: extract_parts(i32([2, 0, 9]), LABELS, ARC), r"\[0, 2\] is 9"),
    "parts, shape": (lambda: extract_parts(TREE, i32([3, 4]), ARC), r"labels must be int32\[1, 3"),
    "parts, floats": (lambda: extract_parts(TREE + 0.5, LABELS, ARC), "got float64"),
    "parts, NaN": (lambda: extract_parts(np.full((1, 3), np.nan), LABELS, ARC), "got float64"),
    "parts, None": (lambda: extract_parts(None, LABELS, ARC), "got object"),
    "frames, cycle": (lambda: extract_frames(FIELDS, CYCLE, LABELS), "back to it"),
    "frames, head": (lambda: extract_frames(FIELDS, i32([2, 0, 4]), LABELS), "is 4, expected 0 to"),
    "frames, label": (
        lambda: extract_frames(FIELDS, TREE, i32([3, -4, 5])),
        r"labels\[0, 1\] is -4",
    ),
    "frames, huge label": (
        lambda: extract_frames(FIELDS, TREE, i32([3, 2**31 - 1, 5])),
        "is 2147483647, expected 0",
    ),
    "frames, fields": (
        lambda: extract_frames(FIELDS[:4], TREE, LABELS),
        "fields must be",
    ),
    "frames, narrow": (lambda: extract_frames(FIELDS[:, :2], TREE, LABELS), "more than 2 columns"),
    "spans, cycle": (lambda: extract_spans(CYCLE, LABELS), "back to it"),
    "spans, own head": (lambda: extract_spans(i32([1, 0, 2]), LABELS), "from word 1 back to it"),
    "spans, head": (lambda: extract_spans(i32([2, 0, 4]), LABELS), "is 4, expected 0 to 3"),
    "spans, None": (lambda: extract_spans(None, None), "got object"),
    "contested, member": (
        lambda: contested_parts(ROW, i32(0, 1), i32(1)),
        r"members\[0\] is 1, expected 0 to 0",
    ),
    "contested, starts": (
        lambda: contested_parts(ROW, i32(0, 2), i32(0)),
        r"starts\[1\] is 2, expected",
    ),
    "contested, no starts": (lambda: contested_parts(ROW, i32(), i32(0)), "starts are empty"),
    "slot rows": (lambda: slot_rows(ROW[:, :8], ARC), r"rows must be int32\[_, 9\]"),
    "exclusive, candidate": (
        lambda: exclusive_members(STARTS, MEMBERS, 0, 2, 2),
        "candidate 2, expected 0 to 1",
    ),
    "exclusive, negative": (
        lambda: exclusive_members(STARTS, MEMBERS, -1, 0, 2),
        "candidate -1, expected 0 to 1",
    ),
    "exclusive, member": (
        lambda: exclusive_members(STARTS, MEMBERS, 0, 1, 1),
        r"members\[1\] is 1, expected 0 to 0",
    ),
    "exclusive, starts": (
        lambda: exclusive_members(i32(0, 3, 2), MEMBERS, 0, 1, 2),
        r"starts\[2\] is 2, expected",
    ),
    "exclusive, dtype": (
        lambda: exclusive_members(STARTS.astype(np.int64), MEMBERS, 0, 1, 2),
        "mismatch",
    ),
    "exclusive, gaps": (lambda: exclusive_members(STARTS, MEMBERS[::2], 0, 1, 2), "contiguous"),
    "candidate scores, member": (
        lambda: add_candidate_scores(np.ones(1), STARTS, MEMBERS, np.zeros(2)),
        r"members\[1\] is 1, expected 0 to 0",
    ),
    "candidate scores, starts": (
        lambda: add_candidate_scores(np.ones(2), i32(0, 9, 3), MEMBERS, np.zeros(2)),
        r"starts\[1\] is 9",
    ),
    "candidate scores, out": (
        lambda: add_candidate_scores(np.ones(2), STARTS, MEMBERS, np.zeros(3)),
        "3 starts for 3",
    ),
    "candidate scores, None": (
        lambda: add_candidate_scores(None, STARTS, MEMBERS, np.zeros(2)),
        "must not be None",
    ),
    "list scores": (
        lambda: add_list_scores(np.ones((2, 3)), np.ones(2), np.zeros(2)),
        r"expected \(2, 2\)",
    ),
    "invalid trees, floats": (lambda: invalid_trees([[0.5, 1.0]]), "got float64"),
    "invalid trees, shape": (lambda: invalid_trees(i32(0, 1)), r"got int32 of shape \(2,\)"),
    "equal trees": (lambda: group_equal(TREE, i32([1, 2])), r"labels must be int32\[1, 3\]"),
    "shares, NaN": (
        lambda: share_features(TREE, LABELS, np.array([[np.nan]])),
        "weights hold nan, expected",
    ),
    "shares, shape": (
        lambda: share_features(TREE, LABELS, np.ones((1, 2))),
        r"weights must be float64\[_, 1\]",
    ),
    "features, kind": (
        lambda: add_sentence_scores(FIELDS, ROW, 9, WEIGHTS, np.zeros(1)),
        "kind is 9",
    ),
    "features, word": (
        lambda: add_sentence_scores(FIELDS, ROW + 9, 0, WEIGHTS, np.zeros(1)),
        r"rows\[0, 0\] names word 8, expected -1 to 4",
    ),
    "features, far word": (
        lambda: add_sentence_scores(
            FIELDS, i32([-1, 1, -1, -1, 2**31 - 1, 0, 0, 0, 3]), 0, WEIGHTS, np.zeros(1)
        ),
        "names word 2147483647",
    ),
    "features, table": (
        lambda: add_sentence_scores(FIELDS, ROW, 0, np.zeros(100), np.zeros(1)),
        "weights has 100 cells, expected a power of two",
    ),
    "features, empty table": (
        lambda: add_sentence_scores(FIELDS, ROW, 0, np.zeros(0), np.zeros(1)),
        "has 0 cells",
    ),
    "features, out": (
        lambda: add_sentence_scores(FIELDS, ROW, 0, WEIGHTS, np.zeros(2)),
        "out has 2 scores",
    ),
    "features, fields": (
        lambda: add_sentence_scores(FIELDS[:, :3].copy(), ROW, 0, WEIGHTS, np.zeros(1)),
        "fields have 3 columns",
    ),
    "features, no fields": (
        lambda: add_sentence_scores(FIELDS[:0], ROW, 0, WEIGHTS, np.zeros(1)),
        "fields have 0 rows",
    ),
    "features of several": (
        lambda: add_scores([FIELDS], [ROW + 9], "arc", WEIGHTS, [np.zeros(1)]),
        "names word 8",
    ),
    "features of several, number": (
        lambda: add_scores([FIELDS], [ROW], "arc", WEIGHTS, []),
        "expected as many",
    ),
    "feature counts, part": (
        lambda: add_feature_counts(FIELDS, ROW, i32(1), i32(1), 0, WEIGHTS.copy()),
        r"parts\[0\] is 1, expected 0 to 0",
    ),
    "feature counts, signs": (
        lambda: add_feature_counts(FIELDS, ROW, i32(0), i32(), 0, WEIGHTS.copy()),
        "0 signs",
    ),
    "map, slot": (lambda: node_hashes(NODES, 0, 3, 1), "skip is 3, expected 0 or 1"),
    "map, support": (
        lambda: add_support(
            NODES, i32([2], [3], [1], [1], [0]), np.ones(1), SKIPS, 1, np.zeros(16)
        ),
        r"columns\[0\]\[0\] is 2, expected 0 to 1",
    ),
    "map, table": (
        lambda: add_map_scores(
            np.zeros(15, dtype=np.float32), NODES, i32([0, 3, 1, 1]), SKIPS, 1, np.zeros(1)
        ),
        "table has 15 cells",
    ),
    "map, arc": (
        lambda: add_map_scores(
            np.zeros(16, dtype=np.float32), NODES, i32([0, 3, 1, 2]), SKIPS, 1, np.zeros(1)
        ),
        r"parts\[0, 3\] names node 2, expected 0 to 1",
    ),
    "k-best lines, kind": (lambda: read_lines((1,), 2, len), "Expected .*str"),
    "k-best lines, words": (lambda: read_lines(("#",), 0, len), "a sentence of 0 words"),
    "kernel, node": (
        lambda: kernel_matrix(ARC, NODES, i32([0, 3, 1, 2]), NODES, i32([0, 3, 1, 1])),
        r"outside 0\.\.1",
    ),
    "signed kernel, node": (
        lambda: signed_kernel(NODES, i32([0, 3, 1, 2]), i32(1), KINDS, SKIPS),
        r"parts\[0, 3\] names node 2, expected 0 to 1",
    ),
    "signed kernel, width": (
        lambda: signed_kernel(NODES, i32([0, 3, 1]), i32(1), KINDS, SKIPS),
        "3 columns, expected 4",
    ),
    "signed kernel, signs": (
        lambda: signed_kernel(NODES, i32([0, 3, 1, 1]), i32(), KINDS, SKIPS),
        "0 signs for 1 parts",
    ),
    "groups": (
        lambda: NodeGroups([[0]], 3).encode(NODES),
        r"nodes must be int32\[_, 3\], got int32",
    ),
    "row keeper": (lambda: RowKeeper(NodeGroups([[0]], 3), 2, [], 8), "expected none below 0"),
    "counts, properties": (
        lambda: count_matches(NODES, np.zeros((4, 2), dtype=np.int32)),
        "4 rows, expected 5",
    ),
    "plain scores, support": (
        lambda: add_part_scores(
            np.zeros((2, 1), dtype=np.uint16),
            i32([0, 3, 1, 1]),
            i32([0], [3], [1], [1], [1]),
            np.ones(1),
            KINDS,
            SKIPS,
            np.zeros(1),
        ),
        "columns holds 1, expected 0 to 0",
    ),
    "plain scores, part": (
        lambda: add_part_scores(
            np.zeros((2, 2), dtype=np.uint16),
            i32([0, 3, 1, 2]),
            i32([0], [3], [1], [1], [1]),
            np.ones(1),
            KINDS,
            SKIPS,
            np.zeros(1),
        ),
        "parts holds 2, expected 0 to 1",
    ),
    "loops, node": (
        lambda: looped(add_pair_scores, i32([4, 4, 4]), parts=i32([0, 3, 1, 2])),
        "parts holds 2, expected 0 to 1",
    ),
    "loops by columns, node": (
        lambda: looped(add_column_scores, i32([4], [4], [4]), parts=i32([-1, 3, 1, 1])),
        "parts holds -1, expected 0 to 1",
    ),
    "compiled, ids": (lambda: compiled_scores(ids=i32([0], [2])), r"ids\[1, 0\] is 2, expected 0"),
    "compiled, part": (
        lambda: compiled_scores(parts=i32([0, 3, 1, 2])),
        "names node 2, expected 0 to 1",
    ),
    "compiled, width": (
        lambda: compiled_scores(parts=i32([0, 3, 1])),
        "parts must be",
    ),
    "compiled, out": (lambda: compiled_scores(out=np.zeros(2)), "out has 2 scores, expected 1"),
    "compiled, singles": (
        lambda: compiled_scores(singles=i32([5])),
        r"singles must be int32\[2, 1\]",
    ),
    "compiled, kinds": (
        lambda: CompiledParts(i32(0, 5), i32(0, 0), NodeGroups([], 3), [], 1),
        "kinds holds 5",
    ),
    "block, node": (
        lambda: compiled_append(columns=i32([0], [3], [1], [1], [2])),
        "columns holds 2, expected 0 to 1",
    ),
    "block, weights": (lambda: compiled_append(weights=np.ones(2)), r"shape \(2,\), expected \(1,"),
    "block, ids": (lambda: compiled_append(ids=i32([0], [7])), "ids holds 7, expected 0 to 1"),
    "block, size": (
        lambda: compiled_append(
            columns=np.repeat(i32([0], [3], [1], [1], [1]), 5000, axis=1), weights=np.ones(5000)
        ),
        "5000 parts, expected at most 4096",
    ),
    "combiner, NaN": (
        lambda: learn_arcs(DENSE * np.nan, HASHED, i32(0, 3), i32(0), 3, 1, 0.1, 0.1),
        "a dense feature is nan",
    ),
    "combiner, hash": (
        lambda: learn_arcs(DENSE, HASHED, i32(0, 3), i32(0), 2, 1, 0.1, 0.1),
        "feature is 2",
    ),
    "combiner, gold": (
        lambda: learn_arcs(DENSE, HASHED, i32(0, 3), i32(3), 3, 1, 0.1, 0.1),
        "gold arc 3",
    ),
    "combiner, starts": (
        lambda: arc_log_probabilities(DENSE, HASHED, i32(0, 4), np.zeros(2), np.zeros(3)),
        "starts must run from 0 to 3",
    ),
    "scorer": (
        lambda: Scorer(
            np.zeros(262, dtype=np.float32),
            np.zeros(64, dtype=np.float32),
            np.full(6, 3, dtype=np.uint8),
            order=2,
            max_heads=3,
            prune_margin=5.0,
            max_labels=2,
            label_margin=5.0,
            arc_margin=5.0,
            single_root=True,
            morph_end=2,
        ),
        "morph_end is 2",
    ),
    "decode, sentence": (lambda: decode_with(sentences=i32(1)), "sentences holds 1, expected 0 to"),
    "decode, rows": (lambda: decode_with(starts=i32(1)), "ends at row 6, but there are 5"),
    "decode, length": (lambda: decode_with(lengths=i32(2)), "lengths holds 2, expected 3 to 5"),
    "decode, fields": (
        lambda: decode_with(fields=np.zeros((5, 5), dtype=np.int32)),
        "5 columns, expected at",
    ),
    "decode, columns behind FEATS": (
        lambda: decode_with(fields=np.full((5, 11), 3, dtype=np.int32)),
        "11 columns, expected at least 12",
    ),
    "decode, seeds": (
        lambda: decode_with(seeds=np.zeros(2, dtype=np.uint64)),
        r"seeds must be uint64\[1\]",
    ),
    "decode, no seeds": (lambda: decode_with(seeds=None), r"seeds must be uint64\[1\], got object"),
    "decode, k": (lambda: decode_with(k=0), "k is 0, expected at least 1"),
    "decode, gold head": (
        lambda: decode_with(gold=(i32(0, 2, 0, 4, 0), i32(0, 3, 4, 5, 0))),
        "gold heads hold 4",
    ),
    "decode, gold label": (
        lambda: decode_with(gold=(i32(0, 2, 0, 2, 0), i32(0, 3, 4, 6, 0))),
        "gold labels holds 6",
    ),
    "decode, kept": (
        lambda: decode_with(kept=(i32(4), np.array([0, 0, 1, 1, 1, 1]))),
        "kept heads hold 4",
    ),
    "decode, arc head": (lambda: decode_with(arcs=arcs_with(1, 4)), "arc heads hold 4, expected 0"),
    "decode, arc label": (lambda: decode_with(arcs=arcs_with(2, 6)), "arc labels holds 6"),
    "decode, arc score": (lambda: decode_with(arcs=arcs_with(3, np.nan)), "hold NaN"),
    "decode, arc starts": (lambda: decode_with(arcs=arcs_with(0, 10**9)), "must ascend from 0"),
    "kept heads": (
        lambda: kept_heads(_scorer(), CORPUS["fields"], i32(-1), i32(5)),
        "starts holds -1",
    ),
    "kept heads, None": (lambda: kept_heads(None, *CORPUS.values()), "expected .*Scorer"),
    "lattice": (
        lambda: lattice_arcs(_scorer(), **CORPUS, sentences=i32(-1)),
        "sentences holds -1",
    ),
    "part scores, word": (
        lambda: part_scores(_scorer(), **CORPUS, owners=i32(0), rows=ROW + 4, kind=0),
        "name word 6, which the sentence has not",
    ),
    "part scores, owner": (
        lambda: part_scores(_scorer(), **CORPUS, owners=i32(1), rows=ROW, kind=0),
        "owners holds 1",
    ),
    "part scores, label": (
        lambda: part_scores(
            _scorer(), **CORPUS, owners=i32(0), rows=i32([-1, 2, -1, 4, 1, 0, 0, 0, 6]), kind=0
        ),
        "labels in rows holds 6",
    ),
    "crossing scores, label": (
        lambda: crossing_scores(_scorer(), CORPUS["fields"], TREE, i32([3, 4, 6]), np.zeros(1)),
        r"labels\[2\] is 6, expected 0 to 5",
    ),
    "update, head": (
        lambda: updated(heads=i32(0, 2, 0, 4, 0)),
        r"heads\[2\] is 4, expected 0 to 3",
    ),
    "update, label": (lambda: updated(labels=i32(0, 3, 4, 6, 0)), r"labels\[2\] is 6"),
    "update, short": (lambda: updated(labels=i32(0, 3)), "rows, expected 5"),
    "update, fields": (
        lambda: updated(fields=np.full((5, 11), 3, dtype=np.int32)),
        "11 columns, expected at least 12",
    ),
    "update, rows": (lambda: updated(fields=CORPUS["fields"][:2]), "2 rows, expected 3 at least"),
    "update, morph_end": (
        lambda: Learner(size=64, n_cells=6, order=2, C=1.0, morph_end=3),
        "morph_end is 3, expected at least 4",
    ),
    "context, moves": (
        lambda: context(move_types=[0, 1, 2, 9]),
        "move_types holds 9",
    ),
    "context, nothing": (
        lambda: context(move_types=[], lower_b=np.zeros((0, 1))),
        "0 move types",
    ),
    "context, words": (
        lambda: context().begin(np.zeros((4, 32), dtype=np.float32), first=2, n_words=3),
        "words 2 to 5 are not in a batch of 3",
    ),
    "tree scores, head": (
        lambda: score_trees(begun(), heads=i32([1, -1, 3]), actions=i32([2, -1, 3])),
        "heads must be -1 to 2, got -1 to 3",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_checks_what_does_not_fit_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_checks_what_fits_passes() -> None:
    """The calls that the refused ones differ from by one thing each."""
    assert [len(part) for part in extract_parts(TREE, LABELS, ARC)] == [3, 2, 3]
    assert len(extract_frames(FIELDS, TREE, LABELS)[0]) == 4
    assert len(extract_spans(TREE, LABELS)[0]) == 3
    assert contested_parts(ROW, i32(0, 1), i32(0))[0].shape == (0, 9)
    assert exclusive_members(STARTS, MEMBERS, 0, 1, 2)[0].tolist() == [0]
    out = np.zeros(2)
    add_candidate_scores(np.array([1.0, 10.0]), STARTS, MEMBERS, out)
    assert out.tolist() == [11.0, 10.0]
    assert node_ids_of(0, -1, -1, 0, 0).tolist() == [[0], [3], [0]]
    assert log_softmax_parts(np.zeros((2, 5), dtype=np.float32), [3, 2]).shape == (2, 5)
    assert listed([1, 1]) is not None
    assert len(extended()[0][0]) == 2  # type: ignore[index]
    rules().add_leaf(63, 63, 0)
    add_sentence_scores(FIELDS, ROW, type_code("arc"), np.ones(256), scores := np.zeros(1))
    assert scores[0] > 0
    compiled_scores()
    compiled_append()
    looped(add_pair_scores, i32([4, 4, 4]))
    looped(add_column_scores, i32([4], [4], [4]))
    assert 0 < updated() <= 1
    heads = np.asarray(decode_with(gold=(i32(0, 2, 0, 2, 0), i32(0, 3, 4, 5, 0)))[0])
    assert sorted(heads[1:4, 0].tolist()).count(0) == 1
    decode_with(arcs=lattice_arcs(_scorer(), **CORPUS, sentences=i32(0)))
    decode_with(kept=kept_heads(_scorer(), **CORPUS))
    part_scores(_scorer(), **CORPUS, owners=i32(0), rows=ROW, kind=0)
    assert np.isfinite(score_trees(begun(), heads=i32([1, -1, 1]), actions=i32([2, -1, 3]))).all()


# The helpers


def test_checks_arrays_are_converted_where_nothing_is_lost() -> None:
    assert checked("x", [[1, 2]], np.int32, 1, None).dtype == np.int32
    assert checked("x", [], np.int32, None).shape == (0,)
    assert checked("x", np.arange(6)[::2], np.int32, 3).flags.c_contiguous
    same = np.zeros(3, dtype=np.int32)
    assert checked("x", same, np.int32, 3) is same
    assert checked("x", [1, 2], np.float64, 2).tolist() == [1.0, 2.0]
    for wrong, message in ((["a"], "got <U1"), ([1 + 2j], "complex"), (None, "object")):
        with pytest.raises(TypeError, match=message):
            checked("x", wrong, np.float64, None)
    with pytest.raises(ValueError, match="x holds -1, which no uint64 can be"):
        checked("x", [-1], np.uint64, None)
    checked_range("x", np.zeros(0, dtype=np.int32), 0, -1)
    with pytest.raises(ValueError, match="x holds 7, expected 0 to 5"):
        checked_range("x", i32([0, 7]), 0, 5)


def test_checks_what_is_written_to_is_no_copy() -> None:
    same = np.zeros((2, 3))
    assert checked_target("out", same, np.float64, 2, None) is same
    for wrong in (np.zeros((2, 3), dtype=np.float32), [[0.0] * 3] * 2, None):
        with pytest.raises(TypeError, match=r"out must be float64\[2, 3\], got"):
            checked_target("out", wrong, np.float64, 2, 3)
    with pytest.raises(ValueError, match=r"got float64 of shape \(2, 3\)"):
        checked_target("out", same, np.float64, 3, 2)
    frozen = np.zeros((2, 3))
    frozen.setflags(write=False)
    for wrong in (frozen, np.zeros((2, 6))[:, ::2], np.zeros((3, 2)).T):
        with pytest.raises(ValueError, match="contiguous and not read-only"):
            checked_target("out", wrong, np.float64, 2, 3)


@pytest.mark.parametrize("place", [2, 3, 4])
@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_checks_labels_are_not_chosen_into_copies(place: int, kind: type) -> None:
    outs = [np.zeros((2, 3)), np.zeros((2, 3, 2), dtype=np.int32), np.zeros((2, 3))]
    given = [np.zeros((2, 3, 4), dtype=np.float32), np.zeros((2, 3), dtype=np.float32), *outs]
    given[place] = given[place].astype(kind)
    with pytest.raises(TypeError, match="must be"):
        choose_labels(*given, second=True)


def test_checks_sums_are_not_added_to_copies() -> None:
    kept = PolynomialSupport(2, 2)
    starts, ids = i32(0, 1), i32(0)
    kept.append(starts, ids, np.ones(1), np.ones(1))
    with pytest.raises(TypeError, match=r"out must be float64\[1\]"):
        kept.add_scores(starts, ids, np.zeros(1, dtype=np.float32))
    kept.add_scores(starts, ids, out := np.zeros(1))
    assert out.tolist() == [4.0]


def test_checks_lists_made_again_are_whole_or_as_before() -> None:
    trees = ListTrees([CheckedTrees(TREE)], [LABELS], [np.arange(6, dtype=np.int32)])
    before = [array.tolist() for array in trees.parts(ARC)]
    big = CheckedTrees(np.arange(100_000, dtype=np.int32)[None])
    labels = np.zeros((1, 100_000), dtype=np.int32)
    for second in (object(), None):
        with pytest.raises(TypeError):
            trees.__init__([big, second], [labels] * 2, [i32(0)] * 2)  # type: ignore[misc]
    assert trees.n_lists == 1
    assert [array.tolist() for array in trees.parts(ARC)] == before
