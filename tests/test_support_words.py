"""Where support parts came from: training sentence, words and tree, against the lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_learning import ALL, random_lists

from tk_spacy.features.part_types import part_type
from tk_spacy.features.schema import Schema
from tk_spacy.kernels.pruning import norms, prune
from tk_spacy.kernels.support import Support, node_rows
from tk_spacy.kernels.template_kernel import slot_layout
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import learn, prepare_lists


def role_words(name: str, heads: list[int], m: int) -> list[int] | None:
    """The words of the part of a tree at modifier m in the node slots of its type, plainly."""
    n = len(heads)
    h = heads[m - 1]

    def sibling(word: int) -> int:
        step = 1 if word < heads[word - 1] else -1
        other = word + step
        while other != heads[word - 1]:
            if heads[other - 1] == heads[word - 1]:
                return other
            other += step
        return n + 1

    words = {"m": m, "h": h, "s": sibling(m)}
    roles = [slot.role for slot in part_type(name).slots if slot.kind == "node"]
    if "g" in roles:
        if h == 0:
            return None
        words["g"] = heads[h - 1]
    if "t" in roles:
        if words["s"] > n:
            return None
        words["t"] = sibling(words["s"])
    return [words[role] for role in roles]


@pytest.fixture(scope="module", params=[None, 400], ids=["all", "budget"])
def made(request):
    golds, lists = random_lists(3, sentences=30, n=6)
    schema = Schema.fit(golds)
    settings = Settings(kernel_parts=ALL, bits=14, iterations=3, budget=request.param)
    items = prepare_lists(schema, golds, lists, settings)
    return golds, lists, items, learn(schema, items, settings, n_threads=1)[0]


def test_words_of_support_parts_are_those_of_a_tree_of_their_sentence(made):
    golds, lists, items, reranker = made
    oracles = {item.index: item.oracle for item in items}
    for name, parts in reranker.support.types.items():
        assert parts.origin_words is not None
        assert len(parts.origin_words) == len(parts.origins) > 0
        rows = node_rows(slot_layout(part_type(name)))
        for (part, sentence, _), weight, words in zip(
            parts.origins.tolist(),
            parts.origin_weights.tolist(),
            parts.origin_words.tolist(),
            strict=True,
        ):
            trees = lists[sentence].heads.tolist()
            # A part that should have won stands in the oracle tree, the other in another one.
            oracle = oracles[sentence]
            others = [row for row in range(len(trees)) if row != oracle]
            holds = [
                words == role_words(name, trees[row], words[-1])
                for row in ([oracle] if weight > 0 else others)
            ]
            assert any(holds)
            # And its properties are those of these words.
            nodes = reranker.schema.encode(golds[sentence]).nodes
            np.testing.assert_array_equal(
                reranker.support.nodes[parts.columns[rows, part]], nodes[words]
            )


def test_words_stay_with_their_parts_when_others_are_pruned(made):
    *_, reranker = made
    support = reranker.support
    kept = prune(support, len(support) // 3, norms(support))
    for name, parts in kept.types.items():
        before = support.types[name]
        assert parts.origin_words is not None
        assert before.origin_words is not None
        known = {
            (*origin[1:], *words, weight)
            for origin, words, weight in zip(
                before.origins.tolist(),
                before.origin_words.tolist(),
                before.origin_weights.tolist(),
                strict=True,
            )
        }
        total = np.zeros(len(parts))
        np.add.at(total, parts.origins[:, 0], parts.origin_weights)
        np.testing.assert_allclose(total, parts.weights, atol=1e-12)
        for origin, words, weight in zip(
            parts.origins.tolist(),
            parts.origin_words.tolist(),
            parts.origin_weights.tolist(),
            strict=True,
        ):
            assert (*origin[1:], *words, weight) in known


def test_a_support_of_before_has_no_words(made):
    *_, reranker = made
    arrays = reranker.support.to_arrays()
    old = {name: array for name, array in arrays.items() if not name.endswith("origin_words")}
    support = Support.from_arrays(old, ALL, n_properties=len(reranker.schema.properties))
    assert all(parts.origin_words is None for parts in support.types.values())
    assert sorted(support.to_arrays()) == sorted(old)
    assert sorted(support.compact().to_arrays()) == sorted(old)
    copy = replace(reranker, support=support)
    assert type(copy).from_bytes(copy.to_bytes()).to_bytes() == copy.to_bytes()
