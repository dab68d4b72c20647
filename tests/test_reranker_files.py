"""Model files that something or somebody has changed: refused in one line, never trusted."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import srsly
from test_cli import invoke
from trainings import list_files, lists_training

from tk_spacy.errors import ModelError
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.provenance import Candidates, Provenance
from tk_spacy.workflows.info import info


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(lists_training()[0], tmp_path / "model"))


def changed(columns: np.ndarray, row: int, value: int) -> np.ndarray:
    columns[row, 0] = value
    return columns


ARRAYS = {
    "columns of too few rows": ("arc.columns", lambda a: a[:2]),
    "columns beyond the nodes": ("arc.columns", lambda a: a + 10**8),
    "columns below 0": ("arc.columns", lambda a: a - 10**8),
    "columns of floats": ("arc.columns", lambda a: a.astype(np.float64)),
    "columns by row": ("arc.columns", np.asfortranarray),
    "too few weights": ("arc.weights", lambda a: a[:3]),
    "too many weights": ("arc.weights", lambda a: np.concatenate([a, a])),
    "a weight that is no number": ("arc.weights", lambda a: a * np.nan),
    "an infinite sum in single precision": ("arc.weights", lambda a: a * 1e300),
    "a label below 0": ("arc.columns", lambda a: changed(a, 1, -1)),
    "the least distance": ("arc.columns", lambda a: changed(a, 2, -(2**31))),
    "lengths of other distances": ("arc.columns", lambda a: changed(a, 3, 256)),
    "too few skips": ("arc.skips", lambda a: a[:1]),
    "a skip of 2": ("arc.skips", lambda a: a + 2),
    "origins of no part": ("arc.origins", lambda a: a + 10**6),
    "a single origin weight": ("arc.origin_weights", lambda a: a[0]),
    "origin words below 0": ("arc.origin_words", lambda a: a - 10**6),
    "words of few origins": ("arc.origin_words", lambda a: a[:1]),
    "few nodes": ("nodes", lambda a: a[:1]),
    "nodes with few properties": ("nodes", lambda a: a[:, :2].copy()),
    "nodes with many properties": ("nodes", lambda a: np.concatenate([a, a], axis=1)),
}


def test_a_model_is_shown_in_a_line_without_its_words(model: Path) -> None:
    made = Reranker.from_disk(model)
    parts, labels = len(made.support), len(made.schema.labels)
    assert repr(made) == f"<Reranker: {parts:,} support parts, {labels} labels, scores of spacy>"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (Provenance(sources=("spacy", "spacy+backward")), "25 by beam search"),
        (Provenance(sources=("projective", "biaffine")), "25"),
        (Provenance(sources=("biaffine", "spacy-seed1")), "25 by beam search"),
    ],
)
def test_info_tells_the_search_of_spacys_parsers_alone(
    model: Path, made: Provenance, told: str
) -> None:
    about = replace(made, candidates=Candidates(k=25, search="beam")).to_dict()
    replace(Reranker.from_disk(model), about=about).to_disk(model)
    (table, *_), _ = info(model)
    assert dict(table.rows)["candidates"] == told


@pytest.mark.parametrize("case", ARRAYS)
def test_reranker_files_support_arrays_must_fit(model: Path, case: str) -> None:
    name, change = ARRAYS[case]
    arrays = dict(np.load(model / "support.npz"))
    np.savez(model / "support.npz", **{**arrays, name: change(arrays[name])})
    with pytest.raises(
        ModelError, match=r"model: (support|examples)\.npz is damaged or incomplete \("
    ):
        Reranker.from_disk(model)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ids", lambda a: a + np.uint32(10**9)),
        ("ids", lambda a: -a.astype(np.int64)),
        ("ids", lambda a: np.append(a[:1], a[:-1])),
        ("values", lambda a: a * np.float32(np.nan)),
        ("values", lambda a: a[0]),
        ("values", lambda a: a[:5]),
    ],
)
def test_reranker_files_manual_weights_must_fit(model: Path, name: str, change) -> None:
    arrays = dict(np.load(model / "weights.npz"))
    np.savez(model / "weights.npz", **{**arrays, name: change(arrays[name])})
    with pytest.raises(ModelError, match=r"model: weights\.npz is damaged"):
        Reranker.from_disk(model)


@pytest.mark.parametrize(
    "change",
    [
        {"values": [["a"], ["b"]]},
        {"values": "abcdefghijklmnop"},
        {"morph": ["Case"]},
        {"labels": [1, 2]},
        {"pos_column": "ZPOS"},
        {"use_lemma": True},
        {"use_lemma": 0},
        {"use_cpos": "yes"},
        {"labels": ["root", "a\tb"]},
    ],
)
def test_reranker_files_schema_must_hold_together(model: Path, change: dict) -> None:
    path = model / "schema.msgpack"
    data = srsly.msgpack_loads(path.read_bytes())
    path.write_bytes(srsly.msgpack_dumps({**data, **change}))
    with pytest.raises(ModelError, match=r"model: (schema\.msgpack|support\.npz) is damaged"):
        Reranker.from_disk(model)


def change_meta(model: Path, **changes: object) -> None:
    meta = json.loads((model / "meta.json").read_text())
    for name, value in changes.items():
        if isinstance(meta[name], dict) and isinstance(value, dict):
            meta[name].update(value)
        else:
            meta[name] = value
    (model / "meta.json").write_text(json.dumps(meta))


@pytest.mark.parametrize(
    "change",
    [
        {"combination": {"betas": [1]}},
        {"combination": {"betas": {"spacy": "a"}}},
        {"combination": {"betas": {"spacy": float("nan")}}},
        {"combination": {"scales": {}}},
        {"combination": {"scales": {"spacy": 0}}},
        {"combination": {"reranker_scale": "x"}},
        {"list_features": {"groups": ["votes"]}},
        {"list_features": {"scales": {}}},
        {"list_features": {"factor": 0}},
        {"list_features": {"factor": 1e200}},
        {"list_features": {"weights": {}}},
        {"list_features": [1]},
        {"list_features": None},
        {"settings": {"bits": 8.5}},
        {"settings": {"bits": 8}},
        {"settings": {"kernel_parts": ["arc", "arc"]}},
        {"settings": {"kernel_parts": ["sibling"]}},
        {"settings": [1]},
        {"format_version": 99},
    ],
)
def test_reranker_files_meta_must_fit(model: Path, change: dict) -> None:
    change_meta(model, **change)
    result = invoke("rerank", model, list_files()["dev"], "-o", model.parent / "out.conllu")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {model}: ")
    assert not (model.parent / "out.conllu").exists()


@pytest.mark.parametrize("name", ["treebank", "upstream", "candidates"])
@pytest.mark.parametrize("value", [None, 5, [1], {"a": 1}])
def test_reranker_files_info_of_strange_facts(model: Path, name: str, value: object) -> None:
    meta = json.loads((model / "meta.json").read_text())
    (model / "meta.json").write_text(json.dumps({**meta, name: value}))
    result = invoke("info", model)
    assert result.exit_code == 1
    assert "is not as `tk-spacy train` writes it" in result.stderr


def test_reranker_files_of_another_kind(model: Path) -> None:
    with pytest.raises(
        ModelError, match=r"that of a tk-spacy reranker, not that of a .*; give the"
    ):
        BiaffineParser.from_disk(model)


def test_reranker_files_deep_json(model: Path) -> None:
    (model / "meta.json").write_text("[" * 100_000)
    with pytest.raises(ModelError, match=r"meta\.json is damaged or incomplete \(values within"):
        Reranker.from_disk(model)
