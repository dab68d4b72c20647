"""Between lists and scores, counted by hand or by plain loops: votes, arcs, oracles, draws.

Each value here is one that a small change of the code made wrong without any other test failing.
"""

from __future__ import annotations

import json
import math
import zlib
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from samples import corrupted, sentence

from tk_spacy.ensemble.combiner.arc_features import ArcFeatures
from tk_spacy.ensemble.combiner.arcs import candidate_weights
from tk_spacy.ensemble.combiner.model import ArcCombiner
from tk_spacy.ensemble.combiner.reparsing import plain_vote
from tk_spacy.errors import CandidateError, UserError
from tk_spacy.evaluation import bootstrap as bootstrap_module
from tk_spacy.evaluation.attachment import count_sentences, evaluate
from tk_spacy.evaluation.bootstrap import bootstrap_counts, paired_bootstrap
from tk_spacy.evaluation.breakdown import Breakdown, breakdown_records, breakdown_table
from tk_spacy.features.list_features import ListFeatures
from tk_spacy.kbest.candidates import (
    BATCH_CELLS,
    CandidateList,
    LabelInventory,
    check_aligned,
    check_alternatives,
    in_batches,
)
from tk_spacy.reranker.interpolation import TuningList
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.synthetic import generate

NAN = math.nan


def listed(trees, sources=("a",), base=0, inventory=None, **changes):
    """A list of (heads, labels, scores), labels as one string."""
    made = CandidateList.build(
        [(heads, labels.split(), scores) for heads, labels, scores in trees],
        inventory=LabelInventory() if inventory is None else inventory,
        sources=sources,
        base=base,
    )
    return replace(made, **changes)


# Lists


def test_lists_with_other_scores_keep_their_trees_and_own_rows():
    trees = listed(
        [
            ([0, 1], "root x", (3.0, 0.0)),
            ([2, 0], "x root", (2.0, 9.0)),
            ([0, 1], "root y", (1.0, 5.0)),
        ],
        sources=("a", "b"), base=2, bases={"b": 1, "c": 0},
    )  # fmt: skip
    by_hand = replace(trees, heads=trees.heads.copy())  # not known to be trees
    for given in (trees, by_hand):
        new = given.with_scores(np.array([[NAN, 1.0], [4.0, 2.0], [7.0, 3.0]]))
        assert [(h.tolist(), new.deprels(j)) for j, h in enumerate(new.heads)] == [
            ([0, 1], ("root", "y")), ([2, 0], ("x", "root")), ([0, 1], ("root", "x")),
        ]  # fmt: skip
        np.testing.assert_array_equal(new.scores, [[7.0, 3.0], [4.0, 2.0], [NAN, 1.0]])
        assert (new.base, new.bases) == (0, {"b": 1, "c": 2})
        assert new.inventory is trees.inventory


def test_trees_without_a_score_come_last_and_equal_ones_in_their_order():
    scores = [2.0, NAN, 1.0, -math.inf, 2.0, NAN, 1.0, 0.5] * 40
    trees = listed([([0, 1], f"root l{i}", score) for i, score in enumerate(scores)])
    known = [i for i, score in enumerate(scores) if not math.isnan(score)]
    expected = sorted(known, key=lambda i: -scores[i])
    expected += [i for i, score in enumerate(scores) if math.isnan(score)]
    assert [trees.deprels(j)[1] for j in range(len(trees))] == [f"l{i}" for i in expected]


def test_lists_made_of_arrays_are_checked_and_typed():
    inventory = LabelInventory(["root", *(f"l{i}" for i in range(40))])
    heads = np.tile(np.array([0, 1], dtype=np.int64), (40, 1))
    labels = np.stack([np.zeros(40, dtype=np.int64), np.arange(1, 41)], axis=1)
    given = {"inventory": inventory, "sources": ("a",)}
    trees = CandidateList.from_arrays(heads, labels, np.ones((40, 1), dtype=np.int8), **given)
    assert trees.labels[:, 1].tolist() == list(range(1, 41))  # of equal scores in their order
    assert trees.base == 0
    types = [array.dtype for array in (trees.heads, trees.labels, trees.scores)]
    assert types == [np.int32, np.int32, np.float64]
    assert len(CandidateList.from_arrays(heads, labels, np.ones((40, 1)), k=1, **given)) == 1
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        CandidateList.from_arrays(heads, labels, np.ones((40, 1)), k=0, **given)
    with pytest.raises(ValueError, match=r"^labels must be int32\[40, 2\], got int64 of .*40, 1"):
        CandidateList.from_arrays(heads, labels[:, :1], np.ones((40, 1)), **given)
    with pytest.raises(ValueError, match=r"^scores must be float64\[_, _\], got .* \(40,\)"):
        CandidateList.from_arrays(heads, labels, np.ones(40), **given)
    for changes, message in (
        ({"heads": trees.heads[:, 0]}, r"heads must be \[k >= 1, n >= 1\], got shape \(40,\)"),
        ({"heads": trees.heads[:0]}, r"heads must be \[k >= 1"),
        ({"heads": trees.heads[:, :0]}, r"heads must be \[k >= 1"),
        ({"labels": trees.labels[:, :1]}, "labels must be"),
        ({"scores": np.zeros((40, 2))}, "scores"),
        ({"base": 40}, "base must be a row from 0 to 39, got 40"),
        ({"bases": {"b": -1}}, "base must be a row from 0 to 39, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(trees, **changes)


def test_a_label_that_two_threads_add_at_once_has_one_id():
    inventory = LabelInventory(["root"])

    class Slow:
        """Whoever waits for the lock finds that another thread had it meanwhile."""

        def __enter__(self):
            inventory._lock = nullcontext()
            inventory.add("x")

        def __exit__(self, *_):
            pass

    inventory._lock = Slow()
    assert inventory.add("x") == 1
    assert inventory.names == ["root", "x"]


def test_oracles_and_learning_leave_the_labels_of_lists_alone():
    trees = listed([([0, 1], "root x", 1.0), ([2, 0], "x root", 0.0)])
    gold = sentence("a/X/0/never b/X/1/seen")
    assert trees.oracle(gold) == 0
    assert trees.oracle(gold, labelled=True) == 0
    TuningList.make(gold, trees, np.zeros(2))
    ArcCombiner.fit([gold, gold], [trees, trees], epochs=1)
    assert trees.inventory.names == ["root", "x"]


def test_labelled_oracle_among_equals_has_the_fewer_wrong_heads():
    gold = sentence("a/X/0/root b/X/1/x c/X/1/y")
    trees = listed([
        ([0, 3, 1], "root x z", 2.0),  # of words with head and label one is right; one head wrong
        ([0, 1, 1], "root z z", 1.0),  # one is right; no head wrong
        ([2, 0, 1], "x root y", 0.0),  # one is right; two heads wrong
    ])  # fmt: skip
    assert trees.oracle(gold, labelled=True) == 1


def test_lists_that_fit_no_sentence_are_refused():
    gold = [sentence("a/X/0/root b/X/1/x"), sentence("a/X/0/root")]
    two, one = listed([([0, 1], "root x", 1.0)]), listed([([0], "root", 1.0)])
    check_aligned(gold, [two, one])
    with pytest.raises(ValueError, match="1 lists for 2 sentences"):
        check_aligned(gold, [two])
    with pytest.raises(ValueError, match="a list of 1 words for a sentence of 2"):
        check_aligned(gold, [one, two])
    choice = listed([([0, 1], "root x", 1.0), ([2, 0], "x root", 0.0)])
    check_alternatives([two, choice], where="file")
    with pytest.raises(CandidateError, match="file: no list has more than one tree"):
        check_alternatives([two, one], where="file")


def test_batches_are_filled_to_the_brim():
    half = BATCH_CELLS // 2
    batches = list(in_batches([half, half, half, half, 1], lambda size: size))
    assert batches == [[half, half], [half, half], [1]]
    # So is one after a batch that was full by its number.
    batches = list(in_batches([1, 1, half, half], lambda size: size, most=2))
    assert batches == [[1, 1], [half, half]]


# Votes


def test_three_later_parsers_outvote_the_first_two_whatever_the_labels():
    inventory = LabelInventory()
    trees = [
        ([0, 1, 1], "root x x"),  # two parsers, one label
        ([0, 1, 2], "root x x"), ([0, 1, 2], "root x y"), ([0, 1, 2], "root x z"),
    ]  # fmt: skip
    candidates = listed(
        [(*tree, -float(i)) for i, tree in enumerate(trees)],
        inventory=inventory, base=0, bases={"b": 0, "c": 1, "d": 2, "e": 3},
    )  # fmt: skip
    heads, labels = plain_vote(candidates)
    assert heads.tolist() == [0, 1, 2]
    assert inventory.decode(labels.tolist()) == ("root", "x", "x")  # of three labels the earliest


def test_own_trees_are_those_recorded_before_those_best_scored():
    trees = listed(
        [([0, 1], "root x", (2.0, 0.0, 1.0, NAN)), ([2, 0], "x root", (1.0, 5.0, 2.0, NAN))],
        sources=("a", "b", "c", "d"), base=1, bases={"b": 0},
    )  # fmt: skip
    weights = candidate_weights(trees, dict.fromkeys("abcd", 1.0)).reshape(4, -1, 2)
    assert weights[:, -1].tolist() == [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def plain_id(number, parts):
    """A feature's id, by whole numbers without bound."""
    mask, key = 2**64 - 1, number
    for part in parts:
        key = ((key ^ part) * 0x9E3779B97F4A7C15) & mask
        key ^= key >> 29
    return key >> (64 - 18)


def test_features_of_arcs_are_the_votes_of_each_parser_by_label_tags_and_distance():
    words = "w/NOUN/0/root " + " ".join(f"w/VERB/{h}/x" for h in (1, 1, 1, 1, 1, 1, 1, 2, 1))
    gold = sentence(words)
    chain = [*range(10)]
    back = [10, 1, 2, 3, 4, 5, 6, 7, 8, 0]  # the first word hangs on the last one
    near = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    trees = listed(
        [
            (near, "root" + " x" * 9, (3.0, 1.0)),
            (chain, "root" + " x" * 9, (2.0, 5.0)),
            (back, "y" + " x" * 8 + " root", (1.0, 0.0)),
        ],
        sources=("a", "b"), base=2, bases={"b": 1},
    )  # fmt: skip
    table = ArcFeatures(scales={"a": 1.0, "b": 2.0}).encode(gold, trees)
    own = {"a": 2, "b": 1}
    names = trees.inventory.names
    tags = ["ROOT", *gold.upos]

    def code(name):
        return zlib.crc32(name.encode())

    for row in range(len(table.arcs)):
        word, head = int(table.arcs.words[row]), int(table.arcs.heads[row])
        label = int(table.arcs.labels[row])
        votes = [int(trees.heads[r, word]) == head and int(trees.labels[r, word]) == label
                 for r in own.values()]  # fmt: skip
        head_votes = [int(trees.heads[r, word]) == head for r in own.values()]
        # The last two dense features: who holds the arc, and who its head.
        assert table.dense[row, -2:].tolist() == [sum(votes), sum(head_votes)]
        voters, head_voters = (v[0] + 2 * v[1] for v in (votes, head_votes))
        distance = 13 if head == 0 else max(-6, min(6, head - 1 - word)) + 6
        modifier, of_head, name = code(tags[word + 1]), code(tags[head]), code(names[label])
        combinations = [
            (voters,), (voters, name), (voters, modifier), (voters, distance),
            (voters, name, modifier), (head_voters, modifier), (head_voters, modifier, of_head),
            (head_voters, distance, modifier), (name, modifier), (name, modifier, of_head),
        ]  # fmt: skip
        expected = [plain_id(i, parts) for i, parts in enumerate(combinations, start=1)]
        assert table.hashed[row].tolist() == expected


def test_scales_of_arc_features_are_positive_numbers():
    made = ArcFeatures(scales={"a": 0.25, "b": 3.0})
    assert ArcFeatures.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    for bad in ({}, {"a": 0.0}, {"a": math.inf}, {"a": 1.0, "b": -1.0}):
        with pytest.raises(
            ValueError, match=r"expected (a positive number|one of each source)|beyond all bounds"
        ):
            ArcFeatures.from_dict({"scales": bad})


# Features of a list


def test_ranks_of_equal_scores_are_in_their_order_in_long_lists():
    k = 40
    trees = listed([([0, 1], f"root l{i}", 1.0 if i < 20 else 0.5) for i in range(k)])
    features = ListFeatures(groups=("scores",), scales={"a": 1.0})
    assert ListFeatures.fit([trees], ["scores"]).factor == 1.0
    column = features.encode(trees)[:, features.names.index("a rank")]
    expected = -np.log1p(np.arange(k))
    np.testing.assert_allclose(column, expected - expected.mean())
    # The same where equal scores lie apart.
    scores = np.random.default_rng(0).integers(0, 3, size=k).tolist()
    both = listed([([0, 1], f"root l{i}", (-i, s)) for i, s in enumerate(scores)], ("first", "a"))
    order = sorted(range(k), key=lambda row: -scores[row])
    column = features.encode(both)[:, features.names.index("a rank")]
    np.testing.assert_allclose(column[order], expected - expected.mean())
    # A spread below 1 is divided by, too: of the two values one stands at 1, one at -1.
    standard = features.encode(trees)[:, features.names.index("a standard")]
    np.testing.assert_allclose(standard, [1.0] * 20 + [-1.0] * 20)


def test_a_source_that_scored_nothing_weighs_all_trees_alike():
    trees = listed(
        [([0, 1, 1], "root x x", (2.0, NAN)), ([0, 1, 2], "root x x", (1.0, NAN)),
         ([0, 3, 1], "root x y", (0.0, NAN))],
        sources=("a", "b"),
    )  # fmt: skip
    features = ListFeatures(groups=("shares",), scales={"a": 1.0, "b": 1.0})
    columns = dict(zip(features.names, features.encode(trees).T, strict=True))
    for kind in ("labelled", "heads", "log-labelled", "log-heads", "margin"):
        for weighting in ("b softmax/0.25", "b softmax/1", "b first"):
            np.testing.assert_array_equal(
                columns[f"{kind} share, {weighting}"], columns[f"{kind} share, all"]
            )
    for bad in ({"groups": []}, {"groups": ["votes"]}, {"factor": 0}, {"scales": {"a": math.inf}}):
        with pytest.raises(ValueError, match=r"expected|beyond all bounds"):
            ListFeatures.from_dict({**features.to_dict(), **bad})


# Scores


def test_a_single_right_word_is_all_of_them():
    gold = [sentence("a/X/0/root")]
    scores = evaluate(gold, gold)
    assert (scores.uas, scores.las, scores.words) == (100.0, 100.0, 1)
    result = paired_bootstrap(gold, gold, gold, samples=1)
    assert (result.metric, result.samples, result.sentences) == ("uas", 1, 1)
    assert (result.score_a, result.score_b, result.low, result.high) == (100.0, 100.0, 0.0, 0.0)


def test_bootstrap_draws_ten_thousand_times_with_the_seed_0():
    gold = list(generate(12, seed=1))
    a, b = list(corrupted(gold, 0.3, 1)), list(corrupted(gold, 0.3, 2))
    found = paired_bootstrap(gold, a, b)
    assert found.samples == 10_000
    assert found == paired_bootstrap(gold, a, b, seed=0, samples=10_000, metric="uas")
    assert found != paired_bootstrap(gold, a, b, seed=1)
    pair = count_sentences(gold, a), count_sentences(gold, b)
    assert bootstrap_counts([pair]) == found


@pytest.mark.parametrize("block", [1, 30, 2_000_000])
def test_bootstrap_of_several_treebanks_draws_within_each_and_sums(monkeypatch, block):
    monkeypatch.setattr(bootstrap_module, "_BLOCK", block)
    parts = [list(generate(n, seed=n)) for n in (7, 11)]
    a = [list(corrupted(part, 0.3, 1)) for part in parts]
    b = [list(corrupted(part, 0.25, 2)) for part in parts]
    pairs = [
        (count_sentences(g, x), count_sentences(g, y)) for g, x, y in zip(parts, a, b, strict=True)
    ]
    result = bootstrap_counts(pairs, metric="las", samples=25, seed=3)
    rng = np.random.default_rng(3)
    drawn = [rng.integers(0, n, size=(25, n)) for n in (7, 11)]
    differences = []
    for sample in range(25):
        right, words = [0, 0], 0
        for part, of_a, of_b, rows in zip(parts, a, b, drawn, strict=True):
            for i in rows[sample].tolist():
                words += len(part[i])
                for side, system in enumerate((of_a[i], of_b[i])):
                    right[side] += sum(
                        h == g and d == e
                        for h, g, d, e in zip(
                            system.heads,
                            part[i].heads,
                            system.deprels,
                            part[i].deprels,
                            strict=True,
                        )
                    )
        differences.append(100 * (right[1] - right[0]) / words)
    assert [result.low, result.high] == pytest.approx(np.percentile(differences, [2.5, 97.5]))
    found = np.round(differences, 9)
    assert result.p_one_sided == pytest.approx((1 + (found <= 0).sum()) / 26)
    assert result.sentences == 18


def test_forms_may_differ_in_spaces_on_either_side():
    gold = Sentence.from_columns(forms=["10000", "x y z"], heads=[0, 1], deprels=["root", "x"])
    system = Sentence.from_columns(forms=["10 0 00", "xyz"], heads=[0, 1], deprels=["root", "y"])
    assert evaluate([gold], [system]).las == 50.0
    with pytest.raises(
        UserError, match=r"^sentence 2 .*: the gold side ends before it, the system"
    ):
        evaluate([gold], [gold, gold])
    with pytest.raises(
        UserError, match=r"^sentence 2 .*: the system side ends before it, the gold"
    ):
        evaluate([gold, gold], [gold])


# Breakdowns


def test_breakdowns_hold_each_number_under_its_name():
    gold = sentence("a/X/0/root b/X/1/x c/X/2/x d/X/2/y")
    systems = {"one": ([0, 1, 1, 2], "root x x y"), "two": ([0, 1, 2, 2], "root y x y")}
    found = {}
    for name, (heads, labels) in systems.items():
        found[name] = Breakdown(["deprel"])
        list(found[name].watch([(gold, gold.with_tree(heads, labels.split()))]))
    first, *_ = breakdown_records("deprel", found)  # the most errors of the last system come first
    assert first == {
        "group": "x",
        "words": 2,
        "systems": [
            {"file": "one", "uas": 50.0, "las": 50.0, "label_accuracy": 100.0,
             "heads": 1, "labels": 2, "labelled": 1, "errors": 1},
            {"file": "two", "uas": 100.0, "las": 50.0, "label_accuracy": 50.0,
             "heads": 2, "labels": 1, "labelled": 1, "errors": 1},
        ],
        "difference": {"uas": 50.0, "las": 0.0, "label_accuracy": -50.0, "errors": 0},
    }  # fmt: skip
    table = breakdown_table("deprel", found)
    assert table.records()[0] == {
        "group": "x", "words": 2, "share": 50.0,
        "uas 1": 50.0, "uas 2": 100.0, "uas 2-1": "+50.00",
        "las 1": 50.0, "las 2": 50.0, "las 2-1": "+0.00",
        "label_accuracy 1": 100.0, "label_accuracy 2": 50.0, "label_accuracy 2-1": "-50.00",
        "errors 1": 1, "errors 2": 1, "errors 2-1": "+0",
    }  # fmt: skip
    assert table.title == "By deprel"
    assert table.notes == (
        "1: one", "2: two",
        "errors: words without the gold HEAD and DEPREL; LA: words with the gold DEPREL.",
    )  # fmt: skip
    one = breakdown_table("deprel", {"one": found["one"]})
    assert [column.heading for column in one.columns] == [
        "relation", "words", "%", "UAS", "LAS", "LA", "errors",
    ]  # fmt: skip
    assert len(one.notes) == 1
    lines = one.to_markdown().splitlines()
    assert lines[2:5] == [
        "| relation | words | % | UAS | LAS | LA | errors |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| x | 2 | 50.0 | 50.00 | 50.00 | 100.00 | 1 |",
    ]
    lengths = Breakdown(["length"])
    list(lengths.watch([(gold, gold)]))
    assert breakdown_table("length", {"one": lengths}).notes == (
        "errors: words without the gold HEAD and DEPREL.",  # and none about LA, which is not shown
        "distance: of the gold head, in words.",
    )
