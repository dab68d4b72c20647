"""Lists of a whole treebank, most of them in a file: the same as without, as are trainings."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from test_learning import ALL, random_lists
from trainings import lists_training, options

from tk_spacy.ensemble.combiner.model import COLUMNS, ArcCombiner, _normalize
from tk_spacy.features.list_features import LIST_FEATURES
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.stored_lists import StoredLists
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import learn, prepare_lists, train_reranker
from tk_spacy.reranker.training_list import TrainingLists
from tk_spacy.utils import array_store
from tk_spacy.workflows.train.pipeline import train_pipeline


@pytest.fixture
def in_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory holds no record at all."""
    monkeypatch.setattr(array_store, "SEGMENT", 1)


def equal(found: CandidateList, given: CandidateList) -> bool:
    arrays = [(getattr(found, n), getattr(given, n)) for n in ("heads", "labels", "scores")]
    facts = [
        [trees.sources, trees.base, trees.bases, trees.checked is None] for trees in (found, given)
    ]
    return (
        all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True) for a, b in arrays)
        and facts[0] == facts[1]
        and found.inventory is given.inventory
    )


def various_lists() -> list[CandidateList]:
    """Of two inventories, with and without own choices of further parsers, checked and not."""
    _, some = random_lists(3, sentences=6)
    _, others = random_lists(4, sentences=4, n=8)
    other = others[0]
    return [
        *some,
        replace(some[2], base=1, bases={"b": 1, "c": 0}),
        replace(some[3], bases={"c": 1}),
        CandidateList(
            other.heads.copy(), other.labels, other.inventory, ("a", "b"),
            np.repeat(np.where(other.scores > 0, np.nan, other.scores), 2, axis=1),
        ),
        *others,
    ]  # fmt: skip


@pytest.mark.parametrize("segment", [1, 500, 1 << 20])
def test_lists_come_back_as_they_were(segment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_store, "SEGMENT", segment)
    lists = various_lists()
    assert len({trees.checked is None for trees in lists}) == 2
    stored = StoredLists(lists[:4])
    stored.extend(lists[4:-1])
    stored.append(lists[-1])
    assert len(stored) == len(lists)
    assert all(map(equal, stored, lists))
    assert all(map(equal, stored[-3:1:-2], lists[-3:1:-2]))
    assert equal(stored[-1], lists[-1])
    assert not stored[0].heads.flags.writeable
    for place in (len(lists), -len(lists) - 1):
        with pytest.raises(IndexError):
            stored[place]


def test_lists_travel_to_another_process_as_themselves(in_file: None) -> None:
    lists = various_lists()
    found = pickle.loads(pickle.dumps(StoredLists(lists)))
    assert type(found) is list
    assert [trees.heads.tolist() for trees in found] == [trees.heads.tolist() for trees in lists]
    assert [trees.bases for trees in found] == [trees.bases for trees in lists]


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_parts": ALL, "list_features": LIST_FEATURES},
        {"kernel_parts": ("arc",), "manual_parts": (), "shuffle_seed": 3},
        {"kernel_parts": (), "list_features": (), "count_single": True},
        {"kernel_parts": ("sibling", "arc"), "manual_parts": ("arc",), "add_gold": True},
    ],
)
def test_models_from_a_file_are_the_same(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    golds, lists = random_lists(8, sentences=24, n=6)
    settings = Settings(**{"iterations": 2, "bits": 12, **options})  # type: ignore[arg-type]
    schema = Schema.fit(golds)
    models = []
    for segment in (1 << 30, 1, 2_000):
        monkeypatch.setattr(array_store, "SEGMENT", segment)
        given = StoredLists(lists)
        assert (given._store.in_file > 0) == (segment < 1 << 30)
        model, _ = train_reranker(golds, given, settings, schema=schema, seed=1)
        models.append(model.to_bytes())
    assert models[0] == models[1] == models[2]


def test_combiners_from_a_file_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    golds, lists = random_lists(9, sentences=20, n=6)
    found = []
    for segment in (1 << 30, 1):
        monkeypatch.setattr(array_store, "SEGMENT", segment)
        combiner, extended = ArcCombiner.fit_apart(golds, StoredLists(lists), folds=3)
        apart = [scores.tobytes() for _, scores in ArcCombiner.judge_apart(golds, lists, folds=3)]
        weights = combiner.weights.tobytes(), combiner.hashed.tobytes(), combiner.to_dict()
        found.append((weights, [pickle.dumps(trees) for trees in extended], apart))
    assert found[0] == found[1]


def test_lists_left_out_are_not_learnt_from(in_file: None) -> None:
    golds, lists = random_lists(5, sentences=12)
    settings = Settings(iterations=2, bits=12, list_features=())
    schema = Schema.fit(golds)
    items = prepare_lists(schema, golds, lists, settings)

    def weights(items: TrainingLists) -> list[bytes]:
        model, _ = learn(schema, items, settings)
        assert model.weights is not None
        return [t.weights.tobytes() for t in model.support.types.values()] + [
            model.weights.tobytes()
        ]

    rest = items.without({items[1].index, items[4].index}).without({items[0].index, 10_000})
    kept = [item.index for i, item in enumerate(items) if i not in (0, 1, 4)]
    assert [item.index for item in rest] == kept
    assert len(rest) == len(items) - 3
    assert rest.mean_length == np.mean([len(golds[index]) for index in kept])
    alone = prepare_lists(schema, [golds[i] for i in kept], [lists[i] for i in kept], settings)
    assert weights(rest) == weights(alone)
    # What was remembered of that training does no harm to the next.
    assert weights(items) == weights(prepare_lists(schema, golds, lists, settings)) != weights(rest)


def test_lists_without_a_choice_are_told_from_others(in_file: None) -> None:
    golds, lists = random_lists(6, sentences=4)
    single = lists[0].__class__.build(
        [(golds[0].heads, golds[0].deprels, 0.0)], inventory=LabelInventory(), sources=["r"]
    )
    settings = Settings(count_single=True, bits=12)
    items = prepare_lists(Schema.fit(golds), golds, [single, *lists[1:]], settings)
    assert items.has_choice
    assert not items.without({1, 2, 3}).has_choice


@pytest.mark.parametrize("width", [1, 2, COLUMNS, COLUMNS + 1, 2 * COLUMNS + 1])
@pytest.mark.parametrize("rows", [1, 5, 3000])
def test_features_are_normalized_as_by_plain_numpy(width: int, rows: int) -> None:
    rng = np.random.default_rng(width)
    dense = rng.normal(rng.normal(size=width), 3.0, (rows, width)).astype(np.float32)
    dense[:, width // 2] = 7.0
    given = dense.astype(np.float64)
    spread = given.std(axis=0)
    factors = _normalize(dense)
    assert factors[width // 2] == 0.0
    varies = np.arange(width) != width // 2
    if rows > 1:
        np.testing.assert_allclose(factors[varies], 1 / spread[varies], rtol=1e-9)
    expected = np.where(varies & (rows > 1), given - given.mean(axis=0), 0.0) * factors
    np.testing.assert_allclose(dense, expected, atol=2e-6)


def test_files_of_a_training_lie_beside_its_output_and_go_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = []
    make = array_store._nameless_file

    def watched(place: Path | None) -> tuple[IO[bytes], Path | None]:
        places.append(place)
        return make(place)

    monkeypatch.setattr(array_store, "SEGMENT", 1)
    monkeypatch.setattr(array_store, "_nameless_file", watched)
    train_pipeline(options(tmp_path / "model"))
    assert len(places) == 2  # lists of the base reranker and of the kernel's; the others are given
    assert set(places) == {tmp_path}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    expected, _ = lists_training()
    files = [path.relative_to(expected) for path in expected.rglob("*") if path.is_file()]
    same = [(tmp_path / "model" / f).read_bytes() == (expected / f).read_bytes() for f in files]
    # But for times and places in reports.
    assert {f.suffix for f, equal in zip(files, same, strict=True) if not equal} <= {
        ".json", ".html", ".md",
    }  # fmt: skip
    assert sum(same) >= 3
