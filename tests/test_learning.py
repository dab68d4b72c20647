"""Algorithm 1 against its plain-Python twin, and what training promises."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import reference
from test_kernel import choices_of, random_sentence, random_tree

from tk_spacy.errors import UserError
from tk_spacy.features.encoder import ListEncoder
from tk_spacy.features.list_features import LIST_FEATURES
from tk_spacy.features.part_types import GRAND_TRI_SIBLING, part_type
from tk_spacy.features.parts import extract_frames, extract_parts, extract_spans
from tk_spacy.features.schema import Schema
from tk_spacy.features.templates import FEATURE_TYPES, FRAME, SPAN, add_feature_counts, type_code
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.reranker.learner import Learner
from tk_spacy.reranker.settings import LEFT_OPEN, Settings, suit
from tk_spacy.reranker.training import learn, prepare_lists, train_reranker, tuning_parts
from tk_spacy.treebank.conllu import Sentence

ALL = ("arc", "sibling", "grandparent")


def random_lists(seed, *, sentences=8, k=5, n=5):
    """Gold sentences over a tiny alphabet and lists of random trees near them."""
    rng = np.random.default_rng(seed)
    inventory = LabelInventory()
    golds, lists = [], []
    for _ in range(sentences):
        gold = random_sentence(rng, n=n)
        trees = [(gold.heads, gold.deprels, float(rng.normal()))] if rng.random() < 0.5 else []
        for _ in range(k):
            labels = [str(v) for v in rng.choice(["x", "y"], size=n)]
            trees.append((random_tree(rng, n), labels, float(rng.normal())))
        golds.append(gold)
        lists.append(CandidateList.build(trees, inventory=inventory, sources=["r"]))
    return golds, lists


def plain_losses(gold, trees, *, labelled):
    """The oracle and each candidate's loss against it, counted word by word."""

    def wrong(row):
        heads = sum(int(a) != int(b) for a, b in zip(trees.heads[row], gold.heads, strict=True))
        labels = sum(a != b for a, b in zip(trees.deprels(row), gold.deprels, strict=True))
        return heads, labels, row

    rows = range(len(trees))
    oracle = min(rows, key=wrong)
    losses = []
    for row in rows:
        loss = 0.0
        for word in range(len(gold)):
            loss += int(trees.heads[row, word]) != int(trees.heads[oracle, word])
            loss += labelled and trees.deprels(row)[word] != trees.deprels(oracle)[word]
        losses.append(loss)
    return {"oracle": oracle, "loss": losses}


def name_of(part):
    return ",".join(f"{key}={value}" for key, value in sorted(part.items()))


def reference_input(schema, golds, lists, items, settings):
    """The same lists for the twin: parts by name, features by id, and the kernel by enumeration."""
    by_name = {}
    cache = {}
    memo = {}

    def sets(i, name):
        if (i, name) not in cache:
            type_name, part = by_name[name]
            cache[i, name] = reference.slot_sets(
                golds[items[i].index], part, type_name, skip=settings.skip, **choices_of(schema)
            )
        return cache[i, name]

    def k(a, b):
        if by_name[a[1]][0] != by_name[b[1]][0]:
            return 0
        if (a, b) not in memo:
            memo[a, b] = memo[b, a] = reference.kernel_by_slots(sets(*a), sets(*b))
        return memo[a, b]

    out = []
    for item in items:
        trees = lists[item.index]
        fields = schema.encode(golds[item.index]).fields
        kernel, manual = [], []
        for j in range(len(trees)):
            names = set()
            for type_name in settings.kernel_parts:
                for part in reference.tree_parts(
                    trees.heads[j].tolist(), trees.deprels(j), type_name
                ):
                    name = type_name + ":" + name_of(part)
                    by_name[name] = (type_name, part)
                    names.add(name)
            kernel.append(names)
            counts = np.zeros(1 << settings.bits)
            labels = np.array([[schema.label_id(v) for v in trees.deprels(j)]], dtype=np.int32)
            for type_name in settings.manual_parts:
                tree = trees.heads[j : j + 1]
                if type_name == FRAME:
                    rows, _, _ = extract_frames(fields, tree, labels)
                elif type_name == SPAN:
                    rows, _, _ = extract_spans(tree, labels)
                elif type_name == GRAND_TRI_SIBLING.name:
                    rows, _, _ = extract_parts(tree, labels, GRAND_TRI_SIBLING)
                else:
                    rows, _, _ = extract_parts(tree, labels, part_type(type_name))
                every = np.arange(len(rows), dtype=np.int32)
                add_feature_counts(
                    fields, rows, every, np.ones_like(every), type_code(type_name), counts
                )
            features = {int(f): float(counts[f]) for f in np.flatnonzero(counts)}
            if items.list_features:
                named = zip(items.list_features.names, item.encoded.listed[j], strict=True)
                features |= {name: float(value) for name, value in named}
            manual.append(Counter(features))
        out.append(
            {
                "kernel": kernel,
                "manual": manual,
                **plain_losses(golds[item.index], trees, labelled=settings.loss == "labelled"),
                "k": k,
            }
        )
    return out, by_name, sets


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_parts": ALL, "manual_parts": ()},
        {"kernel_parts": (), "manual_parts": FEATURE_TYPES},
        {"kernel_parts": ("arc",), "manual_parts": ("arc", "sibling"), "skip": ("h",)},
        {"kernel_parts": ("arc",), "C": 0.001, "loss": "heads"},
        {"kernel_parts": ("sibling",), "kernel_scale": 0.01, "competitor": "violator"},
        {"list_features": LIST_FEATURES},
        {"list_features": ("scores",), "list_scale": 3.0, "manual_parts": ()},
        {"list_features": ("shares",), "kernel_parts": (), "shuffle_seed": None},
        {"kernel_parts": ("arc",), "shuffle_seed": 3},
    ],
)
def test_learning_equals_plain_algorithm_1(options):
    settings = Settings(**{"bits": 16, "iterations": 4, "list_features": (), **options})
    golds, lists = random_lists(5, n=4)
    schema = Schema.fit(golds, labels=["x", "y"])
    items = prepare_lists(schema, golds, lists, settings)
    reranker, stats = learn(schema, items, settings, n_threads=1)
    given, by_name, sets = reference_input(schema, golds, lists, items, settings)
    order = list(range(len(given))) * settings.iterations
    if settings.shuffle_seed is not None:
        rng = np.random.default_rng(settings.shuffle_seed)
        order = [i for _ in range(settings.iterations) for i in rng.permutation(len(given))]
        assert order[:4] != order[4:8]
    alpha, w, updates = reference.algorithm_1(
        given,
        iterations=settings.iterations,
        order=order,
        C=settings.C,
        kernel_scale=settings.kernel_scale,
        add_loss=settings.competitor == "violator",
    )
    assert stats.updates == updates > 3
    # Support parts whose property combinations are equal are one part.
    merged: Counter = Counter()
    for (i, name), value in alpha.items():
        merged[by_name[name][0], sets(i, name)] += value
    expected = {
        type_name: sorted(
            settings.kernel_scale * v
            for (t, _), v in merged.items()
            if t == type_name and abs(v) > 1e-12
        )
        for type_name in settings.kernel_parts
    }
    for type_name in settings.kernel_parts:
        found = np.sort(reranker.support.types[type_name].weights)
        found = found[np.abs(found) > 1e-12]
        assert len(found) == len(expected[type_name])
        np.testing.assert_allclose(found, expected[type_name], rtol=0, atol=1e-9)
    if settings.list_features:
        assert reranker.list_features.factor == settings.list_scale
        named = [w.pop(name) for name in reranker.list_features.names]
        np.testing.assert_allclose(reranker.list_weights, named, rtol=1e-9, atol=1e-12)
        assert np.abs(named).max() > 0.001
    if settings.manual_parts:
        dense = np.zeros(1 << settings.bits)
        dense[list(w)] = list(w.values())
        np.testing.assert_allclose(reranker.weights, dense, rtol=1e-6, atol=1e-9)
    assert stats.support_parts == sum(len(t.weights) for t in reranker.support.types.values())
    assert (reranker.weights is None) == (not settings.manual_parts)
    assert (reranker.list_weights is None) == (not settings.list_features)


def test_support_scores_equal_the_sum_over_the_support():
    golds, lists = random_lists(11)
    settings = Settings(
        kernel_parts=ALL,
        manual_parts=(),
        list_features=(),
        iterations=3,
        kernel_scale=1.0,
        competitor="best",
    )
    schema = Schema.fit(golds)
    items = prepare_lists(schema, golds, lists, settings)
    reranker, _ = learn(schema, items, settings, n_threads=1)
    given, _, _ = reference_input(schema, golds, lists, items, settings)
    alpha, _, _ = reference.algorithm_1(given, iterations=3, C=math.inf)
    for i, item in enumerate(items):
        slow = np.array(
            [
                sum(a * given[i]["k"](p, (i, part)) for p, a in alpha.items() for part in names)
                for names in given[i]["kernel"]
            ]
        )
        fast = reranker.encoded_scores([item.encoded], n_threads=1)[0]
        # What all candidates share is left out of the fast scores.
        np.testing.assert_allclose(fast - fast[0], slow - slow[0], atol=1e-7)
    encoder = ListEncoder(schema, kernel_parts=ALL, manual_parts=(), contested_only=False)
    whole = reranker.encoded_scores([encoder.encode(golds[0], lists[0])], n_threads=1)[0]
    if items[0].index == 0:
        slow = [
            sum(a * given[0]["k"](p, (0, part)) for p, a in alpha.items() for part in names)
            for names in given[0]["kernel"]
        ]
        np.testing.assert_allclose(whole, slow, atol=1e-7)


@pytest.mark.parametrize("shuffle_seed", [None, 3])
def test_training_gives_the_same_bytes_for_any_number_of_threads(shuffle_seed):
    golds, lists = random_lists(2, sentences=60, n=6)
    settings = Settings(kernel_parts=ALL, iterations=3, bits=16, shuffle_seed=shuffle_seed)
    schema = Schema.fit(golds)
    models = [
        train_reranker(golds, lists, settings, schema=schema, seed=1, n_threads=t)[0].to_bytes()
        for t in (1, 2, 3)
    ]
    assert models[0] == models[1] == models[2]


def test_training_learns_what_agreement_decides():
    # Heads agree with their modifiers in case: only the pair of properties tells.
    rng = np.random.default_rng(0)
    inventory = LabelInventory()
    golds, lists = [], []
    for _ in range(60):
        cases = [str(c) for c in rng.permutation(["Nom", "Acc"])]
        own = str(rng.choice(cases))
        right = 1 + cases.index(own)
        deprels = ["dep", "dep", "amod", "root"]
        gold = Sentence.from_columns(
            forms=["a", "b", "c", "v"],
            upos=["NOUN", "NOUN", "ADJ", "VERB"],
            feats=[f"Case={c}" for c in (*cases, own)] + ["_"],
            heads=[4, 4, right, 0],
            deprels=deprels,
        )
        trees = [([4, 4, head, 0], deprels, 0.0) for head in (1, 2)]
        golds.append(gold)
        lists.append(CandidateList.build(trees, inventory=inventory, sources=["none"]))
    schema = Schema.fit(golds[:40])
    settings = Settings(manual_parts=(), iterations=10)
    reranker, _ = train_reranker(golds[:40], lists[:40], settings, schema=schema, n_threads=1)
    chosen = list(reranker.choices(zip(golds[40:], lists[40:], strict=True), n_threads=1))
    assert len(chosen) == len(golds) - 40
    assert all((trees.heads[j] == gold.heads).all() for gold, trees, j in chosen)


def test_learner_skips_updates_without_a_denominator():
    # Two candidates that differ in labels never seen: no property and no feature tells them apart.
    golds, _ = random_lists(1, sentences=1, n=3)
    inventory = LabelInventory()
    gold = golds[0]
    trees = [(gold.heads, [label] * 3, 0.0) for label in ("p", "q")]
    unseen = CandidateList.build(trees, inventory=inventory, sources=["r"])
    schema = Schema.fit([gold])
    settings = Settings(iterations=2, bits=12, list_features=())
    _, stats = learn(schema, prepare_lists(schema, [gold], [unseen], settings), settings)
    assert stats.updates == 0


def test_learner_refuses_more_steps_than_announced():
    golds, lists = random_lists(1, sentences=1, n=3)
    schema = Schema.fit(golds)
    settings = Settings(bits=12)
    item = prepare_lists(schema, golds, lists, settings)[0]
    item.remembered.reset()
    learner = Learner(
        kernel_parts=("arc",),
        manual_parts=(),
        n_properties=len(schema.properties),
        total_steps=1,
    )
    learner.step(item)
    with pytest.raises(ValueError, match="step 2 of 1"):
        learner.step(item)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_parts": ("arcs",)}, "unknown part type 'arcs'; choose from arc, sibling"),
        ({"kernel_parts": (), "manual_parts": ()}, "neither kernel nor manual"),
        ({"C": 0}, "C is 0; it must be positive"),
        ({"C": math.nan}, "C is nan"),
        ({"iterations": 0}, "iterations is 0"),
        ({"skip": ("x",)}, "unknown slot 'x'; choose from"),
        ({"kernel_scale": 0.0}, "kernel scale is 0.0"),
        ({"bits": 40}, "bits is 40"),
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"kernel_parts": "arc"}, "kernel parts is 'arc'; give a list of different names"),
        ({"kernel_parts": ("arc", "arc")}, "give a list of different names"),
        ({"manual_parts": None}, "manual parts is None; give a list"),
        ({"bits": "12"}, "bits is '12'; it must be a whole number"),
        ({"iterations": 1.5}, "iterations is 1.5; it must be a whole number"),
        ({"C": "1"}, "C is '1'; it must be a number"),
        ({"list_features": ("votes",)}, "unknown list features 'votes'; choose from scores, share"),
        ({"list_features": "scores"}, "list features is 'scores'; give a list"),
        ({"list_scale": 0}, "list scale is 0; it must be positive, from 1e-09 to 1e.09"),
        ({"kernel_scale": 1e200}, "kernel scale is 1e.200; .* from 1e-09 to 1e.09"),
        ({"shuffle_seed": -1}, "shuffle seed is -1"),
        ({"add_gold": "no"}, "add gold is 'no'; it must be true or false"),
        ({"count_single": 1}, "count single is 1; it must be true or false"),
    ],
)
def test_settings_name_what_is_wrong(options, message):
    with pytest.raises(UserError, match=message):
        Settings(**options)


def test_settings_survive_json():
    settings = Settings(C=math.inf, skip=("h",), kernel_parts=("arc", "sibling"))
    assert Settings.from_dict(settings.to_dict()) == settings
    # Stored where it is not the default, so that models of before are written as they were.
    assert "count_single" not in settings.to_dict()
    counting = replace(settings, count_single=True)
    assert counting.to_dict() == {**settings.to_dict(), "count_single": True}
    assert Settings.from_dict(counting.to_dict()) == counting
    with pytest.raises(UserError, match="unknown settings: depth"):
        Settings.from_dict({"depth": 3})
    with pytest.raises(UserError, match="give names with values"):
        Settings.from_dict([3])


def test_settings_left_open_suit_the_lists() -> None:
    settings = Settings(iterations=3, kernel_scale=0.5)
    found = suit(settings, LEFT_OPEN - {"kernel_scale"}, ("sampling",))
    assert found == replace(settings, manual_parts=("frame", "span"), list_scale=0.3)
    for sources in (("spacy",), ("sampling", "spacy"), ("file",)):
        assert suit(settings, LEFT_OPEN, sources) == settings
    assert suit(settings, frozenset(), ("sampling",)) == settings


def test_tuning_parts_hold_out_every_list_once():
    parts = tuning_parts(23, 5, seed=3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(23))
    assert sorted(map(len, parts)) == [4, 4, 5, 5, 5]
    assert all((np.diff(part) > 0).all() for part in parts)
    assert [p.tolist() for p in parts] == [p.tolist() for p in tuning_parts(23, 5, seed=3)]
    assert [p.tolist() for p in parts] != [p.tolist() for p in tuning_parts(23, 5, seed=4)]


def test_tuning_parts_of_the_paper_and_of_few_lists():
    (tenth,) = tuning_parts(40, 1, seed=0)
    assert len(tenth) == 4
    assert [len(tuning_parts(n, 1, seed=0)[0]) for n in (2, 12, 26)] == [1, 1, 3]
    assert [part.tolist() for part in tuning_parts(1, 1, seed=0)] == [[0]]
    assert sorted(len(part) for part in tuning_parts(3, 5, seed=0)) == [1, 1, 1]
    with pytest.raises(ValueError, match="folds is 0"):
        tuning_parts(3, 0, seed=0)


def one_choice_and_single_trees():
    """Three sentences of two words: two with one tree in their lists, and one with a choice, last.

    The second tree of that list is right, and the first one comes before it.
    """
    inventory = LabelInventory(["root", "dep"])
    gold = Sentence.from_columns(
        forms=["a", "b"], upos=["A", "B"], heads=[2, 0], deprels=["dep", "root"]
    )
    right, wrong = ([2, 0], ["dep", "root"], 1.0), ([0, 1], ["root", "dep"], 2.0)
    lists = [
        CandidateList.build(trees, inventory=inventory, sources=["s"])
        for trees in ([right], [right], [wrong, right])
    ]
    return [gold] * 3, lists


@pytest.mark.parametrize(
    ("count_single", "iterations", "share"),
    [
        # The only update is of the first visit to the list with a choice: of T steps the t-th, so
        # that it stands in T - t + 1 of them.
        (False, 1, 1 / 1),
        (False, 2, 2 / 2),
        (True, 1, 1 / 3),
        (True, 2, 4 / 6),
        (True, 4, 10 / 12),
    ],
)
def test_lists_of_one_tree_count_as_steps_of_the_average(count_single, iterations, share):
    golds, lists = one_choice_and_single_trees()
    settings = Settings(
        kernel_parts=("arc",),
        manual_parts=("arc",),
        list_features=(),
        kernel_scale=1.0,
        loss="heads",
        competitor="best",
        iterations=iterations,
        count_single=count_single,
    )
    schema = Schema.fit(golds)
    items = prepare_lists(schema, golds, lists, settings)
    assert [item.index for item in items] == ([0, 1, 2] if count_single else [2])
    reranker, stats = learn(schema, items, settings, n_threads=1)
    assert (stats.sentences, stats.updates) == (3 if count_single else 1, 1)
    # The update makes the right tree win by its loss, the two heads in which they differ; the mean
    # of all steps has a share of that.
    scores = reranker.encoded_scores([items[-1].encoded], n_threads=1)[0]
    assert scores[1] - scores[0] == pytest.approx(2 * share)


def test_lists_of_one_tree_alone_teach_nothing_also_where_they_count():
    golds, lists = one_choice_and_single_trees()
    settings = Settings(count_single=True, list_features=())
    with pytest.raises(UserError, match="no candidate list has more than one tree"):
        prepare_lists(Schema.fit(golds), golds[:2], lists[:2], settings)
