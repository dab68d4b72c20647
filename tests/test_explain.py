"""Explanations: scores split by arcs and components, and the examples behind the kernel's."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import reference
from test_combiner import three_parsers
from test_kernel import choices_of

from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.evaluation.well_formed import word_facts
from tk_spacy.features.part_types import PART_TYPES, part_type
from tk_spacy.features.schema import FIRST_ID, Schema
from tk_spacy.features.templates import FEATURE_TYPES
from tk_spacy.kbest.well_formed import count_broken, list_violations
from tk_spacy.kernels.hashed_kernel import without_parts
from tk_spacy.kernels.pruning import slot_form
from tk_spacy.kernels.support import Support
from tk_spacy.kernels.template_kernel import slot_layout
from tk_spacy.reranker.compression import hashed, pruned
from tk_spacy.reranker.examples import Example, Examples
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.penalties import Penalties
from tk_spacy.reranker.score_split import (
    COMBINED,
    KERNEL,
    LIST,
    MANUAL,
    PENALTIES,
    SELECTED,
    split_scores,
)
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import combine_lists, train_reranker
from tk_spacy.selection.combinations.expanding import expand
from tk_spacy.treebank.conllu import Sentence

GOLD, LISTS = three_parsers(3, n=24)
EVERY = {"kernel_parts": tuple(PART_TYPES), "manual_parts": FEATURE_TYPES}


def trained(*, tuning_folds=None, **options) -> Reranker:
    """A reranker with examples, and a combiner unless it is told otherwise."""
    settings = Settings(bits=12, iterations=2, **options)
    combiner, lists = combine_lists(GOLD, LISTS, settings)
    labels = set(LISTS[0].inventory.names)
    schema = Schema.fit(GOLD, labels=labels)
    made, _ = train_reranker(
        GOLD, lists, settings, schema=schema, tuning_folds=tuning_folds, n_threads=1
    )
    return replace(made, combiner=combiner, examples=Examples.of(made.support, GOLD))


@pytest.fixture(scope="module")
def every() -> Reranker:
    return trained(**EVERY)


@pytest.fixture(scope="module")
def arcs() -> Reranker:
    """Arcs alone, no combiner, weights of three parsers."""
    return trained(combiner=False, manual_parts=("arc", "span"), tuning_folds=2)


def made_from(reranker: Reranker, kind: str) -> Reranker:
    if kind == "map":
        return hashed(reranker, 12)
    if kind == "selected":
        return replace(
            reranker, support=without_parts(reranker.support), examples=None, weights=None,
            list_features=None, list_weights=None, explicit=expand(
                reranker.support, reranker.schema, most=500
            ),
        )  # fmt: skip
    if kind == "penalties":
        found = [list_violations(t, word_facts(s)).at for s, t in zip(GOLD, LISTS, strict=True)]
        kinds = sorted(set().union(*found))
        return replace(reranker, penalties=Penalties({k: 0.3 + i for i, k in enumerate(kinds)}))
    if kind == "no kernel":
        return replace(reranker, support=without_parts(reranker.support), examples=None)
    return reranker


@pytest.mark.parametrize(
    ("name", "kind", "components"),
    [
        ("every", "", {COMBINED, KERNEL, MANUAL, LIST, f"{MANUAL}: frame", f"{MANUAL}: span"}),
        ("every", "penalties", {COMBINED, KERNEL, MANUAL, LIST, PENALTIES}),
        ("every", "selected", {COMBINED, SELECTED}),
        ("every", "no kernel", {COMBINED, MANUAL, LIST}),
        ("arcs", "", {KERNEL, MANUAL, LIST, f"{MANUAL}: span"}),
        ("arcs", "map", {KERNEL, MANUAL, LIST}),
        ("arcs", "penalties", {KERNEL, MANUAL, LIST, PENALTIES}),
    ],
)
def test_components_sum_to_the_final_scores(request, name, kind, components):
    reranker = made_from(request.getfixturevalue(name), kind)
    repaired = 0
    for sentence, trees in zip(GOLD, LISTS, strict=True):
        made = split_scores(reranker, sentence, trees, n_threads=1)
        completed, split, details = made.decision.candidates, made.scores, made.details
        repaired += len(made.decision.repairs)
        final = reranker.final_scores(sentence, completed, n_threads=1)
        assert components <= split.by_arc.keys() | split.by_tree.keys()
        for row in range(len(completed)):
            sizes = [np.abs(part[row]).sum() for part in split.by_arc.values()]
            sizes += [abs(part[row]) for part in split.by_tree.values()]
            assert abs(split.total(row) - final[row]) <= 1e-9 * max(math.fsum(sizes), 1e-3)
        if details:
            np.testing.assert_allclose(
                sum(details.values()), split.by_tree[LIST], rtol=1e-9, atol=1e-12
            )
    assert bool(repaired) == (kind == "penalties")
    if name == "arcs":
        assert reranker.combination is not None
        weighed = [source for source, beta in reranker.combination.betas.items() if beta]
        assert weighed
        assert {f"score of {source}" for source in weighed} <= split.by_tree.keys()


def test_the_combiner_is_told_by_arc_unless_the_list_is_completed_already(every):
    sentence, trees = GOLD[0], LISTS[0]
    made = split_scores(every, sentence, trees)
    completed, split = made.decision.candidates, made.scores
    again = split_scores(every, sentence, completed)
    other = again.scores
    assert again.decision.candidates is completed
    assert COMBINED in split.by_arc
    assert COMBINED in other.by_tree
    np.testing.assert_allclose(split.by_arc[COMBINED].sum(axis=1), other.by_tree[COMBINED])
    column = completed.scores[:, completed.sources.index(COMBINER)]
    np.testing.assert_allclose(other.by_tree[COMBINED], 0.5 * column)


def support_strings(reranker: Reranker, name: str) -> list[tuple[float, tuple]]:
    """Each support part's weight and property strings, from its training sentence alone."""
    kind, parts = part_type(name), reranker.support.types[name]
    assert parts.origin_words is not None
    labels = list(reranker.schema.labels)
    slots = slot_form(parts, slot_layout(kind))
    nodes = [slot.role for slot in kind.slots if slot.kind == "node"]
    first = {part: i for i, part in reversed(list(enumerate(parts.origins[:, 0].tolist())))}
    found = []
    for part, weight in enumerate(parts.weights.tolist()):
        row = first[part]
        sentence = GOLD[int(parts.origins[row, 1])]
        words = dict(zip(nodes, parts.origin_words[row].tolist(), strict=True))
        described = {
            role: None if role in "st" and word > len(sentence) else word
            for role, word in words.items()
        }
        place = 0
        for slot in kind.slots:
            if slot.kind == "edge":
                label = int(slots[part, place])
                known = label >= FIRST_ID
                described[f"label_{slot.role}"] = (
                    labels[label - FIRST_ID] if known else "<boundary>"
                )
            place += 1 if slot.kind == "node" else 2
        strings = reference.slot_sets(sentence, described, name, **choices_of(reranker.schema))
        found.append((weight, strings))
    return found


def test_kernel_scores_of_arcs_are_counted_property_by_property(every):
    strings = {name: support_strings(every, name) for name in PART_TYPES}
    choices = choices_of(every.schema)
    checked = 0
    for sentence, trees in list(zip(GOLD, LISTS, strict=True))[:4]:
        made = split_scores(every, sentence, trees)
        completed, split = made.decision.candidates, made.scores
        final = every.final_scores(sentence, completed)
        expected: dict[tuple[int, int], float] = defaultdict(float)
        for name in PART_TYPES:
            of_trees = [
                reference.tree_parts(completed.heads[row].tolist(), completed.deprels(row), name)
                for row in range(len(completed))
            ]
            for row in np.argsort(-final)[:2].tolist():
                for part in of_trees[row]:
                    if all(part in others for others in of_trees):
                        continue
                    own = reference.slot_sets(sentence, part, name, **choices)
                    expected[row, part["m"]] += math.fsum(
                        weight * reference.kernel_by_slots(own, theirs)
                        for weight, theirs in strings[name]
                    )
        for (row, word), value in expected.items():
            assert split.by_arc[KERNEL][row, word - 1] == pytest.approx(value, rel=1e-4, abs=1e-4)
            checked += 1
    assert checked > 10


def test_influences_are_shares_of_the_kernel_and_have_reasons(every):
    seen = 0
    for sentence, trees in zip(GOLD, LISTS, strict=True):
        made = every.explain(sentence, trees, most=10**6, n_threads=1)
        for arc in made.arcs:
            for tree, influences in zip(made.trees, arc.influences, strict=True):
                shares = [item.share for item in influences]
                assert [abs(s) for s in shares] == sorted(map(abs, shares), reverse=True)
                kernel = tree.by_arc[KERNEL][arc.word - 1]
                size = math.fsum(map(abs, shares))
                assert math.fsum(shares) == pytest.approx(kernel, abs=1e-5 * max(size, 1.0))
                for item in influences[:5]:
                    seen += 1
                    assert item.words["m"] == arc.word
                    assert item.kernel == math.prod(a.factor for a in item.agreements)
                    check_source(every, sentence, item, tree.deprels[arc.word - 1])
    assert seen > 20


def check_source(reranker: Reranker, sentence: Sentence, item, deprel: str) -> None:
    """What is said to agree does, by the columns of both sentences, and nothing else."""
    source = item.source
    gold = GOLD[source.sentence]
    assert source.example == Example(gold.sent_id, gold.forms)
    kind = PART_TYPES[item.part_type]
    for agreement, slot in zip(item.agreements, kind.slots, strict=True):
        assert agreement.slot == slot.name
        names = [name for name in agreement.properties if name.startswith("form=")]
        if slot.kind == "edge" and slot.role == "m":
            own = f"label={item.labels[slot.name]}"
            says = [name for name in agreement.properties if name.startswith("label=")]
            assert says == ([own] if item.labels[slot.name] == deprel else [])
        if slot.kind == "edge":
            assert agreement.factor == len(agreement.properties) + 1
            continue
        assert agreement.factor == len(agreement.properties)
        mine, theirs = item.words[slot.name], source.words[slot.name]
        if 1 <= mine <= len(sentence) and 1 <= theirs <= len(gold):
            form = sentence.forms[mine - 1]
            assert names == ([f"form={form}"] if form == gold.forms[theirs - 1] else [])
        elif mine == 0 or theirs == 0:
            assert names == (["form=ROOT"] if mine == theirs == 0 else [])


def test_winner_and_other_trees(every):
    sentence, trees = next(
        (s, t) for s, t in zip(GOLD, LISTS, strict=True) if len(every.completed(s, t)) > 3
    )
    completed = every.completed(sentence, trees)
    order = np.argsort(-every.final_scores(sentence, completed), kind="stable").tolist()
    made = every.explain(sentence, trees)
    assert [tree.role for tree in made.trees] == ["winner", "runner-up"]
    assert [tree.rank for tree in made.trees] == [1, 2]
    assert made.n_candidates == len(completed)
    for row, tree in zip(order, made.trees, strict=False):
        assert list(tree.heads) == completed.heads[row].tolist()
        assert tree.deprels == completed.deprels(row)
    first, second = made.trees
    assert made.differing == tuple(
        m + 1
        for m in range(len(sentence))
        if (first.heads[m], first.deprels[m]) != (second.heads[m], second.deprels[m])
    )
    last = completed.heads[order[-1]].tolist(), completed.deprels(order[-1])
    asked = every.explain(sentence, trees, tree=last)
    assert [tree.role for tree in asked.trees] == ["winner", "given"]
    assert asked.trees[1].rank == len(completed)
    winner = completed.heads[order[0]].tolist(), completed.deprels(order[0])
    given = every.explain(sentence, trees, tree=winner)
    assert given.to_dict() == {**made.to_dict(), "given_wins": True}
    assert [tree.role for tree in given.trees] == ["winner", "runner-up"]
    assert not asked.given_wins
    with pytest.raises(ValueError, match="not in the candidate list"):
        every.explain(sentence, trees, tree=(last[0], ["of no list"] * len(sentence)))
    with pytest.raises(ValueError, match="2 heads and 1 labels"):
        every.explain(sentence, trees, tree=([0, 1], ["root"]))
    document = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert document["trees"][0]["score"] == made.trees[0].score


@pytest.mark.parametrize(("kind", "well_formed"), [("penalties", False), ("", True)])
def test_what_is_explained_is_what_is_chosen(every, kind, well_formed):
    """Repaired trees are explained, and those that may not be chosen are no runners-up."""
    reranker = made_from(every, kind)
    of_repairs = 0
    for sentence, trees in zip(GOLD, LISTS, strict=True):
        made = reranker.explain(sentence, trees, well_formed=well_formed, n_threads=1)
        ((_, decision),) = reranker.decisions(
            [(sentence, trees)], well_formed=well_formed, n_threads=1
        )
        among, order = decision.candidates, decision.order
        assert made.n_candidates == len(among)
        for place, (row, tree) in enumerate(zip(order, made.trees, strict=False)):
            assert list(tree.heads) == among.heads[row].tolist()
            assert tree.deprels == among.deprels(row)
            assert tree.score == decision.final[row]
            assert tree.rank == place + 1
            violations = list_violations(among, word_facts(sentence)).at
            expected = {
                kind: int(at[row].sum()) for kind, at in violations.items() if at[row].any()
            }
            assert tree.violations == expected
        assert len(made.trees) == min(2, int(decision.eligible.sum()))
        if kind:
            broken = -reranker.penalties.of(among, word_facts(sentence))
            assert [tree.by_tree[PENALTIES] for tree in made.trees] == [
                broken[row] for row in order[:2]
            ]
        else:
            totals = count_broken(among, word_facts(sentence))
            assert all(sum(tree.violations.values()) == totals.min() for tree in made.trees)
        heads = [item.heads.tolist() for item in decision.repairs]
        of_repairs += any(list(tree.heads) in heads for tree in made.trees)
        # A tree that may not be chosen can be asked for, and comes last.
        last = among.heads[order[-1]].tolist(), among.deprels(order[-1])
        if len(order) > 1:
            asked = reranker.explain(sentence, trees, tree=last, well_formed=well_formed)
            assert asked.trees[1].rank == len(among)
    assert of_repairs


def test_a_model_without_examples_names_sentences_by_number(every):
    sentence, trees = next((s, t) for s, t in zip(GOLD, LISTS, strict=True) if len(t) > 1)
    without = replace(every, examples=None)
    assert "examples.npz" not in without.to_files()
    made = without.explain(sentence, trees)
    assert not made.has_examples
    sources = [i.source for arc in made.arcs for own in arc.influences for i in own]
    assert sources
    assert all(source.example is None and source.words for source in sources)
    # A model of before does not know the words either.
    arrays = {k: v for k, v in every.support.to_arrays().items() if "origin_words" not in k}
    names, width = every.settings.kernel_parts, len(every.schema.properties)
    old = replace(without, support=Support.from_arrays(arrays, names, n_properties=width))
    before = old.explain(sentence, trees)
    assert all(not i.source.words for arc in before.arcs for own in arc.influences for i in own)
    assert [tree.score for tree in before.trees] == [tree.score for tree in made.trees]


def test_examples_are_those_that_the_support_names(every):
    assert every.examples is not None
    named = {
        number for parts in every.support.types.values() for number in parts.origins[:, 1].tolist()
    }
    assert set(every.examples.sentences) == named
    copy = Reranker.from_bytes(every.to_bytes())
    assert copy.examples is not None
    assert copy.examples.sentences == every.examples.sentences
    assert copy.to_bytes() == every.to_bytes()
    small = pruned(every, 5)
    assert small.examples is not None
    assert 0 < len(small.examples) <= 5
    odd = Examples({2: Example(None, ("10 000", "\u2028")), 7: Example("a b", ("ä",))})
    assert Examples.from_arrays(odd.to_arrays()).sentences == odd.sentences
    assert Examples.from_arrays(Examples({}).to_arrays()).sentences == {}
    with pytest.raises(ValueError, match="2 examples for 1 numbers"):
        Examples.from_arrays({**odd.to_arrays(), "numbers": np.array([2], dtype=np.int32)})
    short = Examples(
        {n: Example(e.sent_id, e.forms[:1]) for n, e in every.examples.sentences.items()}
    )
    with pytest.raises(ValueError, match="beyond the words"):
        short.check(every.support)


def test_explanations_do_not_depend_on_the_number_of_threads(every):
    made = [every.explain(GOLD[1], LISTS[1], n_threads=n).to_dict() for n in (1, 2, 3)]
    assert made[0] == made[1] == made[2]
