"""Repaired candidates, penalties on ill-formed trees, and the choice of well-formed ones alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference_repairs
from test_cli import invoke
from test_combiner import three_parsers
from trainings import list_files, lists_training, options, treebank

from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.well_formed import count_violations, word_facts
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.repairs import Repairing
from tk_spacy.kbest.well_formed import (
    REPAIRED,
    best_formed,
    best_formed_list,
    count_broken,
    list_violations,
    needed_repairs,
    with_repairs,
)
from tk_spacy.reranker.decision import Decision, repaired_list
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.penalties import GRID, Penalties, tune_penalties
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import combine_lists, train_reranker
from tk_spacy.treebank.conllu import Sentence, check_tree, load_treebank
from tk_spacy.trees.constraints import KINDS, OBJECTS, SUBJECTS, constraint_rules, kind_bits
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train.pipeline import train_pipeline

TAGS = ("NOUN", "VERB", "NOUN", "NOUN")
GOOD = ([2, 0, 2, 2], "nsubj root obj obl")
TWO_SUBJECTS = ([2, 0, 2, 2], "nsubj root nsubj obl")
TWO_OBJECTS = ([2, 0, 2, 2], "nsubj root obj obj")


def sentence(tree: tuple[list[int], str] = GOOD, tags: tuple[str, ...] = TAGS) -> Sentence:
    return Sentence.from_columns(
        forms=["w"] * len(tags), upos=tags, heads=tree[0], deprels=tree[1].split()
    )


def a_list(*trees: tuple[list[int], str], inventory: LabelInventory | None = None) -> CandidateList:
    scores = [-float(i) for i in range(len(trees))]
    return CandidateList.build(
        [
            (heads, labels.split(), (s, 2 * s))
            for (heads, labels), s in zip(trees, scores, strict=True)
        ],
        inventory=inventory or LabelInventory(),
        sources=("parser", "combiner"),
    )


def shown(trees: CandidateList) -> list[tuple[list[int], str]]:
    return [(heads.tolist(), " ".join(trees.deprels(i))) for i, heads in enumerate(trees.heads)]


def repaired(
    trees: CandidateList, first: int = 0, *, tags: tuple[str, ...] = TAGS, **more
) -> CandidateList:
    """The list with repairs where the tree in row `first` is the best one."""
    scores = -np.arange(len(trees), dtype=float)
    scores[first] = 1.0
    words = word_facts(sentence(tags=tags))
    return with_repairs(trees, needed_repairs(trees, scores, words, **more), by_share="combiner")


def test_a_repair_takes_the_arc_of_another_candidate() -> None:
    other = ([2, 0, 4, 2], "nsubj root nmod obj")
    third = ([2, 0, 4, 2], "nsubj root nmod nsubj")
    trees = a_list(TWO_SUBJECTS, other, third)
    found = repaired(trees)
    new = [i for i, tree in enumerate(shown(found)) if tree not in shown(trees)]
    # Two of three candidates have word 3 below word 4; one has what stood there.
    row = shown(found).index(([2, 0, 4, 2], "nsubj root nmod obl"))
    assert row in new
    np.testing.assert_allclose(found.scores[row], [0.0, 0.0 + np.log(2 / 1)])


def test_repairs_tell_what_they_changed() -> None:
    trees = a_list(
        TWO_SUBJECTS, ([2, 0, 4, 2], "nsubj root nmod obj"), ([2, 0, 4, 2], "nsubj root nmod iobj")
    )
    (made,) = needed_repairs(trees, np.array([2.0, 1.0, 0.0]), word_facts(sentence()))
    assert made.origin == 0
    assert made.heads.tolist() == [2, 0, 4, 2]
    assert trees.inventory.decode(made.labels.tolist()) == ("nsubj", "root", "nmod", "obl")
    assert made.changes.tolist() == [0.0, 0.0, np.log(2 / 1), 0.0]
    # An arc that no candidate has counts half of one.
    trees = a_list(([2, 0, 2, 3], "nsubj root case nmod"))
    (made,) = needed_repairs(
        trees, np.array([1.0]), word_facts(sentence(tags=("NOUN", "VERB", "ADP", "NOUN")))
    )
    assert made.changes.tolist() == [0.0, 0.0, 0.0, np.log(0.5)]


def test_a_repair_lifts_what_hangs_on_a_leaf() -> None:
    trees = a_list(([2, 0, 2, 3], "nsubj root case nmod"))
    tags = ("NOUN", "VERB", "ADP", "NOUN")
    found = repaired(trees, tags=tags)
    assert shown(found)[1:] == [([2, 0, 2, 2], "nsubj root case nmod")]
    np.testing.assert_allclose(found.scores[1], trees.scores[0] + [0.0, np.log(0.5)])


@pytest.mark.parametrize("seed", range(60))
def test_repairs_are_those_of_plain_code(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n, k = int(generator.integers(1, 9)), int(generator.integers(1, 9))
    names = ["nsubj", "obj", "punct", "case", "aux", "det", "conj", "obl", "fixed", "root"]
    inventory = LabelInventory(generator.permutation(names).tolist())
    trees = []
    for _ in range(k):
        order = generator.permutation(n)
        heads = [0] * n
        for i in range(1, n):
            heads[order[i]] = int(order[generator.integers(max(0, i - 2), i)]) + 1
        own = ["root" if h == 0 else str(generator.choice(names[:9])) for h in heads]
        trees.append((heads, " ".join(own)))
    given = a_list(*trees, inventory=inventory)
    tags = tuple(generator.choice(["NOUN", "VERB", "ADP", "DET", "PUNCT", "PROPN"], n).tolist())
    words = word_facts(sentence(trees[0], tags=tags))
    scores = generator.integers(0, 3, len(given)).astype(float)
    for kinds in (KINDS, KINDS[3:9], [SUBJECTS, OBJECTS, "rel-upos-case"]):
        expected, known = [], set(map(str, shown(given)))
        if count_broken(given, words, kinds)[int(scores.argmax())]:
            for row in np.argsort(-scores, kind="stable")[:REPAIRED].tolist():
                one = reference_repairs.repaired(given, row, words, kinds)
                text = str((one.heads.tolist(), " ".join(inventory.decode(one.labels))))
                if text not in known:
                    known.add(text)
                    expected.append(one)
        found = needed_repairs(given, scores, words, kinds)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.origin == other.origin
            for a, b in zip((one.heads, one.labels), (other.heads, other.labels), strict=True):
                assert a.dtype == b.dtype == np.int32
                assert a.tolist() == b.tolist()
            assert one.changes.tolist() == other.changes.tolist()  # to the bit


def test_repairs_refuse_arrays_that_do_not_fit() -> None:
    words = word_facts(sentence())
    heads, labels = np.array([[2, 0, 2, 2]], dtype=np.int32), np.zeros((1, 4), dtype=np.int32)
    numbers, ranks = np.zeros(1, dtype=np.uint8), np.zeros(1, dtype=np.int32)

    def made(**changes):
        arrays = {"heads": heads, "labels": labels, "relations": numbers, **changes}
        return Repairing(
            *arrays.values(), words.misfits, words.flags, constraint_rules(), kind_bits(KINDS)
        )

    for changes, message in (
        ({"heads": heads - 3}, r"heads\[0, 0\] is -1"),
        ({"heads": heads + 3}, r"heads\[0, 0\] is 5, expected 0 to 4"),
        ({"heads": heads[:, :3]}, "labels must be"),
        ({"labels": labels + 1}, r"labels\[0, 0\] is 1, expected 0 to 0"),
        ({"heads": heads[:0], "labels": labels[:0]}, "no candidates"),
        ({"heads": heads[:, :3], "labels": labels[:, :3]}, "misfits must be"),
    ):
        with pytest.raises(ValueError, match=message):
            made(**changes)
    for row in (-1, 1):
        with pytest.raises(IndexError, match=f"no candidate {row} of 1"):
            made().is_broken(row)
        with pytest.raises(IndexError, match=f"no candidate {row} of 1"):
            made().repaired(row, ranks, 0.5, 3)
    with pytest.raises(ValueError, match="ranks must be"):
        made().repaired(0, ranks[:0], 0.5, 3)
    # Heads in a circle are no trees, and end all the same.
    circle = np.array([[2, 3, 4, 1]], dtype=np.int32)
    assert len(made(heads=circle).repaired(0, ranks, 0.5, 3)) == 3


def test_lists_whose_best_tree_is_well_formed_need_no_repairs() -> None:
    trees = a_list(GOOD, TWO_SUBJECTS)
    words = word_facts(sentence())
    assert needed_repairs(trees, np.array([1.0, 0.0]), words) == []
    # What it would be is there already.
    assert needed_repairs(trees, np.array([0.0, 1.0]), words) == []
    # Other kinds do not count.
    trees = a_list(TWO_OBJECTS, TWO_SUBJECTS)
    assert needed_repairs(trees, np.array([1.0, 0.0]), words, kinds=[SUBJECTS]) == []
    assert needed_repairs(trees, np.array([0.0, 1.0]), words, kinds=[SUBJECTS]) != []
    assert with_repairs(trees, []) is trees


def test_repairs_are_trees_with_fewer_violations() -> None:
    generator = np.random.default_rng(2)
    labels = ["nsubj", "obj", "punct", "case", "aux", "det", "conj", "obl", "advmod"]
    made = 0
    for _ in range(60):
        n = 7
        trees = []
        for _ in range(4):
            order = generator.permutation(n)
            heads = [0] * n
            for i in range(1, n):
                heads[order[i]] = int(order[generator.integers(i)]) + 1
            own = ["root" if h == 0 else str(generator.choice(labels)) for h in heads]
            trees.append((heads, " ".join(own)))
        given = a_list(*trees)
        words = word_facts(sentence(trees[0], tags=("NOUN",) * n))
        before = count_broken(given, words)
        for item in needed_repairs(given, given.scores[:, 0], words):
            made += 1
            assert check_tree(item.heads.tolist()) is None
            found = with_repairs(given, [item])
            row = found.row_of(item.heads, item.labels)
            assert found.deprels(row)[int(np.flatnonzero(item.heads == 0)[0])] == "root"
            assert count_broken(found, words)[row] < before[item.origin]
            same = item.heads == given.heads[item.origin]
            same &= item.labels == given.labels[item.origin]
            assert not item.changes[same].any()
    assert made > 100


def test_repairs_do_not_depend_on_the_order_of_labels() -> None:
    trees = [TWO_SUBJECTS, TWO_OBJECTS, ([2, 0, 2, 2], "nsubj root iobj obj")]
    found = []
    for names in (("obj", "iobj"), ("iobj", "obj")):
        found.append(shown(repaired(a_list(*trees, inventory=LabelInventory(names)))))
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_the_best_formed_trees_of_a_list() -> None:
    words = word_facts(sentence())
    trees = a_list(TWO_SUBJECTS, GOOD, TWO_OBJECTS)
    assert best_formed(trees, words).tolist() == [False, True, False]
    assert best_formed(a_list(TWO_SUBJECTS, TWO_OBJECTS), words).all()
    assert shown(best_formed_list(trees, words)) == [GOOD]
    nothing_else = a_list(([2, 0], "punct root"))
    words = word_facts(sentence(([2, 0], "punct root"), tags=("NOUN", "VERB")))
    assert shown(best_formed_list(nothing_else, words)) == shown(nothing_else)


def test_a_decision_is_for_the_best_tree_that_may_be_chosen() -> None:
    trees = a_list(GOOD, TWO_SUBJECTS, TWO_OBJECTS, ([2, 0, 2, 2], "nsubj root obj iobj"))
    final = np.array([1.0, 9.0, 3.0, 3.0])
    every = Decision(trees, final, np.array([True] * 4))
    assert (every.row, every.order) == (1, [1, 2, 3, 0])  # equals in their order
    some = Decision(trees, final, np.array([True, False, True, False]))
    assert (some.row, some.order) == (2, [2, 0, 1, 3])


def test_lists_grow_only_where_the_best_tree_is_ill_formed() -> None:
    words = word_facts(sentence())
    trees = a_list(TWO_SUBJECTS, ([2, 0, 4, 2], "nsubj root nmod obj"))
    found, repairs = repaired_list(trees, np.array([0.0, 1.0]), words, KINDS)
    assert found is trees
    assert not repairs
    found, repairs = repaired_list(trees, np.array([1.0, 0.0]), words, KINDS)
    assert len(found) == 2 + len(repairs) == 3


def test_penalties_are_counts_times_weights() -> None:
    trees = a_list(GOOD, TWO_SUBJECTS, TWO_OBJECTS)
    penalties = Penalties.from_dict({SUBJECTS: 1.5, OBJECTS: 0.25})
    assert penalties.of(trees, word_facts(sentence())).tolist() == [0.0, 1.5, 0.25]
    assert Penalties().of(trees, word_facts(sentence())).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="a penalty of 'leaf-case'"):
        Penalties.from_dict({"leaf-case": 9.0})
    for weight in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"expected a positive number|beyond all bounds"):
            Penalties.from_dict({SUBJECTS: weight})


def no_scores(_: Sentence, trees: CandidateList) -> np.ndarray:
    """Of lists that grow: a new tree is worth as much as its source says."""
    return trees.scores[:, 0].copy()


def test_penalties_are_tuned_where_they_help() -> None:
    # The ill-formed tree is ahead by 1, and wrong; scores deviate by 0.5 on the mean.
    trees = a_list(TWO_SUBJECTS, GOOD)
    found = tune_penalties([sentence()] * 3, [trees] * 3, [trees.scores[:, 0]] * 3, no_scores)
    assert set(found.weights) == {SUBJECTS}
    (least,) = [w for w in GRID if w * 0.5 > 1][:1]
    assert found.weights[SUBJECTS] == pytest.approx(least * 0.5)


def test_penalties_are_none_where_they_do_not_help() -> None:
    trees = a_list(TWO_SUBJECTS, GOOD)
    plain = [trees.scores[:, 0]]
    # Gold trees break the constraint as often as the chosen ones.
    assert tune_penalties([sentence(TWO_SUBJECTS)], [trees], plain, no_scores) == Penalties()
    # Nothing is broken.
    good = a_list(GOOD, TWO_SUBJECTS)
    assert tune_penalties([sentence()], [good], [good.scores[:, 0]], no_scores) == Penalties()
    # The well-formed tree has fewer words right.
    worse = a_list(TWO_SUBJECTS, ([4, 0, 2, 2], "nmod root obj nmod"))
    found = tune_penalties([sentence()] * 4, [worse] * 4, [worse.scores[:, 0]] * 4, no_scores)
    assert found == Penalties()


def test_penalties_may_cost_as_much_as_one_standard_error() -> None:
    better = a_list(TWO_SUBJECTS, GOOD)  # one word more is right
    worse = a_list(TWO_SUBJECTS, ([4, 0, 2, 2], "nsubj root obj nmod"))  # one word less
    for more, less, sound in ((5, 8, True), (2, 5, False)):  # -3: the errors are 13 and 7 ** 0.5
        lists = [better] * more + [worse] * less
        found = tune_penalties(
            [sentence()] * len(lists), lists, [trees.scores[:, 0] for trees in lists], no_scores
        )
        assert bool(found.weights) == sound


def penalized_model() -> tuple[Reranker, list[tuple[Sentence, CandidateList]]]:
    """A combining reranker with penalties on whatever its lists break, and lists."""
    gold, lists = three_parsers(5, n=30)
    settings = Settings(bits=12, iterations=2)
    combiner, completed = combine_lists(gold, lists, settings)
    schema = Schema.fit(gold, labels=set(lists[0].inventory.names))
    made, _ = train_reranker(gold, completed, settings, schema=schema, n_threads=1)
    broken = {
        kind
        for right, trees in zip(gold, lists, strict=True)
        for kind in list_violations(trees, word_facts(right)).at
    }
    weights = {kind: 0.5 + 0.125 * i for i, kind in enumerate(sorted(broken))}
    made = replace(made, combiner=combiner, penalties=Penalties(weights))
    return made, list(zip(gold, lists, strict=True))


@pytest.fixture(scope="module")
def penalized() -> tuple[Reranker, list[tuple[Sentence, CandidateList]]]:
    return penalized_model()


def test_final_scores_are_less_by_the_penalties(penalized) -> None:
    model, pairs = penalized
    without = replace(model, penalties=Penalties())
    longer = 0
    for right, given in pairs:
        decision = model.decide(right, model.completed(right, given), n_threads=1)
        trees = decision.candidates
        expected = without.final_scores(right, trees, n_threads=1)
        expected = expected - model.penalties.of(trees, word_facts(right))
        assert decision.final.tolist() == expected.tolist()
        assert decision.final.tolist() == model.final_scores(right, trees, n_threads=1).tolist()
        assert decision.eligible.all()
        assert decision.row == int(decision.final.argmax())
        longer += bool(decision.repairs)
        assert len(trees) == len(model.completed(right, given)) + len(decision.repairs)
        assert not without.decide(right, without.completed(right, given)).repairs
    assert 2 < longer < len(pairs)


def test_penalties_and_the_option_leave_fewer_violations(penalized) -> None:
    model, pairs = penalized
    without = replace(model, penalties=Penalties())
    counts = {}
    for name, reranker, option in (
        ("neither", without, False), ("penalties", model, False), ("option", without, True),
        ("both", model, True),
    ):  # fmt: skip
        chosen = [
            right.with_tree(trees.heads[row], trees.deprels(row))
            for right, trees, row in reranker.choices(pairs, n_threads=1, well_formed=option)
        ]
        counts[name] = sum(count_violations(chosen).values())
    assert counts["neither"] > counts["penalties"] > 0.0
    assert counts["option"] < counts["penalties"]
    assert counts["both"] < counts["penalties"]


def test_only_the_best_formed_may_be_chosen_but_all_have_scores(penalized) -> None:
    model, pairs = penalized
    differ = 0
    for right, decision in model.decisions(pairs, n_threads=1, well_formed=True):
        broken = count_broken(decision.candidates, word_facts(right))
        assert decision.eligible.tolist() == (broken == broken.min()).tolist()
        assert np.isfinite(decision.final).all()
        assert broken[decision.row] == broken.min()
        differ += decision.row != int(decision.final.argmax())
    assert differ


def test_choices_do_not_depend_on_threads_and_batches(penalized) -> None:
    model, pairs = penalized
    found = [
        [
            (shown(trees), row)
            for _, trees, row in model.choices(
                iter(pairs), n_threads=threads, batch_size=size, well_formed=option
            )
        ]
        for threads, size, option in ((1, 128, False), (3, 4, False), (1, 128, True), (2, 7, True))
    ]
    assert found[0] == found[1]
    assert found[2] == found[3]


def test_decisions_of_many_lists_are_those_of_each_and_score_repaired_ones_once(
    penalized, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pairs = penalized
    whole = [(sentence, model.completed(sentence, trees)) for sentence, trees in pairs]
    scores = model.batch_scores(whole)
    asked = []
    encoded_scores = Reranker.encoded_scores

    def noted(self: Reranker, encoded, **options):
        asked.append(len(encoded))
        return encoded_scores(self, encoded, **options)

    monkeypatch.setattr(Reranker, "encoded_scores", noted)
    for option in (False, True):
        together = model.decide_all(whole, scores, well_formed=option)
        grown = sum(bool(decision.repairs) for decision in together)
        assert asked == [grown]
        assert grown
        asked.clear()
        each = [
            model.decide(*pair, own, well_formed=option)
            for pair, own in zip(whole, scores, strict=True)
        ]
        asked.clear()
        for one, other in zip(together, each, strict=True):
            assert shown(one.candidates) == shown(other.candidates)
            assert one.final.tolist() == other.final.tolist()
            assert one.eligible.tolist() == other.eligible.tolist()
            assert len(one.repairs) == len(other.repairs)


def test_penalties_are_stored_and_formats_of_before_open() -> None:
    model = replace(Reranker.from_disk(lists_training()[0]), penalties=Penalties())
    penalties = Penalties({SUBJECTS: 2.5})
    changed = replace(model, penalties=penalties)
    back = Reranker.from_bytes(changed.to_bytes())
    assert back.penalties == penalties
    assert "penalties" not in back.about
    assert back.to_bytes() == changed.to_bytes()
    for reranker, version in ((model, 3), (changed, 5)):
        meta = json.loads(reranker.to_files()["meta.json"])
        assert meta["format_version"] == version
        assert meta.get("penalties") == (None if version < 5 else {SUBJECTS: 2.5})
    assert Reranker.from_bytes(model.to_bytes()).penalties == Penalties()


@pytest.mark.parametrize("penalties", [{"no-such": 1.0}, {SUBJECTS: -1.0}, [1], {SUBJECTS: "x"}])
def test_strange_penalties_are_one_clear_line(tmp_path: Path, penalties: object) -> None:
    files = replace(Reranker.from_disk(lists_training()[0]), penalties=Penalties()).to_files()
    files["meta.json"] = json.dumps(
        json.loads(files["meta.json"]) | {"penalties": penalties}
    ).encode()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    result = invoke("rerank", tmp_path, list_files()["test"], "-o", tmp_path / "out.conllu")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert str(tmp_path) in result.stderr.replace("\n", "")


def test_training_tunes_penalties_by_dev(tmp_path: Path) -> None:
    model = open_model(lists_training()[0]).reranker
    assert model.penalties.weights
    dev, pairs = (
        load_treebank(treebank()["dev"]),
        read_kbest(list_files()["dev"], inventory=LabelInventory()),
    )
    pairs = list(pairs)
    counts = []
    for reranker in (model, replace(model, penalties=Penalties())):
        chosen = [
            right.with_tree(trees.heads[row], trees.deprels(row))
            for right, (_, trees, row) in zip(dev, reranker.choices(pairs), strict=True)
        ]
        counts.append(sum(count_violations(chosen).values()))
        assert evaluate(dev, chosen).las > 50
    assert counts[0] <= counts[1] / 2
    assert sum(count_violations(dev).values()) <= counts[0]


def test_training_without_penalties_and_probabilities_with_them(tmp_path: Path) -> None:
    with_them = open_model(lists_training()[0]).reranker
    train_pipeline(options(tmp_path / "model", penalties=False))
    without = open_model(tmp_path / "model").reranker
    assert not without.penalties.weights
    pair = next(iter(read_kbest(list_files()["test"], inventory=LabelInventory())))
    assert without.scores(*pair).tolist() == with_them.scores(*pair).tolist()
    # Probabilities are fitted to the scores that they are made of.
    assert (without.calibration is None) == (with_them.calibration is None)
    if with_them.calibration is not None:
        assert without.calibration.final_scale < with_them.calibration.final_scale


def rerank(tmp_path: Path, model: Path, name: str, *more: object) -> Path:
    out = tmp_path / f"{name}.conllu"
    result = invoke("rerank", model, list_files()["test"], "-o", out, *more)
    assert result.exit_code == 0, result.output
    return out


def plain_model(tmp_path: Path) -> Path:
    """A model without penalties."""
    model = Reranker.from_disk(lists_training()[0])
    replace(model, penalties=Penalties()).to_disk(tmp_path / "plain")
    return tmp_path / "plain"


def test_option_of_rerank(tmp_path: Path) -> None:
    model = plain_model(tmp_path)
    every = rerank(tmp_path, model, "all", "--threads", 1)
    formed = rerank(tmp_path, model, "formed", "--well-formed", "--threads", 1)
    counts = [sum(count_violations(load_treebank(path)).values()) for path in (every, formed)]
    assert counts[1] < counts[0] / 2
    forms = [[s.forms for s in load_treebank(path)] for path in (every, formed)]
    assert forms[0] == forms[1]
    again = rerank(tmp_path, model, "again", "--well-formed", "--threads", 3)
    assert again.read_bytes() == formed.read_bytes()
    # Another command made the file: it is made again, and with it is not.
    statuses = []
    for more in ((), ("--well-formed",), ("--well-formed",)):
        result = invoke(
            "rerank", model, list_files()["test"], list_files()["dev"], "-o", tmp_path / "both",
            "--json", *more,
        )  # fmt: skip
        statuses.append({file["status"] for file in json.loads(result.stdout)["files"]})
    assert statuses == [{"done"}, {"done"}, {"skipped"}]


def test_info_tells_penalties(tmp_path: Path) -> None:
    model = Reranker.from_disk(lists_training()[0])
    told = {SUBJECTS: 1.5, OBJECTS: 1.5, "leaf-punct": 0.25}
    replace(model, penalties=Penalties(told)).to_disk(tmp_path / "model")
    result = invoke("info", tmp_path / "model")
    assert f"1.5 each for {SUBJECTS}, {OBJECTS}; 0.25 each for leaf-punct" in " ".join(
        result.stdout.replace("│", " ").split()
    )
    assert json.loads(invoke("info", tmp_path / "model", "--json").stdout)["penalties"] == told
    shown_ = invoke("info", plain_model(tmp_path), "--json")
    assert json.loads(shown_.stdout)["penalties"] == {}
