"""Stored sampling parsers: equal after a round trip; damaged ones are refused in one line."""

from __future__ import annotations

import json
import pickle
import shutil

import numpy as np
import pytest
import srsly
from sampling_parsers import random_parser, random_sentence, same, trained, treebank

from tk_spacy.errors import ModelError
from tk_spacy.features.schema import FIRST_ID
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.utils.serialization import from_npz, to_npz


@pytest.fixture
def parser():
    """A small one, whose files are small."""
    rng = np.random.default_rng(1)
    return random_parser(rng, [random_sentence(rng, n) for n in (3, 5)], bits=8, pruner_bits=8)


WAYS = {
    "files": lambda parser, _: SamplingParser.from_files(parser.to_files()),
    "bytes": lambda parser, _: SamplingParser.from_bytes(parser.to_bytes()),
    "pickle": lambda parser, _: pickle.loads(pickle.dumps(parser)),
    "disk": lambda parser, path: (parser.to_disk(path), SamplingParser.from_disk(path))[1],
}


@pytest.mark.parametrize("way", WAYS)
def test_stored_parsers_parse_as_before(way, tmp_path):
    before, sentences = trained(), treebank()[1][:15]
    after = WAYS[way](before, tmp_path / "model")
    assert after.settings == before.settings
    assert after.labels == before.labels
    assert after.about == before.about
    for name in ("weights", "pruner", "places"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
        assert getattr(after, name).dtype == getattr(before, name).dtype
    pairs = zip(before.parse(sentences), after.parse(sentences), strict=True)
    assert all(same(a, b) for a, b in pairs)
    options = {"k": 6, "inventory": LabelInventory()}
    pairs = zip(before.kbest(sentences, **options), after.kbest(sentences, **options), strict=True)
    assert all(same(a, b) for a, b in pairs)
    assert after.to_files() == before.to_files()


def test_stored_parsers_replace_what_was_there(parser, tmp_path):
    path = tmp_path / "model"
    parser.to_disk(path)
    (path / "old").write_text("")
    parser.to_disk(path)
    assert sorted(p.name for p in path.iterdir()) == sorted(parser.to_files())
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def refused(files, match="damaged"):
    """The files are refused with one line, however they come."""
    with pytest.raises(ModelError, match=match) as caught:
        SamplingParser.from_files(files, where="here")
    assert str(caught.value).startswith("here: ")
    with pytest.raises(ModelError, match=match):
        SamplingParser.from_bytes(srsly.msgpack_dumps(files))


def change_meta(files, **changes):
    meta = json.loads(files["meta.json"])
    meta.update(changes)
    files["meta.json"] = json.dumps(meta).encode()


@pytest.mark.parametrize(
    "change",
    [
        {"bits": 30},
        {"bits": 9.5},
        {"bits": "8"},
        {"pruner_bits": 3},
        {"order": 7},
        {"max_heads": 10**9},
        {"max_heads": -1},
        {"max_labels": 1000},
        {"C": "much"},
        {"temperature": 0},
        {"temperature": 10**400},
        {"depth": 1},
    ],
)
def test_damaged_settings_are_refused(parser, change):
    files = parser.to_files()
    change_meta(files, settings={**parser.settings.to_dict(), **change})
    refused(files)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": "something else"}, "not that of a tk-spacy sampling parser"),
        ({"format_version": 99}, "format version 99, this tk-spacy reads 1"),
        ({"format_version": None}, "format version None"),
        ({"settings": [1]}, "damaged"),
        ({"settings": None}, "damaged"),
    ],
)
def test_meta_of_something_else_is_refused(parser, change, match):
    files = parser.to_files()
    change_meta(files, **change)
    refused(files, match)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"3", b"\xff\xfe", b"[" * 100_000])
@pytest.mark.parametrize("name", ["meta.json", "schema.msgpack", "weights.npz"])
def test_files_of_other_content_are_refused(parser, name, content):
    refused({**parser.to_files(), name: content})


@pytest.mark.parametrize("name", ["meta.json", "schema.msgpack", "weights.npz"])
def test_files_that_are_cut_or_missing_are_refused(parser, name):
    files = parser.to_files()
    for length in (1, len(files[name]) // 3, len(files[name]) - 40):
        refused({**files, name: files[name][:length]})
    refused({n: content for n, content in files.items() if n != name})


ARRAYS = {
    "ids beyond the weights": ("weights_ids", lambda a: a + np.uint32(10**6)),
    "ids beyond the pruner's weights": ("pruner_ids", lambda a: a + np.uint32(1)),
    "ids below 0": ("weights_ids", lambda a: -a.astype(np.int64)),
    "ids twice": ("weights_ids", lambda a: np.append(a[:1], a[:-1])),
    "ids twice, apart": ("pruner_ids", lambda a: np.append(a[1:], a[1])),
    "ids out of order": ("pruner_ids", lambda a: a[::-1]),
    "too few ids": ("weights_ids", lambda a: a[:3]),
    "ids of two dimensions": ("weights_ids", lambda a: a[None]),
    "weights that are no numbers": ("weights_values", lambda a: a * np.float32(np.nan)),
    "infinite weights": ("pruner_values", lambda a: a + np.float32(np.inf)),
    "weights whose sums are infinite": ("weights_values", lambda a: 0 * a + np.float32(3e38)),
    "a pruner of huge weights": ("pruner_values", lambda a: 0 * a - np.float32(3e38)),
    "weights of doubles": ("weights_values", lambda a: a.astype(float)),
    "weights of objects": ("weights_values", lambda a: a.astype(str)),
    "too few places": ("places", lambda a: a[:-1]),
    "too many places": ("places", lambda a: np.append(a, a)),
    "places of another type": ("places", lambda a: a.astype(np.int64)),
    "places nowhere": ("places", lambda a: 0 * a),
    "places not under the root": ("places", lambda a: a & 2),
    "places that do not exist": ("places", lambda a: a + np.uint8(4)),
    "places of what is no label": (
        "places",
        lambda a: np.array([3] * FIRST_ID + [0] * (len(a) - FIRST_ID), dtype=np.uint8),
    ),
    "a number for places": ("places", lambda a: a[0]),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_do_not_fit_are_refused(parser, case):
    name, change = ARRAYS[case]
    files = parser.to_files()
    arrays = from_npz(files["weights.npz"])
    files["weights.npz"] = to_npz({**arrays, name: change(arrays[name])})
    refused(files)


@pytest.mark.parametrize("name", ["weights_ids", "weights_values", "pruner_ids", "places"])
def test_arrays_that_are_missing_are_refused(parser, name):
    files = parser.to_files()
    arrays = from_npz(files["weights.npz"])
    del arrays[name]
    files["weights.npz"] = to_npz(arrays)
    refused(files)


@pytest.mark.parametrize(
    "change",
    [
        {"labels": ["root"]},
        {"labels": ["root", "x", "x"]},
        {"labels": ["x", "root", "root", "root", "root"]},
        {"labels": [1, 2, 3]},
        {"labels": "rxy"},
        {"labels": None},
        {"values": []},
        {"morph": ["Case"]},
        {"morph": ["Case", "Case"]},
        {"pos_column": "ZPOS"},
        {"use_cpos": 1},
        {"use_cpos": "false"},
        {"use_lemma": None},
        {"use_lemma": 0.0},
        {"labels": ["root", "x\ty", "y"]},
        {"labels": ["root", "x", "y\n"]},
        {"labels": ["root", "\r", "y"]},
        {"labels": ["root", "", "y"]},
    ],
)
def test_schemas_that_do_not_fit_are_refused(parser, change):
    files = parser.to_files()
    schema = srsly.msgpack_loads(files["schema.msgpack"])
    files["schema.msgpack"] = srsly.msgpack_dumps({**schema, **change})
    refused(files)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xc1", b"hello", srsly.msgpack_dumps([1, 2])])
def test_bytes_of_something_else_are_refused(data):
    with pytest.raises(ModelError):
        SamplingParser.from_bytes(data)


def test_directories_of_something_else_are_refused(parser, tmp_path):
    with pytest.raises(ModelError, match=r"no tk-spacy sampling parser here \(meta.json is miss"):
        SamplingParser.from_disk(tmp_path)
    parser.to_disk(tmp_path / "model")
    for name in parser.to_files():
        broken = shutil.copytree(tmp_path / "model", tmp_path / f"without-{name}")
        (broken / name).unlink()
        with pytest.raises(ModelError, match=str(broken)):
            SamplingParser.from_disk(broken)
