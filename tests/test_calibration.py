"""Probabilities of trees, heads and labels: against plain sums, and what is really right."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from test_learning import random_lists
from trainings import Recorder, list_files, lists_training, options

from tk_spacy.errors import ModelError, UserError
from tk_spacy.evaluation.reliability import calibration_error, chance_error
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.reranker import calibration as room
from tk_spacy.reranker import training
from tk_spacy.reranker.calibration import Calibration, HeldOut, Logistic
from tk_spacy.reranker.evidence import FLOOR, WordFeatures
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import learn, prepare_lists, train_reranker, tuning_parts
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.serialization import META
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train.pipeline import train_pipeline

LABELS = ("root", "a", "b")
needs_sklearn = pytest.mark.skipif(not room.can_fit(), reason="scikit-learn is not installed")


def trees_of_three():
    """All trees of three words with a single root: chains and fans, heads as tuples."""
    found = []
    for heads in np.ndindex(4, 4, 4):
        if sum(head == 0 for head in heads) != 1:
            continue
        above = [_steps(heads, word) for word in (1, 2, 3)]
        if all(above):
            found.append(heads)
    return found


def _steps(heads, word):
    for _ in range(4):
        if word == 0:
            return True
        word = heads[word - 1]
    return False


def drawn_lists(n, *, seed, temperature=2.0):
    """Lists whose right tree was drawn by the softmax of the scores over the temperature.

    So their probabilities are known, and a reranker that divides by nothing is too sure.
    """
    generator = np.random.default_rng(seed)
    inventory = LabelInventory()
    trees = trees_of_three()
    found = []
    for _ in range(n):
        rows = generator.choice(len(trees), size=5, replace=False)
        own = []
        for row in rows:
            heads = trees[row]
            labels = ["root" if h == 0 else LABELS[generator.integers(1, 3)] for h in heads]
            own.append((heads, labels, tuple(generator.normal(0, 3, size=2))))
        candidates = CandidateList.build(own, inventory=inventory, sources=("one", "two"))
        final = candidates.scores.sum(axis=1)
        powers = np.exp((final - final.max()) / temperature)
        right = generator.choice(5, p=powers / powers.sum())
        gold = Sentence.from_columns(
            forms=["x", "y", "z"],
            heads=candidates.heads[right],
            deprels=candidates.deprels(right),
        )
        found.append(HeldOut(gold, candidates, final))
    return found


@pytest.fixture(scope="module")
def fitted():
    if not room.can_fit():
        pytest.skip("scikit-learn is not installed")
    return Calibration.fit(drawn_lists(400, seed=1))


def softmax(scores, temperature):
    powers = [math.exp((s - max(scores)) / temperature) for s in scores]
    return [p / sum(powers) for p in powers]


def odds(share):
    return math.log((share + FLOOR) / (1 - share + FLOOR))


def sigmoid(model, features):
    total = sum(w * x for w, x in zip(model.weights.values(), features, strict=True))
    return 1 / (1 + math.exp(-(total + model.bias)))


def length_of(word, head):
    """The kind of an arc by its length; words from 1."""
    if head == 0:
        return "root"
    steps = max(step for step in (1, 2, 3, 5, 10) if step <= abs(head - word))
    return str(steps if head > word else -steps)


def around(odds_of_words, heads, word):
    """What is known of the words around one, from 0, in the order of the features."""
    n = len(heads)
    sure = [sum(own) / len(own) for own in odds_of_words]
    whole = sum(sure) / n
    others = [x for m, x in enumerate(sure) if m != word]
    left = sure[word - 1] if word else whole
    right = sure[word + 1] if word + 1 < n else whole
    return [
        sum(others) / (n - 1) if others else whole,
        sure[heads[word] - 1] if heads[word] else whole,
        (left + right) / 2,
        math.log(n),
    ]


def kinds(model, relation, word, head):
    """0 or 1 for each kind of arcs, relations and lengths, by the names of a model's weights."""
    names = list(model.weights)
    told = [name.removeprefix("relation ") for name in names if name.startswith("relation ")]
    assert told == sorted(LABELS)
    lengths = names[-11:]
    assert lengths[:2] == ["root", "-10"]
    return [
        *(float(name == relation) for name in told),
        *(float(name == length_of(word, head)) for name in lengths),
    ]


def test_confidence_is_what_a_plain_sum_over_candidates_gives(fitted):
    for gold, trees, final in drawn_lists(5, seed=2):
        row = int(np.argmax(final))
        weights = [softmax(final, fitted.final_scale * t) for t in (0.1, 0.3, 1.0)]
        parsers = [
            softmax(trees.scores[:, j], fitted.scales[name])
            for j, name in enumerate(("one", "two"))
        ]
        weights.append([sum(pair) / 2 for pair in zip(*parsers, strict=True)])
        own = [trees.base, int(np.argmax(trees.scores[:, 1]))]
        weights.append([own.count(j) / 2 for j in range(len(trees))])
        found = fitted.confidence(trees, final)
        of_words = []
        for name, model, table in (
            ("heads", fitted.head, trees.heads),
            ("labels", fitted.label, trees.labels),
        ):
            shares = []
            for word in range(len(gold)):
                same = [table[j, word] == table[row, word] for j in range(len(trees))]
                own = [sum(w for w, s in zip(of, same, strict=True) if s) for of in weights]
                shares.append([odds(min(1.0, s)) for s in own])
            heads, relations = trees.heads[row].tolist(), trees.deprels(row)
            expected = [
                sigmoid(
                    model,
                    shares[word]
                    + around(shares, heads, word)
                    + kinds(model, relations[word], word + 1, heads[word]),
                )
                for word in range(len(gold))
            ]
            of_words.append(expected)
            # No word is less sure than that all of them are right.
            least = [max(p, found.tree) for p in expected]
            assert getattr(found, name).tolist() == pytest.approx(least)
        features = [odds(of[row]) for of in weights]
        features += [odds(math.prod(expected)) for expected in of_words]
        assert found.tree == pytest.approx(sigmoid(fitted.tree, features))


def test_confidence_of_other_candidates_divides_what_the_chosen_one_leaves(fitted):
    for _, trees, final in drawn_lists(5, seed=3):
        found = fitted.confidence(trees, final)
        row = int(np.argmax(final))
        assert found.trees[row] == found.tree
        others = [j for j in range(len(trees)) if j != row]
        shares = softmax(final[others], fitted.final_scale * fitted.others_temperature)
        left = (1 - found.tree) * fitted.others_share
        assert found.trees[others].tolist() == pytest.approx([left * s for s in shares])
        # Any candidate may be asked for.
        assert fitted.confidence(trees, final, others[0]).tree < found.tree


def test_confidence_of_a_single_candidate_is_that_of_one_without_rivals(fitted):
    inventory = LabelInventory()
    trees = CandidateList.build(
        [([0, 1], ["root", "a"], (1.0, 2.0))], inventory=inventory, sources=("one", "two")
    )
    found = fitted.confidence(trees, np.array([3.0]))
    sure = odds(1.0)
    best = [
        sigmoid(
            fitted.head, [sure] * 8 + [math.log(2)] + kinds(fitted.head, relation, word, word - 1)
        )
        for word, relation in ((1, "root"), (2, "a"))
    ]
    assert found.heads.tolist() == pytest.approx(best)
    assert found.trees.tolist() == [found.tree]


def test_confidence_of_one_word_with_one_tree_is_certainty(fitted):
    inventory = LabelInventory()
    sources = ("one", "two")
    one = [([0], ["root"], (1.0, 2.0))]
    trees = CandidateList.build(one, inventory=inventory, sources=sources)
    found = fitted.confidence(trees, np.array([3.0]))
    assert (found.tree, found.heads.tolist(), found.labels.tolist()) == (1.0, [1.0], [1.0])
    # Where labels compete there is something to be unsure of.
    two = CandidateList.build(
        [*one, ([0], ["a"], (0.5, 2.0))], inventory=inventory, sources=sources
    )
    assert fitted.confidence(two, np.array([3.0, 2.0])).labels[0] < 1


def test_fitted_probabilities_are_as_true_as_chance_allows(fitted):
    heads, labels, whole = [], [], []
    for gold, trees, final in drawn_lists(1500, seed=4):
        found = fitted.confidence(trees, final)
        row = int(np.argmax(final))
        right = trees.heads[row] == gold.heads
        same = np.array([a == b for a, b in zip(trees.deprels(row), gold.deprels, strict=True)])
        heads.append((found.heads, right))
        labels.append((found.labels, same))
        whole.append(([found.tree], [bool(right.all() and same.all())]))
    for pairs in (heads, labels, whole):
        values = np.concatenate([p for p, _ in pairs])
        right = np.concatenate([r for _, r in pairs])
        assert 0.2 < right.mean() < 0.95
        assert calibration_error(values, right) < chance_error(values) + 0.02
    # The softmax of the scores alone, which were drawn at another temperature, is not.
    plain = [float(1 / np.exp(f - f.max()).sum()) for _, _, f in drawn_lists(1500, seed=4)]
    assert calibration_error(plain, np.concatenate([r for _, r in whole])) > 0.1


@needs_sklearn
def test_logistic_is_the_optimum_of_its_penalised_likelihood():
    generator = np.random.default_rng(6)
    features = generator.normal(size=(300, 2)) * [1.0, 20.0] + [5.0, 0.0]
    right = generator.random(300) < 1 / (1 + np.exp(-(features[:, 0] - 5 + features[:, 1] / 10)))
    model = Logistic.fit(["a", "b"], features, right)
    deviations = features.std(axis=0)
    standard = (features - features.mean(axis=0)) / deviations
    errors = model.probabilities(features) - right
    weights = np.array(list(model.weights.values())) * deviations
    # Of the gradient nothing is left: errors by features, and the weights themselves (C is 1).
    assert (standard.T @ errors + weights).tolist() == pytest.approx([0, 0], abs=0.05)
    assert errors.sum() == pytest.approx(0, abs=0.05)


@needs_sklearn
def test_kinds_of_arcs_weigh_the_less_the_rarer_they_are():
    # A kind that was always wrong: nine of ten others are right.
    kind = np.zeros((1000, 1))
    right = np.arange(1000) % 10 > 0
    weights = []
    for size in (2, 20, 200):
        kind[:size] = 1.0
        right[:size] = False
        model = Logistic.fit(["kind"], kind, right, n_kinds=1)
        weights.append(model.weights["kind"])
        # Of the gradient of its penalised likelihood, the penalty in units of 0 and 1.
        errors = model.probabilities(kind) - right
        assert errors[:size].sum() + weights[-1] == pytest.approx(0, abs=0.05)
    assert 0 > weights[0] > -2
    assert weights[0] > weights[1] > weights[2]


@needs_sklearn
def test_calibration_of_very_many_lists_learns_from_every_second_one(monkeypatch):
    held = drawn_lists(60, seed=4)
    total = sum(len(item.gold) for item in held)
    whole, half = Calibration.fit(held), Calibration.fit(held[::2])
    monkeypatch.setattr(room, "MOST_WORDS", total)
    assert Calibration.fit(held) == whole
    monkeypatch.setattr(room, "MOST_WORDS", total - 1)
    assert Calibration.fit(held) == half != whole


def test_places_of_heads_tell_lengths_apart():
    n = 25
    names = WordFeatures(["one"], ()).names[-11:]
    for head in range(n + 1):
        if head == 13:
            continue
        trees = CandidateList.build(
            [(one_arc(n, 13, head), ["a"] * n, (0.0,))],
            inventory=LabelInventory(), sources=("one",),
        )  # fmt: skip
        of_heads, _ = WordFeatures(["one"], ()).of(trees, np.ones((5, 1)), 0)
        kinds_of_word = of_heads[12, -11:]
        assert kinds_of_word.sum() == 1
        assert names[int(kinds_of_word.argmax())] == length_of(13, head)


def one_arc(n, word, head):
    """Heads of a tree in which a word has this head, and all others hang on the root."""
    top = head or word
    heads = [top] * n
    heads[top - 1] = 0
    heads[word - 1] = head
    return heads


def test_logistic_of_things_that_are_all_right_is_nearly_sure():
    model = Logistic.fit(["a"], np.ones((8, 1)), np.ones(8, dtype=bool))
    assert model.probabilities(np.array([[1.0]])).tolist() == pytest.approx([0.9])


def test_adjusted_probabilities_are_true_of_other_lists(fitted):
    # Lists where the first candidates are right more often than where the models were fitted.
    near, new = (drawn_lists(600, seed=seed, temperature=0.5) for seed in (21, 22))
    adjusted = fitted.adjusted_to(near)
    errors = []
    for model in (fitted, adjusted):
        said, right = [], []
        for gold, trees, final in new:
            row = int(final.argmax())
            said.append(model.confidence(trees, final).heads)
            right.append(trees.heads[row] == gold.heads)
        errors.append(calibration_error(np.concatenate(said), np.concatenate(right)))
    assert errors[0] > 0.08
    assert errors[1] < 0.04
    # What is surer than something else stays so: one factor and one bias for all.
    assert all(model.weights[room.OF_MODEL] > 0 for model in adjusted.adjusted.values())
    _, trees, final = new[0]
    before, after = (m.confidence(trees, final).tree for m in (fitted, adjusted))
    model = adjusted.adjusted["tree"]
    expected = model.weights[room.OF_MODEL] * odds(before) + model.bias
    assert math.log(after / (1 - after)) == pytest.approx(expected)


def test_kinds_that_too_few_lists_tell_of_are_not_adjusted(fitted):
    assert fitted.adjusted_to([]) == fitted
    few = fitted.adjusted_to(drawn_lists(38, seed=23))  # of words enough, not of trees
    assert set(few.adjusted) == {"head", "label"}


def test_adjusting_never_turns_sure_into_unsure(fitted):
    upside_down = []
    for gold, trees, final in drawn_lists(200, seed=24):
        row = int(final.argmin() if final.std() > 1.5 else final.argmax())
        right = gold.with_tree(trees.heads[row], trees.deprels(row))
        upside_down.append(HeldOut(right, trees, final))
    adjusted = fitted.adjusted_to(upside_down).adjusted
    assert len(adjusted) < 3
    assert all(model.weights[room.OF_MODEL] > 0 for model in adjusted.values())


def test_fit_says_what_it_lacks(monkeypatch):
    with pytest.raises(UserError, match="held-out lists"):
        Calibration.fit([])
    monkeypatch.setattr(room, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"scikit-learn; install it with `pip install 'tk-spacy\["):
        Calibration.fit(drawn_lists(2, seed=0))


def test_stored_calibration_is_the_same_and_is_used_without_scikit_learn(fitted, monkeypatch):
    fitted = fitted.adjusted_to(drawn_lists(400, seed=3))
    assert set(fitted.adjusted) == {"head", "label", "tree"}
    again = Calibration.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again == fitted
    stored = fitted.to_dict()
    del stored["adjusted"]  # as earlier versions wrote it
    assert Calibration.from_dict(stored) == replace(fitted, adjusted={})
    del stored["relations"]  # as still earlier ones did, whose models saw shares alone
    shares = WordFeatures(list(fitted.scales), None).names
    assert len(shares) == 5
    for kind in ("head", "label"):
        stored[kind] = {"bias": 0.5, "weights": dict.fromkeys(shares, 0.25)}
    earlier = Calibration.from_dict(stored)
    assert earlier.to_dict()["relations"] is None
    assert Calibration.from_dict(earlier.to_dict()) == earlier
    _, trees, final = drawn_lists(1, seed=7)[0]
    best = odds(1.0)
    single = CandidateList.build(
        [([0, 1], ["root", "a"], (1.0, 2.0))],
        inventory=LabelInventory(), sources=("one", "two"),
    )  # fmt: skip
    said = earlier.confidence(single, np.array([3.0])).heads
    assert said.tolist() == pytest.approx([1 / (1 + math.exp(-(1.25 * best + 0.5)))] * 2)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    _, trees, final = drawn_lists(1, seed=7)[0]
    assert again.confidence(trees, final).tree == fitted.confidence(trees, final).tree


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"final_scale": 0.0}, "positive"),
        ({"others_share": 1.5}, "0 to 1"),
        ({"relations": ["a", "root"]}, "features"),
        ({"relations": "ab"}, "relations is 'ab', expected a list"),
        ({"scales": {"one": 1.0, "combiner": 1.0}}, "features"),
        ({"head": {"bias": 1e300, "weights": {}}}, "features"),
        ({"adjusted": {"words": {"bias": 0.0, "weights": {"model": 1.0}}}}, "adjusted is of"),
        ({"adjusted": {"head": {"bias": 0.0, "weights": {"final 1": 1.0}}}}, "features"),
        ({"adjusted": {"head": {"bias": 0.0, "weights": {"model": -1.0}}}}, "negative factor"),
        ({"adjusted": {"tree": {"bias": 0.0, "weights": {"model": 1e20}}}}, "beyond all bounds"),
    ],
)
def test_damaged_calibration_is_refused(fitted, change, message):
    with pytest.raises(ValueError, match=message):
        Calibration.from_dict(fitted.to_dict() | change)


# In training


@needs_sklearn
def test_training_adjusts_confidence_to_dev(lists, monkeypatch):
    golds, trees = lists
    train, dev = slice(0, 30), slice(30, 40)
    seen = []
    monkeypatch.setattr(
        Calibration, "adjusted_to", lambda self, held, arcs: seen.extend(held) or replace(self)
    )
    reranker, _ = train_reranker(
        golds[train], trees[train], QUICK, schema=Schema.fit(golds), tuning_folds=0,
        calibration_folds=2, dev=(golds[dev], trees[dev]), penalties=False,
    )  # fmt: skip
    assert not reranker.penalties.weights
    assert [item.gold for item in seen] == golds[dev]
    for item, s, own in zip(seen, golds[dev], trees[dev], strict=True):
        assert item.candidates is own
        assert item.final.tolist() == reranker.final_scores(s, own).tolist()


def test_confidence_is_adjusted_to_what_is_chosen_with_repaired_trees():
    model = open_model(lists_training()[0]).reranker
    pairs = list(read_kbest(list_files()["test"], inventory=LabelInventory()))
    golds, trees = zip(*pairs, strict=True)
    found = training.decided(model, golds, trees)
    for item, s, own in zip(found, golds, trees, strict=True):
        decision = model.decide(s, own)
        assert item.candidates.heads.tolist() == decision.candidates.heads.tolist()
        assert item.final.tolist() == decision.final.tolist()
        assert int(item.final.argmax()) == decision.row
    assert any(len(item.candidates) > len(own) for item, own in zip(found, trees, strict=True))


QUICK = Settings(bits=12, iterations=2, kernel_parts=("arc",))


@pytest.fixture(scope="module")
def lists():
    return random_lists(3, sentences=40, n=5)


@needs_sklearn
def test_training_calibrates_on_lists_that_the_scoring_reranker_did_not_see(lists, monkeypatch):
    golds, trees = lists
    seen = []
    real = Calibration.fit.__func__
    monkeypatch.setattr(
        Calibration, "fit", classmethod(lambda cls, held: seen.extend(held) or real(cls, held))
    )
    schema = Schema.fit(golds)
    reranker, _ = train_reranker(
        golds, trees, QUICK, schema=schema, seed=5, tuning_folds=0, calibration_folds=2
    )
    items = prepare_lists(schema, golds, trees, QUICK)
    place = 0
    for held in tuning_parts(40, 2, seed=5):
        scout, _ = learn(schema, items.without(set(held.tolist())), QUICK)
        for i in held.tolist():
            assert seen[place].candidates is trees[i]
            scores = reranker.combination.final(trees[i], scout.scores(golds[i], trees[i]))
            assert seen[place].final.tolist() == scores.tolist()
            place += 1
    assert place == len(seen) == 40
    assert reranker.calibration is not None


@needs_sklearn
@pytest.mark.parametrize(
    ("tuning", "calibrating", "trainings"), [(0, 0, 1), (0, 3, 4), (2, 3, 3), (2, 0, 3)]
)
def test_training_reuses_what_was_held_out_for_tuning(
    lists, monkeypatch, tuning, calibrating, trainings
):
    golds, trees = lists
    calls = []
    monkeypatch.setattr(
        training, "learn", lambda *given, **more: calls.append(1) or learn(*given, **more)
    )
    reranker, _ = train_reranker(
        golds, trees, QUICK, schema=Schema.fit(golds), tuning_folds=tuning,
        calibration_folds=calibrating,
    )  # fmt: skip
    assert len(calls) == trainings
    assert (reranker.calibration is not None) == bool(calibrating)


def test_training_gives_final_scores_of_rerankers_that_did_not_see_the_lists(lists):
    golds, trees = lists
    schema = Schema.fit(golds)
    unseen = {}
    reranker, _ = train_reranker(
        golds, trees, QUICK, schema=schema, seed=5, tuning_folds=0, unseen=unseen
    )
    items = prepare_lists(schema, golds, trees, QUICK)
    assert sorted(unseen) == list(range(40))
    for held in tuning_parts(40, training.CALIBRATION_FOLDS, seed=5):
        scout, _ = learn(schema, items.without(set(held.tolist())), QUICK)
        for i in held.tolist():
            scores = reranker.combination.final(trees[i], scout.scores(golds[i], trees[i]))
            assert unseen[i].tolist() == scores.tolist()


@pytest.mark.parametrize(("tuning", "trainings"), [(0, 1 + 3), (1, 1 + 1 + 3), (2, 2 + 1)])
def test_unseen_lists_are_scored_by_what_was_held_out_for_tuning(
    lists, monkeypatch, tuning, trainings
):
    golds, trees = lists
    calls, unseen = [], {}
    monkeypatch.setattr(
        training, "learn", lambda *given, **more: calls.append(1) or learn(*given, **more)
    )
    train_reranker(
        golds, trees, QUICK, schema=Schema.fit(golds), tuning_folds=tuning, unseen=unseen
    )
    assert len(calls) == trainings
    assert sorted(unseen) == list(range(40))


@needs_sklearn
def test_calibrated_models_are_stored_and_alike_for_any_number_of_threads(lists, tmp_path):
    golds, trees = lists
    schema = Schema.fit(golds)
    made = [
        train_reranker(
            golds, trees, QUICK, schema=schema, tuning_folds=0, calibration_folds=2, n_threads=n
        )[0]
        for n in (1, 2)
    ]
    assert made[0].to_bytes() == made[1].to_bytes()
    made[0].to_disk(tmp_path / "model")
    again = Reranker.from_disk(tmp_path / "model")
    assert again.calibration == made[0].calibration
    assert "calibration" not in again.about
    final = again.final_scores(golds[0], trees[0])
    assert again.confidence(trees[0], final).tree == made[0].confidence(trees[0], final).tree
    meta = json.loads((tmp_path / "model" / META).read_text())
    meta["calibration"]["final_scale"] = -1
    (tmp_path / "model" / META).write_text(json.dumps(meta))
    with pytest.raises(ModelError, match="positive"):
        Reranker.from_disk(tmp_path / "model")


def test_models_without_calibration_say_nothing_of_confidence(lists):
    golds, trees = lists
    reranker, _ = train_reranker(golds, trees, QUICK, schema=Schema.fit(golds), tuning_folds=0)
    assert b"calibration" not in reranker.to_files()[META]
    assert reranker.confidence(trees[0], reranker.final_scores(golds[0], trees[0])) is None


@pytest.mark.parametrize("there", [pytest.param(True, marks=needs_sklearn), False])
def test_whole_training_says_where_it_cannot_calibrate(tmp_path, monkeypatch, there):
    if not there:
        monkeypatch.setattr(room, "find_spec", lambda name: None)
    recorder = Recorder()
    train_pipeline(options(tmp_path / "model"), progress=recorder)
    said = [note for note in recorder.notes if "scikit-learn" in note]
    assert said == ([] if there else [room.MISSING])
    assert (Reranker.from_disk(tmp_path / "model").calibration is not None) == there
