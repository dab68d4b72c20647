"""Stored models in which one value or array is wrong: they work, or are refused in a line.

The line names the file; nothing else is raised, on opening or when a sentence is scored.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damages import (
    Files,
    as_json,
    check_refusal,
    damaged_arrays,
    damaged_contents,
    damaged_meta,
    damaged_msgpack,
)
from test_combiner import three_parsers

from tk_spacy.errors import ModelError, UserError
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kernels.hashed_kernel import without_parts
from tk_spacy.reranker.calibration import Calibration, Logistic
from tk_spacy.reranker.cascade import Cascade
from tk_spacy.reranker.compression import hashed
from tk_spacy.reranker.evidence import WordFeatures, tree_feature_names
from tk_spacy.reranker.examples import Examples
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.penalties import Penalties
from tk_spacy.reranker.quick_choice import FEATURES
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.staged import left_to_quick
from tk_spacy.reranker.training import combine_lists, train_reranker
from tk_spacy.selection.basic import BasicFeatures
from tk_spacy.selection.combinations.expanding import expand
from tk_spacy.selection.corpus import Corpus
from tk_spacy.selection.model import SelectedFeatures
from tk_spacy.selection.selecting import MiningSettings, select_features
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.constraints import KINDS
from tk_spacy.utils.model_dirs import (
    COMBINER_WEIGHTS,
    EXAMPLES,
    EXPLICIT,
    KERNEL_MAP,
    SCHEMA,
    SUPPORT,
    WEIGHTS,
)
from tk_spacy.utils.serialization import META, DamagedFileError, reading

QUICK = Settings(iterations=1, bits=8, manual_parts=("arc",))


@functools.cache
def lists() -> tuple[list[Sentence], list[CandidateList]]:
    return three_parsers(n=16)


@functools.cache
def kernel() -> Reranker:
    """With everything that a model may have beside its kernel."""
    golds, trees = lists()
    schema = Schema.fit(golds)
    combiner, longer = combine_lists(golds, trees, QUICK)
    made, _ = train_reranker(
        golds, longer, QUICK, schema=schema, tuning_folds=2, penalties=False, n_threads=1
    )
    assert made.combination is not None
    return replace(
        made,
        combiner=combiner,
        penalties=Penalties({KINDS[0]: 0.5, KINDS[1]: 0.25}),
        calibration=calibration(list(made.combination.scales)),
        cascade=cascade(),
        examples=Examples.of(made.support, golds),
    )


def calibration(sources: list[str]) -> Calibration:
    relations = ("nsubj", "root")
    word = Logistic(dict.fromkeys(WordFeatures(sources, relations).names, 0.25), 0.5)
    return Calibration(
        scales=dict.fromkeys(sources, 2.0),
        final_scale=1.5,
        head=word,
        label=word,
        tree=Logistic(dict.fromkeys(tree_feature_names(sources), 0.125), -0.5),
        others_temperature=1.0,
        others_share=0.5,
        relations=relations,
        adjusted={"head": Logistic({"model": 0.75}, 0.125)},
        informed={"tree": Logistic({"model": 0.5, "parsers": 0.25}, 0.125)},
    )


def cascade() -> Cascade:
    return Cascade(
        quick=("good", "fair"),
        scales={"good": 1.5, "fair": 2.5},
        model=Logistic(dict.fromkeys(FEATURES, 0.125), -0.5),
        limits={"balanced": 0.25, "fast": 0.5},
    )


def selected(*, trees: bool) -> Reranker:
    model = kernel()
    golds, found = lists()
    whole = [model.completed(*pair) for pair in zip(golds, found, strict=True)]
    basic = BasicFeatures.fit(model.schema, golds, whole, labelled=True)
    corpus = Corpus(basic.encode_all(golds, whole), len(basic))
    settings = MiningSettings(
        trees=trees, max_order=2, threshold=2, step=0.01, iterations=1, pretraining=1
    )
    oracles = [own.oracle(gold) for gold, own in zip(golds, whole, strict=True)]
    mined = select_features(corpus, oracles, settings)
    return in_place(SelectedFeatures.make(basic, mined.table, mined.weights))


def in_place(explicit: Any) -> Reranker:
    model = kernel()
    return replace(
        model,
        support=without_parts(model.support),
        weights=None,
        list_features=None,
        list_weights=None,
        examples=None,
        calibration=None,
        cascade=None,
        penalties=Penalties(),
        explicit=explicit,
    )


@functools.cache
def stored(kind: str) -> Files:
    model = kernel()
    made = {
        "kernel": lambda: model,
        "hashed": lambda: hashed(model, 8),
        "sets": lambda: selected(trees=False),
        "trees": lambda: selected(trees=True),
        "combinations": lambda: in_place(expand(model.support, model.schema, most=40)),
    }
    return made[kind]().to_files()


def check(all_files: Iterable[Files], name: str | None, *, least: int = 1) -> None:
    """Each of the files opens a model that scores, or is refused."""
    golds, found = lists()
    refused = 0
    for files in all_files:
        try:
            model = Reranker.from_files(files, where="here")
        except UserError as error:
            check_refusal(error, name=name, names=Reranker.FILES)
            refused += 1
            continue
        trees = model.completed(golds[0], found[0])
        decision = model.decide(golds[0], trees, n_threads=1)
        assert np.isfinite(decision.final).all()
        arcs = np.full((len(golds[0]), 2), 0.5)
        sure = model.confidence(decision.candidates, decision.final, decision.row, arcs=arcs)
        if sure is not None:
            assert np.isfinite([sure.tree, *sure.heads, *sure.labels, *sure.trees]).all()
        if model.cascade is not None:
            left = left_to_quick(model, golds[:4], found[:4], speed="fast")
            assert all(np.isfinite(one.final).all() for one in left if one is not None)
        assert model.provenance is not None
        assert repr(model)
    assert refused >= least


def test_what_is_whole_opens() -> None:
    for kind in ("kernel", "hashed", "sets", "trees", "combinations"):
        check([stored(kind)], None, least=0)


OF_META = ("combination", "list_features", "combiner", "penalties", "calibration", "cascade")


@pytest.mark.parametrize("name", OF_META)
def test_values_of_meta(name: str) -> None:
    check(damaged_meta(stored("kernel"), name), META, least=20)


def test_settings_and_the_rest_of_meta() -> None:
    # A setting that does not fit the arrays is told of them.
    check(damaged_meta(stored("kernel"), without=OF_META), None, least=100)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("hashed", "kernel_map"),
        ("sets", "explicit"),
        ("trees", "explicit"),
        ("combinations", "explicit"),
    ],
)
def test_values_of_other_kinds(kind: str, name: str) -> None:
    check(damaged_meta(stored(kind), name), None, least=20)


ARRAYS = [
    ("kernel", SUPPORT),
    ("kernel", WEIGHTS),
    ("kernel", COMBINER_WEIGHTS),
    ("kernel", EXAMPLES),
    ("hashed", KERNEL_MAP),
    ("sets", EXPLICIT),
    ("trees", EXPLICIT),
    ("combinations", EXPLICIT),
]


@pytest.mark.parametrize(("kind", "name"), ARRAYS)
def test_arrays(kind: str, name: str) -> None:
    own = EXAMPLES if name == EXAMPLES else name
    check(damaged_arrays(stored(kind), name), own if name != SUPPORT else None, least=10)


def test_schema() -> None:
    # Another number of values or properties is found out by the arrays.
    check(damaged_msgpack(stored("kernel"), SCHEMA), None, least=50)


@pytest.mark.parametrize(("kind", "name"), [*ARRAYS, ("kernel", SCHEMA), ("kernel", META)])
def test_contents(kind: str, name: str) -> None:
    files = stored(kind)
    check(({**files, name: content} for content in damaged_contents(files[name])), name, least=9)


@pytest.mark.parametrize(("kind", "name"), [*ARRAYS, ("kernel", SCHEMA)])
def test_missing_files(kind: str, name: str) -> None:
    files = {other: content for other, content in stored(kind).items() if other != name}
    check([files], name, least=int(name != EXAMPLES))


def test_a_directory_is_named_with_the_file(tmp_path: Path) -> None:
    place = tmp_path / "model"
    kernel().to_disk(place)
    (place / SUPPORT).write_bytes(b"no more")
    with pytest.raises(ModelError) as caught:
        Reranker.from_disk(place)
    assert str(caught.value) == (
        f"{place}: {SUPPORT} is damaged or incomplete (no whole .npz file of plain arrays); train "
        "it again"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda meta: meta["calibration"]["scales"].pop("fair"),
            "the sources of calibration are of ['combiner', 'good', 'poor'], expected ['combiner', "
            "'fair', 'good', 'poor']",
        ),
        (
            lambda meta: meta["calibration"]["scales"].update(other=1.0),
            "the sources of calibration are of",
        ),
        (
            lambda meta: meta["cascade"].update(
                quick=["good", "other"], scales={"good": 1.0, "other": 1.0}
            ),
            "cascade.quick is ['good', 'other'], expected some of ['fair', 'good', 'poor'], not "
            "all",
        ),
        (
            lambda meta: meta["cascade"].update(
                quick=["good", "fair", "poor"], scales={"good": 1.0, "fair": 1.0, "poor": 1.0}
            ),
            "cascade.quick is ['good', 'fair', 'poor'], expected some of",
        ),
        (
            lambda meta: meta["cascade"].update(quick=[]),
            "cascade.quick is [], expected some names, each once",
        ),
        (
            lambda meta: meta["cascade"].update(quick=["good", "good"]),
            "cascade.quick is ['good', 'good'], expected some names, each once",
        ),
        (
            lambda meta: meta["cascade"]["scales"].pop("fair"),
            "cascade.scales are of ['good'], expected ['fair', 'good']",
        ),
        (
            lambda meta: meta["cascade"]["scales"].update(fair=0),
            "'fair' of cascade.scales is 0, expected a positive number",
        ),
        (
            lambda meta: meta["cascade"]["limits"].update(fast=1.5),
            "'fast' of cascade.limits is 1.5, expected 0 to 1",
        ),
        (
            lambda meta: meta["cascade"]["limits"].update(balanced=0.6),
            "cascade.limits are {'balanced': 0.6, 'fast': 0.5}, expected them to rise",
        ),
        (
            lambda meta: meta["cascade"]["limits"].pop("fast"),
            "cascade.limits are of ['balanced'], expected ['balanced', 'fast']",
        ),
        (
            lambda meta: meta["cascade"]["risk"].update(bias="low"),
            "cascade.risk.bias is 'low', expected a number",
        ),
        (
            lambda meta: meta["cascade"]["risk"]["weights"].pop("margin"),
            "features of cascade.risk are ['words', ",
        ),
        (
            lambda meta: meta["calibration"].update(final_scale="wide"),
            "calibration.final_scale is 'wide', expected a positive number",
        ),
        (
            lambda meta: meta["calibration"]["adjusted"]["head"].update(bias=None),
            "calibration.adjusted.head.bias is None, expected a number",
        ),
        (
            lambda meta: meta["calibration"]["informed"]["tree"]["weights"].update(parsers=-1.0),
            "calibration.informed has a negative factor, expected none",
        ),
        (
            lambda meta: meta["calibration"].update(relations=["nsubj", 1]),
            "calibration.relations has 1, expected texts",
        ),
        (
            lambda meta: meta["combination"]["betas"].update(good=1e200),
            "'good' of combination.betas is 1e+200, beyond all bounds",
        ),
        (lambda meta: meta["combiner"]["weights"].pop(), "combiner.weights are "),
        (lambda meta: meta["combiner"].pop("features"), "combiner lacks 'features'"),
        (lambda meta: meta.pop("combiner"), "'combiner' is missing, but there is combiner.npz"),
        (lambda meta: meta.pop("settings"), "meta.json lacks 'settings'"),
        (lambda meta: meta.pop("penalties"), "meta.json lacks 'penalties'"),
        (
            lambda meta: meta["penalties"].update({KINDS[0]: [1]}),
            f"{KINDS[0]!r} of penalties is [1], expected a positive number",
        ),
    ],
)
def test_the_value_is_named(change: Any, message: str) -> None:
    files = stored("kernel")
    meta = json.loads(files[META])
    change(meta)
    with pytest.raises(ModelError) as caught:
        Reranker.from_files({**files, META: as_json(meta)}, where="here")
    text = str(caught.value)
    assert text.startswith(f"here: {META} is damaged or incomplete ({message}")
    assert text.endswith("); train it again")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ModuleNotFoundError("No module named 'layers'"), "No module named 'layers'"),
        (MemoryError(), "more memory is needed than there is"),
        (TypeError("'NoneType' object is not iterable"), "a value is of another kind than"),
    ],
)
def test_what_the_machine_lacks_is_no_wrong_value(error: Exception, reason: str) -> None:
    with pytest.raises(DamagedFileError) as caught, reading(META):
        raise error
    assert caught.value.file == META
    assert caught.value.reason.startswith(reason)
