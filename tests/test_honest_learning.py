"""What is learned, and from which lists: never from those that it is judged on.

The sharpest test of a leak: another gold tree for a sentence must not change what was learned for
judging that very sentence, and must change what was learned for others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from samples import sentence
from test_combiner import SOURCES, plain_learning, three_parsers

from tk_spacy.ensemble.combiner.model import ArcCombiner
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.scores import mean_deviation
from tk_spacy.reranker import training as training_module
from tk_spacy.reranker.interpolation import LOG_GRID, PAPER_GRID, Combination, TuningList, tune
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import (
    TUNING_FOLDS,
    combine_lists,
    default_tuning_folds,
    learn,
    prepare_lists,
    train_reranker,
    tuning_parts,
)
from tk_spacy.treebank.conllu import Sentence

QUICK = Settings(bits=10, iterations=2, manual_parts=("arc",), kernel_parts=())
NAN = math.nan


def with_chains(gold: Sequence[Sentence], which: Sequence[int]) -> list[Sentence]:
    """The sentences, some with a chain in place of the gold tree."""
    return [
        s.with_tree(range(len(s)), ["root", *["obj"] * (len(s) - 1)]) if i in which else s
        for i, s in enumerate(gold)
    ]


def with_worst(
    gold: Sequence[Sentence], lists: Sequence[CandidateList], which: Sequence[int]
) -> list[Sentence]:
    """The sentences, some with the worst tree of their list in place of the gold one."""
    found = list(gold)
    for i in which:
        wrong = (lists[i].heads != gold[i].heads).sum(axis=1)
        worst = int(wrong.argmax())
        found[i] = gold[i].with_tree(lists[i].heads[worst], lists[i].deprels(worst))
    return found


def blank(gold: Sentence) -> Sentence:
    return with_chains([gold], [0])[0]


# The combiner and the lists that it extends


def extended_bytes(trees: CandidateList) -> tuple[bytes, bytes, bytes]:
    return trees.heads.tobytes(), trees.labels.tobytes(), trees.scores.tobytes()


def own_folds(gold: Sequence[Sentence], lists: Sequence[CandidateList]) -> list[CandidateList]:
    return ArcCombiner.fit_apart(gold, lists, folds=3, epochs=2)[1]


def in_training(gold: Sequence[Sentence], lists: Sequence[CandidateList]) -> list[CandidateList]:
    return list(combine_lists(gold, lists, Settings())[1])


@pytest.mark.parametrize(
    ("extended", "n", "folds"),
    [
        (own_folds, 12, [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]),
        (own_folds, 8, [(0, 1, 2), (3, 4, 5), (6, 7)]),
        (in_training, 10, [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]),
        (in_training, 3, [(0,), (1,), (2,)]),
    ],
)
def test_combiner_never_learned_from_a_list_that_it_extends(
    extended: Callable[..., list[CandidateList]], n: int, folds: list[tuple[int, ...]]
) -> None:
    gold, lists = three_parsers(seed=6, n=n)
    before = [extended_bytes(trees) for trees in extended(gold, lists)]
    for fold in folds:
        after = [extended_bytes(t) for t in extended(with_chains(gold, fold), lists)]
        changed = {i for i in range(n) if after[i] != before[i]}
        assert not changed & set(fold)
        # Sentences with a choice are judged by what the others taught.
        assert len(changed) > (n - len(fold)) / 2


def test_combiner_is_learned_from_all_lists_in_the_end() -> None:
    gold, lists = three_parsers(seed=6, n=9)
    final, _ = ArcCombiner.fit_apart(gold, lists, folds=3, epochs=2)
    for i in range(9):
        other, _ = ArcCombiner.fit_apart(with_chains(gold, [i]), lists, folds=3, epochs=2)
        assert other.weights.tobytes() != final.weights.tobytes()
    assert ArcCombiner.fit(gold, lists, epochs=2).weights.tobytes() == final.weights.tobytes()


def test_combiner_equals_plain_learning_on_the_standardised_arcs_of_words_with_a_choice() -> None:
    gold, lists = three_parsers(seed=2, n=6)
    combiner = ArcCombiner.fit(gold, lists, epochs=2)
    dense, hashed, starts, right = [], [], [0], []
    for s, trees in zip(gold, lists, strict=True):
        table = combiner.features.encode(s, trees)
        arcs = table.arcs
        names = trees.inventory.names
        for word in range(len(s)):
            rows = range(arcs.starts[word], arcs.starts[word + 1])
            gold_arc = (int(s.heads[word]), s.deprels[word])
            found = [r for r in rows if (int(arcs.heads[r]), names[arcs.labels[r]]) == gold_arc]
            if len(rows) < 2 or not found:
                continue
            right.append(len(dense) + found[0] - rows[0])
            dense += [table.dense[r].astype(np.float64) for r in rows]
            hashed += [table.hashed[r] for r in rows]
            starts.append(len(dense))
    assert len(right) > 20
    columns = np.array(dense).T
    mean = np.array([sum(c) / len(c) for c in columns])
    spread = np.array(
        [
            math.sqrt(sum((v - m) ** 2 for v in c) / len(c))
            for c, m in zip(columns, mean, strict=True)
        ]
    )
    factor = np.array([1 / s if s > 1e-6 else 0.0 for s in spread])
    ids, places = np.unique(np.array(hashed), return_inverse=True)
    scaled = ((np.array(dense) - mean) * factor).astype(np.float32)
    weights, of_hashed = plain_learning(
        scaled, places.reshape(len(hashed), -1), starts, right, len(ids), 2, 0.05, 0.03
    )
    np.testing.assert_allclose(combiner.weights, weights * factor, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(combiner.hashed[ids], of_hashed, rtol=1e-4, atol=1e-6)
    assert not np.delete(combiner.hashed, ids).any()


def test_combiner_scores_a_tree_by_the_log_probabilities_of_its_arcs() -> None:
    gold, lists = three_parsers(seed=3, n=20)
    combiner = ArcCombiner.fit(gold, lists, epochs=2)
    for s, given in zip(gold[:6], lists, strict=False):
        trees = replace(given, base=len(given) - 1)  # its own tree is not the best-scored one
        longer = combiner.extended(s, trees, added=4)
        table = combiner.features.encode(s, trees)
        arcs = table.arcs
        log_p: dict[tuple[int, int, int], float] = {}
        for word in range(len(s)):
            rows = range(arcs.starts[word], arcs.starts[word + 1])
            z = [
                float(table.dense[r] @ combiner.weights + combiner.hashed[table.hashed[r]].sum())
                for r in rows
            ]
            total = math.log(sum(map(math.exp, z)))
            for r, score in zip(rows, z, strict=True):
                log_p[word, int(arcs.heads[r]), int(arcs.labels[r])] = score - total
        for heads, labels, scores in zip(longer.heads, longer.labels, longer.scores, strict=True):
            own = sum(log_p[w, int(heads[w]), int(labels[w])] for w in range(len(s)))
            assert scores[-1] == pytest.approx(own, abs=1e-6)
        known = [h.tobytes() + b.tobytes() for h, b in zip(trees.heads, trees.labels, strict=True)]
        kept = [h.tobytes() + b.tobytes() for h, b in zip(longer.heads, longer.labels, strict=True)]
        assert set(known) <= set(kept)
        assert len(trees) <= len(longer) <= len(trees) + 4
        assert np.isnan(longer.scores[[k not in known for k in kept], :-1]).all()
        for name, row in {"base": longer.base, **longer.bases}.items():
            of_given = trees.base if name == "base" else trees.bases[name]
            assert kept[row] == known[of_given]


def test_combiner_gives_no_weight_to_what_never_varies() -> None:
    # Of two trees that c has not scored, each contested arc has half of c's weight, always.
    inventory = LabelInventory()
    gold, lists = [], []
    for number in range(6):
        gold.append(sentence("a/X/0/root b/X/1/x c/X/1/y" if number % 2 else "a/X/2/x b/X/0/root"))
        other = ([0, 1, 2], ["root", "y", "y"]) if number % 2 else ([0, 1], ["root", "x"])
        trees = [(gold[-1].heads, gold[-1].deprels, (float(number), NAN)), (*other, (0.5, NAN))]
        lists.append(CandidateList.build(trees, inventory=inventory, sources=("a", "c")))
    combiner = ArcCombiner.fit(gold, lists)
    assert np.isfinite(combiner.weights).all()
    # Four blocks of shares (by arc and head, plain and logarithm), each with four columns a source.
    of_c = combiner.weights[:-2].reshape(4, 2, 4)[:, 1]
    assert not of_c[0].any()
    assert not of_c[2].any()
    assert combiner.weights.any()


# What a list teaches


def taught_lists() -> tuple[list[Sentence], list[CandidateList]]:
    """Of the first list no tree is gold, and its first one is the nearest by heads and labels."""
    inventory = LabelInventory()
    gold = [
        sentence("a/X/2/nsubj b/X/0/root c/X/2/obj d/X/3/nmod"),
        sentence("a/X/0/root b/X/1/obj"),
        sentence("a/X/2/nsubj b/X/0/root"),
    ]
    first = [
        ([2, 0, 2, 2], ["nsubj", "root", "obj", "nmod"], 1.0),  # 1 head wrong
        ([2, 0, 2, 2], ["nsubj", "root", "nmod", "nmod"], 3.0),  # the same head, and a label
        ([2, 0, 4, 2], ["obj", "root", "x", "obl"], 2.0),  # 2 heads and 3 labels wrong
    ]
    lists = [
        CandidateList.build(first, inventory=inventory, sources=("s",)),
        CandidateList.build([([0, 1], ["root", "obj"], 5.0)], inventory=inventory, sources=("s",)),
        CandidateList.build(
            [([2, 0], ["nsubj", "root"], 0.0), ([0, 1], ["root", "obj"], 9.0)],
            inventory=inventory,
            sources=("s",),
        ),
    ]
    return gold, lists


@pytest.mark.parametrize(
    ("loss", "expected"),
    # In the order of the lists: by falling score.  Against the oracle tree, not against gold.
    [("labelled", [[1, 1 + 3, 0], [2 + 2, 0]]), ("heads", [[0, 1, 0], [2, 0]])],
)
def test_losses_count_heads_and_labels_that_are_not_the_oracles(
    loss: str, expected: list[list[float]]
) -> None:
    gold, lists = taught_lists()
    assert lists[0].scores[:, 0].tolist() == [3.0, 2.0, 1.0]
    items = prepare_lists(Schema.fit(gold), gold, lists, replace(QUICK, loss=loss))
    assert [item.index for item in items] == [0, 2]  # one tree is no choice
    assert [item.oracle for item in items] == [2, 1]
    assert [item.loss.tolist() for item in items] == expected


def test_gold_is_the_one_to_learn_where_it_is_added() -> None:
    gold, lists = taught_lists()
    items = prepare_lists(Schema.fit(gold), gold, lists, replace(QUICK, add_gold=True))
    # The gold tree comes last, unscored; the list of one tree, which is gold, stays one.
    assert [item.index for item in items] == [0, 2]
    assert [item.oracle for item in items] == [3, 1]
    assert [item.loss.tolist() for item in items] == [[1 + 1, 2 + 3, 1, 0], [2 + 2, 0]]
    assert [item.encoded.n_candidates for item in items] == [4, 2]


def test_an_added_gold_tree_is_unscored_and_the_parser_s_own_tree_stays() -> None:
    gold, lists = taught_lists()
    trees = replace(lists[0], base=1)
    longer = training_module.with_gold(gold[0], trees)
    assert longer.heads.tolist() == [*trees.heads.tolist(), gold[0].heads.tolist()]
    assert longer.deprels(3) == gold[0].deprels
    np.testing.assert_array_equal(longer.scores, [[3.0], [2.0], [1.0], [np.nan]])
    assert longer.scores.dtype == np.float64
    assert longer.base == 1
    # A gold tree that is there already is not there twice, and keeps its score.
    again = training_module.with_gold(gold[2], replace(lists[2], base=1))
    assert again.scores.tolist() == [[9.0], [0.0]]
    assert again.base == 1


def test_scores_of_trees_do_not_depend_on_the_gold_tree() -> None:
    gold, lists = three_parsers(seed=8, n=24)
    settings = replace(QUICK, kernel_parts=("arc",))
    combiner, combined = combine_lists(gold, lists, settings)
    reranker, _ = train_reranker(gold, combined, settings, schema=Schema.fit(gold), n_threads=1)
    reranker = replace(reranker, combiner=combiner)
    for s, trees in zip(gold, lists, strict=True):
        longer, again = reranker.completed(s, trees), reranker.completed(blank(s), trees)
        assert extended_bytes(longer) == extended_bytes(again)
        for of in (reranker.scores, reranker.final_scores):
            assert (
                of(s, longer, n_threads=1).tobytes() == of(blank(s), again, n_threads=1).tobytes()
            )


# Tuning


class Tuned:
    """What `tune` was given by a training."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lists: list[TuningList] = []
        self.paper_grid: list[bool] = []
        self.how: dict[str, Any] = {}
        real = training_module.tune

        def spy(lists: Sequence[TuningList], **kwargs: Any) -> Combination:
            self.lists = list(lists)
            self.paper_grid.append(kwargs["paper_grid"])
            self.how = {name: kwargs[name] for name in ("raw_scores", "metric")}
            return real(lists, **kwargs)

        monkeypatch.setattr(training_module, "tune", spy)


@pytest.mark.parametrize(("folds", "seed"), [(3, 0), (1, 4), (None, 1)])
def test_tuning_lists_are_scored_by_rerankers_that_did_not_learn_from_them(
    monkeypatch: pytest.MonkeyPatch, folds: int | None, seed: int
) -> None:
    gold, lists = three_parsers(seed=5, n=20)
    # The scores tell the lists apart.
    lists = [trees.with_scores(trees.scores + 100 * i) for i, trees in enumerate(lists)]
    schema, tuned = Schema.fit(gold), Tuned(monkeypatch)

    def scored(sentences: Sequence[Sentence]) -> dict[int, tuple[bytes, bytes]]:
        """By the number of the list: its scores, and what it has right."""
        train_reranker(
            sentences, lists, QUICK, schema=schema, seed=seed, tuning_folds=folds, n_threads=1
        )
        found = {}
        for item in tuned.lists:
            (number,) = [
                i for i, t in enumerate(lists)
                if t.scores.shape == item.sources.shape and np.array_equal(t.scores, item.sources)
            ]  # fmt: skip
            assert number not in found
            found[number] = item.reranker.tobytes(), item.correct.tobytes()
        return found

    before = scored(gold)
    parts = tuning_parts(20, TUNING_FOLDS if folds is None else folds, seed=seed)
    assert sorted(before) == sorted(np.concatenate(parts).tolist())
    assert len(before) == (2 if folds == 1 else 20)
    for part in parts:
        held = part.tolist()
        after = scored(with_worst(gold, lists, held))
        changed = {i for i in before if after[i][0] != before[i][0]}
        assert not changed & set(held)
        assert len(changed) > (len(before) - len(held)) / 2 or folds == 1
        for i in before:
            assert (after[i][1] == before[i][1]) == (i not in held)


def test_final_reranker_learns_from_all_lists_and_has_the_tuned_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gold, lists = three_parsers(seed=5, n=20)
    schema, tuned = Schema.fit(gold), Tuned(monkeypatch)
    settings = replace(QUICK, list_features=())
    steps: list[tuple[str, int, int]] = []
    reranker, stats = train_reranker(
        gold, lists, settings, schema=schema, tuning_folds=2, paper_grid=True, n_threads=1,
        progress=lambda *step: steps.append(step),
    )  # fmt: skip
    alone, own = learn(schema, prepare_lists(schema, gold, lists, settings), settings, n_threads=1)
    assert reranker.weights is not None
    assert alone.weights is not None
    assert reranker.weights.tobytes() == alone.weights.tobytes()
    assert (stats.sentences, stats.updates) == (20, own.updates)
    assert stats.updates > 0
    assert 0 <= stats.seconds < 60
    assert stats.mean_length == pytest.approx(sum(map(len, gold)) / 20)
    assert tuned.paper_grid == [True]
    assert reranker.combination == tune(tuned.lists, sources=SOURCES, paper_grid=True)
    assert steps == [
        ("tuning", 10, 40), ("tuning", 20, 40), ("tuning", 30, 40), ("tuning", 40, 40),
        ("training", 20, 40), ("training", 40, 40),
    ]  # fmt: skip


def test_lists_are_tuned_by_where_the_others_leave_something_to_learn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One list has a choice.  Nothing can be learned without it, and from it for all others.
    gold, lists = three_parsers(seed=5, n=4)
    one = {"base": 0, "bases": {}}
    rest = [
        replace(t, heads=t.heads[:1], labels=t.labels[:1], scores=t.scores[:1], **one)
        for t in lists
    ]
    schema, tuned = Schema.fit(gold), Tuned(monkeypatch)
    for chosen in range(4):
        mixed = [*rest[:chosen], lists[chosen], *rest[chosen + 1 :]]
        _, stats = train_reranker(gold, mixed, QUICK, schema=schema, tuning_folds=4, n_threads=1)
        assert stats.sentences == 1
        found = sorted(float(x.sources[0, 0]) for x in tuned.lists)
        assert found == sorted(float(rest[i].scores[0, 0]) for i in range(4) if i != chosen)
    # Two lists are enough.
    two = train_reranker(gold[:2], lists[:2], QUICK, schema=schema, tuning_folds=2, n_threads=1)
    assert two[1].sentences == len(tuned.lists) == 2


def test_the_paper_s_grid_is_tuned_behind_a_combiner_too(monkeypatch: pytest.MonkeyPatch) -> None:
    gold, lists = three_parsers(seed=5, n=8)
    combined, tuned = combine_lists(gold, lists, QUICK)[1], Tuned(monkeypatch)
    reranker, _ = train_reranker(
        gold, combined, QUICK, schema=Schema.fit(gold), paper_grid=True, n_threads=1
    )
    assert tuned.paper_grid == [True]
    assert tuned.how == {"raw_scores": False, "metric": "las"}
    assert len(tuned.lists) == 8
    assert reranker.combination is not None
    assert set(reranker.combination.betas.values()) <= set(PAPER_GRID)


def test_raw_scores_and_another_metric_are_a_wish_to_tune(monkeypatch: pytest.MonkeyPatch) -> None:
    gold, lists = three_parsers(seed=5, n=8)
    combined = combine_lists(gold, lists, QUICK)[1]
    tuned = Tuned(monkeypatch)
    schema, how = Schema.fit(gold), {"raw_scores": True, "metric": "uas"}
    for given in ({"raw_scores": True}, {"tuning_metric": "uas"}):
        tuned.lists = []
        train_reranker(gold, combined, QUICK, schema=schema, n_threads=1, **given)
        assert len(tuned.lists) == 8
    reranker, _ = train_reranker(
        gold, combined, QUICK, schema=schema, n_threads=1, raw_scores=True, tuning_metric="uas"
    )
    assert tuned.how == how
    assert reranker.combination is not None
    assert {reranker.combination.reranker_scale, *reranker.combination.scales.values()} == {1.0}


def test_two_parsers_are_combined_and_one_is_not() -> None:
    gold, lists = three_parsers(seed=5, n=6)
    two = [replace(t, sources=("a", "b"), scores=t.scores[:, :2], bases={}) for t in lists]
    steps: list[tuple[int, int]] = []
    combiner, longer = combine_lists(gold, two, QUICK, progress=lambda *step: steps.append(step))
    assert combiner is not None
    assert {trees.sources for trees in longer} == {("a", "b", "combiner")}
    assert steps == [(i, 6) for i in range(1, 7)]  # five folds, and all of them
    one = [replace(t, sources=("a",), scores=t.scores[:, :1], bases={}) for t in lists]
    assert combine_lists(gold, one, QUICK) == (None, one)


def test_nothing_is_tuned_behind_a_combiner_nor_where_nobody_asks() -> None:
    assert default_tuning_folds(("a", "b")) == TUNING_FOLDS
    assert default_tuning_folds(("a", "combiner")) == 0
    assert default_tuning_folds(("a", "combiner"), asked=True) == TUNING_FOLDS
    gold, lists = three_parsers(seed=5, n=6)
    reranker, _ = train_reranker(gold, lists, QUICK, schema=Schema.fit(gold), tuning_folds=0)
    assert reranker.combination is not None
    assert dict(reranker.combination.betas) == dict.fromkeys(SOURCES, 0.0)
    combined = combine_lists(gold, lists, QUICK)[1]
    reranker, _ = train_reranker(gold, combined, QUICK, schema=Schema.fit(gold))
    assert reranker.combination is not None
    assert dict(reranker.combination.betas) == {**dict.fromkeys(SOURCES, 0.0), "combiner": 0.5}


def test_tuning_counts_what_each_candidate_has_right() -> None:
    gold, lists = taught_lists()
    item = TuningList.make(gold[0], lists[0], np.array([7.0, 8.0, 9.0]))
    # Heads and labels, and heads alone, by falling score.
    assert item.correct.tolist() == [[2, 3], [1, 2], [3, 3]]
    assert item.sources.tolist() == [[3.0], [2.0], [1.0]]
    assert item.reranker.tolist() == [7.0, 8.0, 9.0]
    unknown = replace(lists[2], inventory=LabelInventory(["root", "other"]))
    assert TuningList.make(gold[2], unknown, np.zeros(2)).correct[:, 1].tolist() == [0, 2]


def plain_tune(
    lists: Sequence[TuningList], n_sources: int, grid: Sequence[float]
) -> tuple[list[float], list[float], float]:
    """`tune` by plain loops: betas, scales, the reranker's scale."""

    def spread(columns: list[list[float]]) -> float:
        found = []
        for c in columns:
            if len(c) > 1:
                mean = sum(c) / len(c)
                found.append(math.sqrt(sum((v - mean) ** 2 for v in c) / len(c)))
        return sum(found) / len(found) if found and sum(found) > 0 else 1.0

    scales = [spread([x.sources[:, j].tolist() for x in lists]) for j in range(n_sources)]
    own = spread([x.reranker.tolist() for x in lists])

    def right(betas: list[float]) -> tuple[float, float]:
        labelled = heads = 0.0
        for x in lists:
            finals = [
                x.reranker[i] / own
                + sum(
                    b / s * x.sources[i, j]
                    for j, (b, s) in enumerate(zip(betas, scales, strict=True))
                )
                for i in range(len(x.reranker))
            ]
            row = finals.index(max(finals))
            labelled, heads = labelled + x.correct[row, 0], heads + x.correct[row, 1]
        return labelled, heads

    def climb(betas: list[float], sweeps: int) -> list[float]:
        for _ in range(sweeps):
            before = list(betas)
            for j in range(n_sources):
                values = [right([*betas[:j], b, *betas[j + 1 :]]) for b in grid]
                best = max(values)
                first = last = values.index(best)
                while last + 1 < len(values) and values[last + 1] == best:
                    last += 1
                betas[j] = grid[(first + last) // 2]
            if betas == before:
                break
        return betas

    if n_sources == 1:
        return climb([0.0], 1), scales, own
    ends = [climb([0.0] * n_sources, 3), climb([1.0] * n_sources, 3)]
    return (ends[1] if right(ends[1]) > right(ends[0]) else ends[0]), scales, own


@pytest.mark.parametrize("paper_grid", [False, True])
@pytest.mark.parametrize("n_sources", [1, 2, 3])
def test_tuning_equals_plain_coordinate_ascent(n_sources: int, paper_grid: bool) -> None:
    rng = np.random.default_rng(n_sources)
    starts_differ = 0
    for trial in range(6 if n_sources < 3 else 3):
        lists = []
        for _ in range(12):
            k = int(rng.integers(1, 5))
            good = rng.integers(0, 6, size=k).astype(float)
            sources = good[:, None] * rng.random(n_sources) + 2 * rng.normal(size=(k, n_sources))
            heads = good + rng.integers(0, 3, size=k)
            correct = np.stack([good, heads], axis=1)
            lists.append(TuningList(sources, good * 0.3 + rng.normal(size=k), correct))
        names = [f"s{j}" for j in range(n_sources)]
        found = tune(lists, sources=names, paper_grid=paper_grid)
        grid = list(PAPER_GRID if paper_grid else LOG_GRID)
        betas, scales, own = plain_tune(lists, n_sources, grid)
        assert list(found.betas.values()) == pytest.approx(betas), trial
        assert list(found.scales.values()) == pytest.approx(scales)
        assert found.reranker_scale == pytest.approx(own)
        assert list(found.betas) == list(found.scales) == names
        starts_differ += len(set(betas)) > 1
    assert starts_differ or n_sources == 1


def test_grids_are_those_of_the_paper_and_of_the_design() -> None:
    assert len(PAPER_GRID) == 61
    assert (PAPER_GRID[0], PAPER_GRID[1], PAPER_GRID[-1]) == (0.0, 0.05, 3.0)
    assert len(LOG_GRID) == 42
    assert (LOG_GRID[0], LOG_GRID[1], LOG_GRID[21], LOG_GRID[-1]) == (0.0, 0.01, 1.0, 100.0)
    with pytest.raises(ValueError, match="no tuning lists"):
        tune([], sources=["s"])


def test_of_two_ends_of_tuning_the_better_is_taken() -> None:
    # Alone, neither source helps the reranker: only both together overrule it.  From 0 the ascent
    # sees no gain; from 1 it starts at the goal.
    lists = [
        TuningList(
            np.array([[0.0, 0.0], [1.0, 1.0], [2.0, -2.0], [-2.0, 2.0]]),
            np.array([1.5, 0.0, 0.0, 0.0]),
            np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]),
        )
    ]
    betas, scales, own = plain_tune(lists, 2, list(LOG_GRID))
    found = tune(lists, sources=["a", "b"])
    assert list(found.betas.values()) == pytest.approx(betas)
    final = lists[0].reranker / own + lists[0].sources @ (np.array(betas) / scales)
    assert int(final.argmax()) == 1


def test_scales_are_any_positive_numbers() -> None:
    made = Combination({"a": 0.5, "b": 0.0}, {"a": 0.25, "b": 3.0}, reranker_scale=0.125)
    assert Combination.from_dict(made.to_dict()) == made
    for bad in (0.0, -1.0, math.inf, math.nan):
        for data in ({"scales": {"a": bad, "b": 1.0}}, {"reranker_scale": bad}):
            with pytest.raises(ValueError, match=r"expected a positive number|beyond all bounds"):
                Combination.from_dict({**made.to_dict(), **data})
    # Where nothing varies, or beyond all bounds, scores stay as they are.
    assert mean_deviation([np.array([2.0, 2.0]), np.array([1.0])]) == 1.0
    assert mean_deviation([np.array([2.0]), np.array([3.0, 4.0])]) == 0.5
    assert mean_deviation([]) == 1.0
    with np.errstate(over="ignore"):
        assert mean_deviation([np.array([1e200, -1e200])]) == 1.0


def test_final_score_leaves_out_sources_without_weight() -> None:
    candidates = CandidateList.build(
        [([0, 1], ["root", "x"], (2.0, 5.0, 1.0)), ([2, 0], ["x", "root"], (1.0, np.nan, 0.0))],
        inventory=LabelInventory(),
        sources=("a", "b", "c"),
    )
    # c has no weight, b none that counts: its missing score is then no matter.
    combination = Combination({"a": 3.0, "b": 0.0}, {"a": 2.0, "b": 1.0}, reranker_scale=4.0)
    np.testing.assert_allclose(combination.final(candidates, np.array([8.0, 4.0])), [5.0, 2.5])
    combination = replace(combination, betas={"a": 3.0, "b": 2.0})
    np.testing.assert_allclose(combination.final(candidates, np.array([8.0, 4.0])), [15.0, 12.5])
