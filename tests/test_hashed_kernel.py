"""The hashed map of the arc kernel against the enumeration of combinations, and as a model."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_learning import random_lists
from trainings import lists_training

from tk_spacy.errors import ModelError, UserError
from tk_spacy.features.encoder import ListEncoder
from tk_spacy.features.part_types import part_type
from tk_spacy.features.schema import Schema
from tk_spacy.kernels.hashed_kernel import KernelMap, without_parts
from tk_spacy.kernels.hashed_map import add_map_scores, add_support, node_hashes
from tk_spacy.kernels.pruning import slot_form
from tk_spacy.kernels.support import Support
from tk_spacy.kernels.template_kernel import kernel_matrix
from tk_spacy.reranker.model import BEFORE_EXPLICIT, Reranker
from tk_spacy.reranker.penalties import Penalties
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import learn, prepare_lists

KINDS = np.array([0, 1, 0], dtype=np.int32)


def trained(*, parts=("arc",), skip=(), n=5, seed=7, **changes):
    golds, lists = random_lists(seed, sentences=30, n=n)
    settings = Settings(
        kernel_parts=parts, manual_parts=(), list_features=(), skip=skip, iterations=2, **changes
    )
    schema = Schema.fit(golds, labels=["x", "y"])
    reranker, _ = learn(schema, prepare_lists(schema, golds, lists, settings), settings)
    return reranker, list(zip(golds, lists, strict=True))


def arcs(reranker: Reranker, pairs):
    """Node rows and arcs in slot form of some lists, all together."""
    encoder = ListEncoder(reranker.schema, kernel_parts=("arc",), manual_parts=())
    nodes, slots, first = [], [], 0
    for sentence, trees in pairs:
        item = encoder.encode(sentence, trees)
        moved = item.kernel[0].slots.copy()
        moved[:, [0, 3]] += first
        first += len(item.sentence.nodes)
        nodes.append(item.sentence.nodes)
        slots.append(moved)
    return np.concatenate(nodes), np.ascontiguousarray(np.concatenate(slots))


def exact_scores(support: Support, nodes, slots):
    parts = support.types["arc"]
    matrix = kernel_matrix(
        part_type("arc"), nodes, slots, support.nodes, slot_form(parts, KINDS),
        skips=support.skips["arc"],
    )  # fmt: skip
    return matrix @ parts.weights, matrix @ np.abs(parts.weights)


@pytest.mark.parametrize("skip", [(), ("h",), ("m",)])
def test_kernel_map_without_collisions_is_the_kernel(skip) -> None:
    reranker, pairs = trained(skip=skip)
    nodes, slots = arcs(reranker, pairs)
    expected, scale = exact_scores(reranker.support, nodes, slots)
    made = KernelMap.of(reranker.support, 26)  # of its cells one in a thousand is taken
    assert np.abs(expected).max() > 0.01
    found = np.zeros(len(slots))
    add_map_scores(made.table, nodes, slots, made.skips, made.seed, found, n_threads=2)
    # Where no combination meets another one, as in most arcs, only rounding is left.
    assert np.median(np.abs(found - expected) / scale) < 1e-5
    assert np.abs(found - expected).max() < 0.2 * np.abs(expected).max()


def test_kernel_map_equals_its_plain_twin_bit_by_bit_of_the_hash() -> None:
    # A table so small that everything collides: the twin sums the same cells in plain Python.
    reranker, pairs = trained()
    nodes, slots = arcs(reranker, pairs[:3])
    made = KernelMap.of(reranker.support, 8, seed=3)
    tables = [node_hashes(nodes, slot, 0, 3) for slot in (0, 2)]
    # The hashes of an edge's properties, read off single arcs with a single combination.
    edges: dict[tuple, set[int]] = {}
    cells = np.arange(1, 257, dtype=np.float32)
    for label, distance in {tuple(row) for row in slots[:, 1:3].tolist()}:
        alone = np.zeros(256)
        one = np.ones((1, 1), dtype=np.int32)
        columns = np.array([[0], [label], [distance], [0], [0]], dtype=np.int32)
        add_support(one, columns, np.ones(1), (0, 1, 0), 3, alone)
        ends = node_hashes(one, 0, 0, 3)[1][0] ^ node_hashes(one, 2, 0, 3)[1][0]
        edges[label, distance] = {
            (int(i) ^ int(ends & 255), int(np.sign(alone[i])) * (-1 if ends >> 31 else 1))
            for i in np.flatnonzero(alone)
        }
    found = np.zeros(len(slots))
    add_map_scores(cells, nodes, slots, (0, 1, 0), 3, found, n_threads=1)
    for row, score in zip(slots.tolist(), found, strict=True):
        if len(edges[row[1], row[2]]) < 3 + (row[1] != 0):
            continue  # two of its properties meet in one cell
        total = 0.0
        for h in tables[0][1][tables[0][0][row[0]] : tables[0][0][row[0] + 1]].tolist():
            for m in tables[1][1][tables[1][0][row[3]] : tables[1][0][row[3] + 1]].tolist():
                for cell, sign in edges[row[1], row[2]]:
                    total += sign * (-1 if (h ^ m) >> 31 else 1) * cells[(h ^ m ^ cell) & 255]
        assert score == pytest.approx(total, abs=1e-3)
    assert made.table.shape == (256,)


def test_kernel_map_is_right_on_average() -> None:
    # Over many hashes the mean of the scores is the exact score: the signs cancel what collides.
    reranker, pairs = trained()
    nodes, slots = arcs(reranker, pairs[:4])
    expected, _ = exact_scores(reranker.support, nodes, slots)
    scores = []
    for seed in range(300):
        made = KernelMap.of(reranker.support, 10, seed=seed)
        found = np.zeros(len(slots))
        add_map_scores(made.table, nodes, slots, made.skips, seed, found, n_threads=1)
        scores.append(found)
    error = np.std(scores, axis=0) / np.sqrt(len(scores))
    distance = np.abs(np.mean(scores, axis=0) - expected) / error
    assert (distance > 3).mean() < 0.02
    assert distance.max() < 5


def test_kernel_map_scores_do_not_depend_on_threads_or_batches() -> None:
    reranker, pairs = trained(n=8)
    mapped = with_map(reranker, 12)
    one = mapped.batch_scores(pairs, n_threads=1)
    for threads in (2, 3):
        for a, b in zip(one, mapped.batch_scores(pairs, n_threads=threads), strict=True):
            assert a.tobytes() == b.tobytes()
    for pair, scores in zip(pairs, one, strict=True):
        np.testing.assert_allclose(mapped.scores(*pair), scores, rtol=0, atol=1e-12)


def with_map(reranker: Reranker, bits: int) -> Reranker:
    made = KernelMap.of(reranker.support, bits)
    return replace(reranker, kernel_map=made, support=without_parts(reranker.support))


def test_kernel_map_of_a_model_survives_its_storage(tmp_path: Path) -> None:
    reranker, pairs = trained()
    mapped = with_map(reranker, 14)
    mapped.to_disk(tmp_path / "model")
    meta = json.loads((tmp_path / "model" / "meta.json").read_text())
    assert (meta["format_version"], meta["kernel_map"]["bits"]) == (3, 14)
    assert meta["kernel_map"]["support_parts"] == len(reranker.support) > 0
    assert sum(meta["support_parts"].values()) == 0
    for again in (
        Reranker.from_disk(tmp_path / "model"),
        Reranker.from_bytes(mapped.to_bytes()),
    ):
        assert again.to_bytes() == mapped.to_bytes()
        for a, b in zip(again.batch_scores(pairs), mapped.batch_scores(pairs), strict=True):
            assert a.tobytes() == b.tobytes()


def test_kernel_map_leaves_models_without_it_as_they_were() -> None:
    stored = lists_training()[0]
    reranker = Reranker.from_disk(stored)
    plain = json.loads(replace(reranker, penalties=Penalties()).to_files()["meta.json"])
    assert plain["format_version"] == BEFORE_EXPLICIT
    assert "kernel_map" not in plain
    assert "budget" not in plain["settings"]
    files = reranker.to_files()
    assert all((stored / name).read_bytes() == content for name, content in files.items())


@pytest.mark.parametrize("bits", [7, 29])
def test_kernel_map_bits_are_bounded(bits: int) -> None:
    with pytest.raises(UserError, match=f"{bits} bits; a hashed map takes from 8 to 28"):
        KernelMap.of(trained()[0].support, bits)


def test_kernel_map_is_for_arcs_alone() -> None:
    reranker, _ = trained(parts=("arc", "sibling"))
    with pytest.raises(UserError, match="the model compares sibling; only the kernel of arcs"):
        KernelMap.of(reranker.support, 12)
    with pytest.raises(UserError, match="the model has no support parts"):
        KernelMap.of(without_parts(trained()[0].support), 12)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("table", lambda a: a[:-1]),
        ("table", lambda a: a.astype(np.float64)),
        ("table", lambda a: a * np.float32(np.inf)),
        ("table", lambda a: np.full_like(a, np.finfo(np.float32).max)),
        ("skips", lambda a: a + 1),
        ("skips", lambda a: a[:2]),
    ],
)
def test_kernel_map_files_must_fit(tmp_path: Path, name: str, change) -> None:
    with_map(trained()[0], 10).to_disk(tmp_path / "model")
    path = tmp_path / "model" / "kernel_map.npz"
    arrays = dict(np.load(path))
    with np.errstate(invalid="ignore"):
        np.savez(path, **{**arrays, name: change(arrays[name])})
    with pytest.raises(ModelError, match="damaged"):
        Reranker.from_disk(tmp_path / "model")


@pytest.mark.parametrize("change", [{"bits": 11}, {"bits": "10"}, {"seed": -1}, {"bits": 40}])
def test_kernel_map_meta_must_fit(tmp_path: Path, change: dict) -> None:
    with_map(trained()[0], 10).to_disk(tmp_path / "model")
    meta = json.loads((tmp_path / "model" / "meta.json").read_text())
    meta["kernel_map"].update(change)
    (tmp_path / "model" / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ModelError, match="damaged"):
        Reranker.from_disk(tmp_path / "model")


def test_kernel_map_file_may_not_be_missing(tmp_path: Path) -> None:
    with_map(trained()[0], 10).to_disk(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "kernel_map.npz").unlink()
    with pytest.raises(ModelError, match="damaged"):
        Reranker.from_disk(tmp_path / "b")
