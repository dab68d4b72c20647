"""Models of selected features: what they keep, score, say and store; and the plain perceptron."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from samples import sentence
from test_gradient_mining import N_FEATURES, counted, spelled
from test_hashed_kernel import trained
from test_kernel_perceptron import random_lists
from test_learning import random_lists as random_candidates
from test_learning import reference_input

from tk_spacy.errors import ModelError
from tk_spacy.features.schema import Schema
from tk_spacy.features.templates import FEATURE_TYPES
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kernels.hashed_kernel import without_parts
from tk_spacy.reranker.compression import hashed
from tk_spacy.reranker.model import BEFORE_EXPLICIT, Reranker
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import learn, prepare_lists
from tk_spacy.selection.basic import ArcLists, BasicFeatures
from tk_spacy.selection.corpus import MAX_FEATURES, Corpus
from tk_spacy.selection.explicit import explicit_to_dict, read_explicit
from tk_spacy.selection.model import SelectedFeatures
from tk_spacy.selection.pattern_table import PatternTable
from tk_spacy.selection.selecting import MiningSettings, select_features
from tk_spacy.utils.model_dirs import EXPLICIT
from tk_spacy.utils.serialization import META, from_npz, to_npz

LEVEL = MAX_FEATURES
"""What a step has more for each level that its arc hangs deeper."""


# Six features of a schema, to stand for those of random lists.


def some_features() -> BasicFeatures:
    golds, lists = random_candidates(1)
    basic = BasicFeatures.fit(Schema.fit(golds, labels=["x", "y"]), golds, lists)
    return BasicFeatures(basic.schema, basic.keys[:N_FEATURES].copy())


def mined_table(lists, gold, *, trees):
    settings = MiningSettings(trees=trees, max_order=3, threshold=1, iterations=3, pretraining=2)
    return select_features(Corpus(lists, N_FEATURES), gold, settings).table


def renumbered(lists, basic: BasicFeatures, kept: BasicFeatures) -> list[ArcLists]:
    """Lists with the numbers that features have in a model, without those that it lacks."""
    place = {key: i for i, key in enumerate(kept.keys.tolist())}
    new = [place.get(key) for key in basic.keys.tolist()]
    out = []
    for item in lists:
        rows = [
            [new[i] for i in item.ids[a:b].tolist() if new[i] is not None]
            for a, b in zip(item.starts[:-1], item.starts[1:], strict=True)
        ]
        starts = np.cumsum([0, *map(len, rows)], dtype=np.int32)
        ids = np.array([i for row in rows for i in row], dtype=np.int32)
        out.append(ArcLists(item.heads, item.members, starts, ids))
    return out


@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_model_scores_as_an_enumeration_without_what_has_no_weight(trees, n_threads):
    lists, candidates, gold = random_lists(21, 30)
    basic, table = some_features(), mined_table(lists, gold, trees=trees)
    names = spelled(table.parents, table.steps, trees=trees)
    weights = np.random.default_rng(2).integers(-4, 5, size=len(table)) / 8
    weights[[("1" in str(name) or "4" in str(name)) for name in names]] = 0  # in no pattern
    model = SelectedFeatures.make(basic, table, weights)
    by_name = {name: w for name, w in zip(names, weights.tolist(), strict=True) if w}
    assert model.basic.keys.tolist() == basic.keys[[0, 2, 3, 5]].tolist()
    assert len(model) == len(by_name) > 10
    assert len(model.table) < len(table)
    scores = model.scores(renumbered(lists, basic, model.basic), n_threads=n_threads)
    for own, row in zip(scores, candidates, strict=True):
        expected = [
            sum(by_name.get(p, 0) * n for p, n in counted(tree, trees=trees, most=3).items())
            for tree in row
        ]
        assert (own - own[0]).tolist() == [value - expected[0] for value in expected]
    assert len({value for own in scores for value in (own - own[0]).tolist()}) > 10


@pytest.mark.parametrize("trees", [False, True])
def test_model_keeps_what_a_pattern_grows_from_and_nothing_else(trees):
    deeper = LEVEL if trees else 0
    table = PatternTable([-1, 0, 1, -1, 3], [0, 1 + deeper, 3 + deeper, 2, 5 + deeper], trees=trees)
    basic = some_features()
    model = SelectedFeatures.make(basic, table, np.array([0.0, 0.0, 2.0, 0.0, 0.0]))
    assert model.table.parents.tolist() == [-1, 0, 1]
    assert model.table.steps.tolist() == [0, 1 + deeper, 2 + deeper]
    assert model.weights.tolist() == [0.0, 0.0, 2.0]
    assert model.basic.keys.tolist() == basic.keys[[0, 1, 3]].tolist()
    assert (model.table.trees, model.basic.schema) == (trees, basic.schema)
    assert len(model) == 1
    # Weights are those that are stored: a weight that float32 takes for 0 is none.
    small = SelectedFeatures.make(basic, table, np.array([0.1, 0.0, 1e-60, 0.0, 0.0]))
    assert small.weights.tolist() == [float(np.float32(0.1))]
    nothing = SelectedFeatures.make(basic, table, np.zeros(5))
    assert (len(nothing), len(nothing.table), len(nothing.basic)) == (0, 0, 0)
    assert nothing.n_templates() == 0
    with pytest.raises(ValueError, match="4 weights for 5 patterns"):
        SelectedFeatures.make(basic, table, np.zeros(4))


# For readers

BARKS = sentence("the/DET/3/det old/ADJ/3/amod dog/NOUN/4/nsubj barks/VERB/0/root")


@pytest.fixture(scope="module")
def of_barks() -> BasicFeatures:
    trees = [(BARKS.heads, BARKS.deprels, 1.0), ([2, 3, 4, 0], BARKS.deprels, 0.0)]
    lists = [CandidateList.build(trees, inventory=LabelInventory(), sources=["a"])]
    return BasicFeatures.fit(Schema.fit([BARKS]), [BARKS], lists, labelled=True)


ROOT = "h-POS=ROOT & m-POS=VERB"
SUBJECT = "h-POS=VERB & m-POS=NOUN"
NEAR_SUBJECT = f"{SUBJECT} & length=1 & head=right"
DETERMINER = "h-POS=NOUN & m-POS=DET"
ADJECTIVE = "h-POS=NOUN & m-POS=ADJ"
WORDS = "h-FORM=dog & m-FORM=old"
LABELLED = "h-FORM=dog & m-FORM=the & DEPREL=det"


def number(basic: BasicFeatures, name: str) -> int:
    return basic.names().index(name)


def test_names_of_sets_of_features_of_an_arc(of_barks):
    at = {name: number(of_barks, name) for name in (WORDS, ADJECTIVE, LABELLED)}
    low, high = sorted((WORDS, ADJECTIVE), key=at.__getitem__)
    table = PatternTable([-1, 0, -1], [at[low], at[high], at[LABELLED]], trees=False)
    model = SelectedFeatures.make(of_barks, table, np.array([0.0, 1.5, -0.25]))
    assert list(model.listed()) == [(f"{low} + {high}", 1.5), (LABELLED, -0.25)]


def test_names_of_parts_of_trees_say_what_hangs_where(of_barks):
    at = {n: number(of_barks, n) for n in (ROOT, SUBJECT, NEAR_SUBJECT, DETERMINER, ADJECTIVE)}
    table = PatternTable(
        # the verb's arc, its subject, the subject's two dependents; then a bare pair of siblings,
        # and below the first of them nothing, but a third arc on the top's level
        [-1, 0, 1, 2, -1, 4, 5, 6],
        [
            at[ROOT], LEVEL + at[SUBJECT], 2 * LEVEL + at[DETERMINER], 2 * LEVEL + at[ADJECTIVE],
            at[NEAR_SUBJECT], LEVEL + at[DETERMINER], at[ADJECTIVE], at[ADJECTIVE],
        ],
        trees=True,
    )  # fmt: skip
    model = SelectedFeatures.make(of_barks, table, np.array([1.0, 2, 3, 4, 5, 6, 7, 8]))
    assert list(model.listed()) == [
        (f"[{ROOT}]", 1.0),
        (f"[{ROOT} [{SUBJECT}]]", 2.0),
        (f"[{ROOT} [{SUBJECT} [{DETERMINER}]]]", 3.0),
        (f"[{ROOT} [{SUBJECT} [{DETERMINER}] [{ADJECTIVE}]]]", 4.0),
        (f"[{NEAR_SUBJECT}]", 5.0),
        (f"[{NEAR_SUBJECT} [{DETERMINER}]]", 6.0),
        (f"[{NEAR_SUBJECT} [{DETERMINER}]] [{ADJECTIVE}]", 7.0),
        (f"[{NEAR_SUBJECT} [{DETERMINER}]] [{ADJECTIVE}] [{ADJECTIVE}]", 8.0),
    ]


def test_templates_are_features_without_their_values(of_barks):
    at = {n: number(of_barks, n) for n in (ROOT, SUBJECT, NEAR_SUBJECT, WORDS, LABELLED)}
    steps = [at[ROOT], at[SUBJECT], at[NEAR_SUBJECT], at[WORDS], at[LABELLED]]
    table = PatternTable([-1] * 5, steps, trees=False)
    # h-POS & m-POS twice; with its place; two forms; two forms with DEPREL
    assert SelectedFeatures.make(of_barks, table, np.ones(5)).n_templates() == 4
    weights = np.array([1.0, 1, 0, 0, 0])
    assert SelectedFeatures.make(of_barks, table, weights).n_templates() == 1
    siblings, below = (
        SelectedFeatures.make(
            of_barks, PatternTable([-1, 0], [at[ROOT], at[SUBJECT] + d], trees=True), np.ones(2)
        )
        for d in (0, LEVEL)
    )
    assert (siblings.n_templates(), below.n_templates()) == (2, 2)


@pytest.fixture(scope="module")
def mined():
    """Rerankers of selected features, by whether they are of trees; and their lists."""
    kernel, pairs = trained()
    golds, lists = (list(column) for column in zip(*pairs, strict=True))
    basic = BasicFeatures.fit(kernel.schema, golds, lists, labelled=True)
    corpus = Corpus(basic.encode_all(golds, lists), len(basic))
    oracles = [trees.oracle(gold) for gold, trees in pairs]
    made = {}
    for trees in (False, True):
        settings = MiningSettings(
            trees=trees, max_order=2, threshold=2, step=0.01, iterations=3, pretraining=1
        )
        found = select_features(corpus, oracles, settings)
        explicit = SelectedFeatures.make(basic, found.table, found.weights / 3)
        assert len(explicit) > 50
        made[trees] = replace(kernel, support=without_parts(kernel.support), explicit=explicit)
    return made, pairs


@pytest.mark.parametrize("trees", [False, True])
def test_templates_of_a_mined_model_are_those_of_its_names(mined, trees):
    model = mined[0][trees].explicit
    templates = set()
    for name, weight in model.listed():
        assert weight
        bare = re.sub(r"=[^\s\]]+", "", name)
        templates.add(bare if trees else tuple(sorted(bare.split(" + "))))
    assert model.n_templates() == len(templates) > 20
    assert len({name for name, _ in model.listed()}) == len(model)


# Storage


@pytest.mark.parametrize("trees", [False, True])
def test_model_scores_the_same_to_the_bit_wherever_it_has_been(mined, trees, tmp_path):
    reranker, pairs = mined[0][trees], mined[1]
    expected = [scores.tobytes() for scores in reranker.batch_scores(pairs, n_threads=1)]
    assert len(set(expected)) > len(expected) // 2
    reranker.to_disk(tmp_path / "model")
    for again in (
        reranker,
        Reranker.from_disk(tmp_path / "model"),
        Reranker.from_bytes(reranker.to_bytes()),
        pickle.loads(pickle.dumps(reranker)),
    ):
        assert again.to_bytes() == reranker.to_bytes()
        assert list(again.explicit.listed()) == list(reranker.explicit.listed())
        for n_threads in (1, 2):
            scores = again.batch_scores(pairs, n_threads=n_threads)
            assert [own.tobytes() for own in scores] == expected
        alone = [again.scores(*pair).tobytes() for pair in pairs]
        assert alone == expected
    assert reranker.batch_scores([]) == []


def test_only_models_of_selected_features_have_the_new_format(mined):
    kernel, pairs = trained()
    old = kernel.to_files()
    assert json.loads(old[META])["format_version"] == BEFORE_EXPLICIT == 3
    assert "explicit" not in json.loads(old[META])
    assert EXPLICIT not in old
    again = Reranker.from_files(old)
    assert again.explicit is None
    assert [s.tobytes() for s in again.batch_scores(pairs)] == [
        s.tobytes() for s in kernel.batch_scores(pairs)
    ]
    new = mined[0][True].to_files()
    assert json.loads(new[META])["format_version"] == 4
    assert EXPLICIT in new


def changed(arrays, name, place, value):
    copy = arrays[name].copy()
    copy[place] = value
    return {**arrays, name: copy}


DAMAGES = {
    "keys as numbers": (lambda a: {**a, "keys": a["keys"].astype(float)}, "keys are float64"),
    "weights as float64": (lambda a: {**a, "weights": a["weights"].astype(float)}, "weights are"),
    "steps in a table": (lambda a: {**a, "steps": a["steps"][None]}, "steps are"),
    "parents unsigned": (lambda a: {**a, "parents": a["parents"].astype(np.uint32)}, "parents are"),
    "a weight too few": (lambda a: {**a, "weights": a["weights"][:-1]}, "weights for"),
    "a parent too few": (lambda a: {**a, "parents": a["parents"][:-1]}, "steps"),
    "no number": (lambda a: changed(a, "weights", 0, np.nan), "a weight is no number"),
    "infinite": (lambda a: changed(a, "weights", 0, np.inf), "a weight is no number"),
    "beyond bounds": (lambda a: changed(a, "weights", 0, 1e30), "or beyond 1e\\+24"),
    "no such feature": (lambda a: changed(a, "steps", 0, len(a["keys"])), "that is not there"),
    "a key twice": (lambda a: changed(a, "keys", 0, a["keys"][1]), "there twice"),
    "no template": (lambda a: changed(a, "keys", 0, 31), "template 30"),
    "no key": (lambda a: changed(a, "keys", 0, 0), "template -1"),
    "no value": (lambda a: changed(a, "keys", 0, (1 << 42) - (1 << 22) + 1), "no value"),
    "no place": (lambda a: changed(a, "keys", 0, 31 << 5 | 1), "place 31"),
    "a later parent": (lambda a: changed(a, "parents", 0, 3), "pattern 0 extends 3"),
    "a parent below -1": (lambda a: changed(a, "parents", 0, -2), "pattern 0 extends -2"),
    "a pattern twice": (
        lambda a: changed(
            changed(a, "parents", -1, a["parents"][-2]), "steps", -1, a["steps"][-2]
        ),
        "there twice",
    ),
    "hanging on nothing": (lambda a: changed(a, "steps", 0, LEVEL), "cannot be grown"),
}  # fmt: skip


@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_arrays_are_refused(mined, trees, damage):
    reranker = mined[0][trees]
    data, arrays = explicit_to_dict(reranker.explicit), reranker.explicit.to_arrays()
    damaging, message = DAMAGES[damage]
    broken = damaging(arrays)
    with pytest.raises(ValueError, match=message):
        read_explicit(data, broken, reranker.schema)
    files = {**reranker.to_files(), EXPLICIT: to_npz(broken)}
    with pytest.raises(
        ModelError, match=r"^model: explicit\.npz is damaged or .*; train it again$"
    ):
        Reranker.from_files(files)


def test_patterns_that_nothing_grows_to_are_refused(mined):
    """Else they would be told, and never score."""
    reranker = mined[0][False]
    data, arrays = explicit_to_dict(reranker.explicit), reranker.explicit.to_arrays()
    node = int(np.flatnonzero(arrays["parents"] >= 0)[0])
    parent = arrays["parents"][node]
    falling = changed(arrays, "steps", node, arrays["steps"][parent])
    with pytest.raises(ValueError, match=f"pattern {node} cannot be grown"):
        read_explicit(data, falling, reranker.schema)
    reranker = mined[0][True]
    data, arrays = explicit_to_dict(reranker.explicit), reranker.explicit.to_arrays()
    node = int(np.flatnonzero(arrays["parents"] >= 0)[0])
    too_deep = changed(arrays, "steps", node, arrays["steps"][node] % LEVEL + 2 * LEVEL)
    with pytest.raises(ValueError, match=f"pattern {node} cannot be grown"):
        read_explicit(data, too_deep, reranker.schema)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trees": 1}, "expected true or false"),
        ({"labelled": None}, "expected true or false"),
        ({"labelled": False}, "label"),
        ({"kind": "other"}, "of kind 'other', expected one of"),
        ({"kind": ["selected"]}, "of kind"),
        ({"features": 3}, "features are said to be 3, there are"),
        ({"basic_features": None}, "basic_features are said to be None, there are"),
    ],
)
def test_damaged_facts_are_refused(mined, change, message):
    reranker = mined[0][True]
    data = explicit_to_dict(reranker.explicit) | change
    with pytest.raises(ValueError, match=message):
        read_explicit(data, reranker.explicit.to_arrays(), reranker.schema)
    files = reranker.to_files()
    meta = json.loads(files[META]) | {"explicit": data}
    with pytest.raises(ModelError, match="damaged or incomplete"):
        Reranker.from_files({**files, META: json.dumps(meta).encode()})


@pytest.mark.parametrize("name", ["keys", "parents", "steps", "weights"])
def test_missing_arrays_are_refused(mined, name):
    reranker = mined[0][False]
    files = reranker.to_files()
    arrays = {key: value for key, value in from_npz(files[EXPLICIT]).items() if key != name}
    with pytest.raises(ModelError, match=f"explicit.npz is damaged .*'{name}' is missing"):
        Reranker.from_files({**files, EXPLICIT: to_npz(arrays)})


@pytest.mark.parametrize("explicit", [[1], "selected", 5, {}])
def test_strange_facts_are_refused(mined, explicit):
    files = mined[0][False].to_files()
    meta = json.loads(files[META]) | {"explicit": explicit}
    with pytest.raises(ModelError, match="damaged or incomplete"):
        Reranker.from_files({**files, META: json.dumps(meta).encode()})


def test_a_missing_or_cut_file_is_refused(mined, tmp_path):
    place = tmp_path / "model"
    mined[0][False].to_disk(place)
    whole = (place / EXPLICIT).read_bytes()
    (place / EXPLICIT).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match=r"model: explicit\.npz is damaged"):
        Reranker.from_disk(place)
    (place / EXPLICIT).unlink()
    with pytest.raises(ModelError, match=r"model: explicit\.npz is damaged .*no such file"):
        Reranker.from_disk(place)


def test_selected_features_stand_in_place_of_all_else(mined):
    kernel, _ = trained()
    explicit = mined[0][False].explicit
    message = "explicit features beside a kernel or manual weights"
    with pytest.raises(ValueError, match=message):
        replace(kernel, explicit=explicit)
    with pytest.raises(ValueError, match=message):
        replace(hashed(kernel, 10), explicit=explicit)
    bare = without_parts(kernel.support)
    with pytest.raises(ValueError, match=message):
        replace(kernel, support=bare, weights=np.zeros(1 << 22), explicit=explicit)


# The perceptron of manual features, which selected ones are compared with


def averaged_perceptron(lists, iterations):
    """In plain Python: each update adds the difference of two trees' features, of any loss."""
    weights, total, updates, moved = Counter(), Counter(), 0, 0
    for _ in range(iterations):
        for item in lists:
            scores = [
                sum(weights[f] * n for f, n in features.items()) for features in item["manual"]
            ]
            best = scores.index(max(scores))
            if best != item["oracle"]:
                difference = Counter(item["manual"][item["oracle"]])
                difference.subtract(item["manual"][best])
                weights.update(difference)
                updates += any(difference.values())
                moved += sum(n * n for n in difference.values()) != item["loss"][best]
            total.update(weights)
    steps = iterations * len(lists)
    return {f: n / steps for f, n in total.items()}, updates, moved


@pytest.mark.parametrize("options", [{"manual_parts": FEATURE_TYPES}, {"manual_parts": ("arc",)}])
def test_perceptron_of_manual_features(options):
    settings = Settings(
        kernel_parts=(), list_features=(), competitor="best", iterations=4, bits=16, **options
    )
    golds, lists = random_candidates(9, n=4)
    schema = Schema.fit(golds, labels=["x", "y"])
    items = prepare_lists(schema, golds, lists, settings)
    found, stats = learn(schema, items, settings, perceptron=True, n_threads=1)
    given, _, _ = reference_input(schema, golds, lists, items, settings)
    expected, updates, moved = averaged_perceptron(given, 4)
    assert stats.updates == updates > 5
    assert moved  # passive-aggressive updates would not all have the length 1
    dense = np.zeros(1 << settings.bits)
    dense[list(expected)] = list(expected.values())
    np.testing.assert_allclose(found.weights, dense, rtol=1e-6, atol=1e-9)
    usual, _ = learn(schema, items, settings, n_threads=1)
    assert not np.allclose(usual.weights, dense, atol=1e-3)
