"""Training on a budget: against a plain twin of BPA-S, and what it promises."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import reference
from test_learning import ALL, random_lists, reference_input
from trainings import options

from tk_spacy.errors import UserError
from tk_spacy.features.schema import Schema
from tk_spacy.kernels.budget import Budget
from tk_spacy.kernels.support_log import SupportLog
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import learn, prepare_lists
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train.pipeline import train_pipeline

KERNEL = Settings(
    manual_parts=(), list_features=(), iterations=4, competitor="best", kernel_scale=0.1
)


@pytest.mark.parametrize("parts", [("arc",), ALL])
@pytest.mark.parametrize("budget", [40, 55])
def test_budget_equals_plain_bpa_s(parts, budget) -> None:
    settings = replace(KERNEL, kernel_parts=parts, budget=budget)
    golds, lists = random_lists(5, n=4, sentences=10)
    schema = Schema.fit(golds, labels=["x", "y"])
    items = prepare_lists(schema, golds, lists, settings)
    reranker, stats = learn(schema, items, settings, n_threads=1)
    given, by_name, sets = reference_input(schema, golds, lists, items, settings)
    alpha, updates, removed = reference.algorithm_1_on_a_budget(
        given, iterations=4, budget=budget, kernel_scale=0.1
    )
    assert removed > 5
    assert stats.updates == updates
    merged: Counter = Counter()
    for (i, name), value in alpha.items():
        merged[by_name[name][0], sets(i, name)] += value
    for type_name in parts:
        expected = sorted(
            0.1 * v for (t, _), v in merged.items() if t == type_name and abs(v) > 1e-12
        )
        found = np.sort(reranker.support.types[type_name].weights)
        found = found[np.abs(found) > 1e-12]
        assert len(found) == len(expected) > 0
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_budget_bounds_the_support_beside_manual_features() -> None:
    golds, lists = random_lists(3, sentences=60, n=6)
    schema = Schema.fit(golds)
    settings = Settings(kernel_parts=ALL, bits=14, iterations=3)
    items = prepare_lists(schema, golds, lists, settings)
    whole, _ = learn(schema, items, settings)
    assert len(whole.support) > 800
    for budget in (50, 300):
        bounded, _ = learn(schema, items, replace(settings, budget=budget))
        assert 0.5 * budget < len(bounded.support) <= budget
        # Every origin is of a part that is there, and of an update that stayed.
        for parts in bounded.support.types.values():
            assert set(parts.origins[:, 0].tolist()) == set(range(len(parts)))


def test_budget_that_is_never_reached_changes_nothing() -> None:
    golds, lists = random_lists(3, sentences=20)
    schema = Schema.fit(golds)
    settings = Settings(kernel_parts=ALL, bits=14, iterations=3)
    items = prepare_lists(schema, golds, lists, settings)
    a, _ = learn(schema, items, settings)
    b, _ = learn(schema, items, replace(settings, budget=100_000))
    assert a.weights is not None
    assert np.array_equal(a.weights, b.weights)
    for name, parts in a.support.types.items():
        np.testing.assert_array_equal(parts.weights, b.support.types[name].weights)
        np.testing.assert_array_equal(parts.columns, b.support.types[name].columns)


@pytest.mark.parametrize("shuffle_seed", [None, 3])
def test_budget_gives_the_same_bytes_for_any_number_of_threads(shuffle_seed) -> None:
    golds, lists = random_lists(2, sentences=80, n=6)
    settings = Settings(kernel_parts=ALL, iterations=2, bits=14, budget=200)
    settings = replace(settings, shuffle_seed=shuffle_seed)
    schema = Schema.fit(golds)
    models = [
        learn(schema, prepare_lists(schema, golds, lists, settings), settings, n_threads=t)[
            0
        ].to_bytes()
        for t in (1, 2, 3)
    ]
    assert models[0] == models[1] == models[2]


def test_budget_scores_while_training_are_those_of_what_is_kept() -> None:
    # What the log adds up to, additions and what takes them back, is the kept updates alone.
    rng = np.random.default_rng(0)
    log = SupportLog(("arc",), 4)
    layouts = [(np.array([0, 1, 0], dtype=np.int32), np.array([0, 1, 0], dtype=np.int32))]
    budget = Budget(log, 12, layouts)
    start = log.mark()
    nodes = rng.integers(1, 3, size=(6, 4)).astype(np.int32)
    for number in range(9):
        slots = np.array(
            [[h, rng.integers(1, 3), m - h, m] for h, m in rng.integers(0, 6, size=(4, 2))],
            dtype=np.int32,
        )
        signs = np.array([1, 1, -1, -1], dtype=np.int32)
        norm = float(rng.integers(1, 9))
        budget.append(
            nodes, (slots,), (signs,), weight=float(rng.normal()), averaged=1.0, norm=norm,
            origin=(0, number),
        )  # fmt: skip
        assert len(budget) <= 12
    parts = np.array([[1, 2, 1, 2], [3, 1, -1, 2]], dtype=np.int32)
    found, kept = np.zeros(2), np.zeros(2)
    log.add_scores([nodes], [[parts]], [[found]], since=start)
    only = SupportLog(("arc",), 4)
    for _, update in budget._kept:
        only.append(
            update.nodes, update.slots, update.signs, weight=update.weight, averaged=0.0,
            origin=update.origin,
        )  # fmt: skip
    only.add_scores([nodes], [[parts]], [[kept]], since=start)
    assert len(budget._kept) == 3
    np.testing.assert_allclose(found, kept, rtol=0, atol=1e-12)
    assert np.abs(found).max() > 0.1


def test_budget_smaller_than_an_update_leaves_that_update_out() -> None:
    golds, lists = random_lists(3, sentences=10)
    schema = Schema.fit(golds)
    settings = Settings(bits=14, iterations=2, budget=1)
    reranker, stats = learn(schema, prepare_lists(schema, golds, lists, settings), settings)
    assert stats.updates > 5
    assert len(reranker.support) == 0


def test_budget_of_the_whole_command(tmp_path) -> None:
    made = options(tmp_path / "model")
    settings = replace(made.settings, budget=60)
    train_pipeline(replace(made, settings=settings))
    model = open_model(tmp_path / "model").reranker
    assert model.settings.budget == 60
    assert 0 < len(model.support) <= 60


@pytest.mark.parametrize(
    ("budget", "message"),
    [(0, "budget is 0; it must be at least 1"), (1.5, "budget is 1.5; it must be a whole number")],
)
def test_budget_must_be_a_positive_number(budget, message) -> None:
    with pytest.raises(UserError, match=message):
        Settings(budget=budget)
