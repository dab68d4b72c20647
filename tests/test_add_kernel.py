"""A kernel added to a parser: of which rerankers, with which gamma, how it is stored."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import srsly
from sampling_parsers import random_sentence, same, trained, treebank
from search_kernels import ARCS, EVERY, KINDS, random_support, with_kernel

from tk_spacy.errors import ModelError, UserError
from tk_spacy.parsers.sampling.kernel.model import ARC
from tk_spacy.parsers.sampling.kernel_tuning import tune_gamma
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.utils.serialization import from_npz, to_npz
from tk_spacy.workflows import add_kernel as command
from tk_spacy.workflows.add_kernel import search_kernel


def as_parsed(parser, sentences):
    """The sentences with the parser's own trees as gold."""
    parses = parser.parse(sentences, n_threads=1)
    return [
        replace(sentence, heads=heads, deprels=labels)
        for sentence, (heads, labels) in zip(sentences, parses, strict=True)
    ]


def reranker_of(schema, support):
    return SimpleNamespace(schema=schema, support=support, kernel_map=None, explicit=None)


# Storage


@pytest.mark.parametrize("types", **KINDS)
def test_parsers_with_a_kernel_are_stored(types, tmp_path):
    parser, test = with_kernel(types), treebank()[1]
    files = parser.to_files()
    parses = list(parser.parse(test))
    parser.to_disk(tmp_path / "model")
    for again in (
        SamplingParser.from_disk(tmp_path / "model"),
        SamplingParser.from_bytes(parser.to_bytes()),
        replace(SamplingParser.from_files(files), settings=parser.settings),
    ):
        assert again.to_files() == files
        assert again.about == parser.about
        assert again.kernel.pairs == types[1:]
        assert all(same(a, b) for a, b in zip(again.parse(test), parses, strict=True))
    meta = json.loads(files["meta.json"])
    assert meta["format_version"] == (2 if types == ARCS else 3)
    assert meta["kernel"].get("pairs", []) == list(types[1:])


def test_parsers_without_a_kernel_are_stored_as_before():
    files = replace(with_kernel(ARCS), kernel=None).to_files()
    assert sorted(files) == ["meta.json", "schema.msgpack", "weights.npz"]
    meta = json.loads(files["meta.json"])
    assert meta["format_version"] == 1
    assert "kernel" not in meta
    assert not {"kernel_scale", "kernel_epochs"} & set(meta["settings"])


@pytest.mark.parametrize("types", **KINDS)
def test_damaged_kernels_are_refused(types):
    files = with_kernel(types).to_files()
    meta = json.loads(files["meta.json"])
    arrays = from_npz(files["kernel.npz"])
    arrays["arc.columns"] = arrays["arc.columns"] + np.int32(10**6)
    strange = [{"gamma": gamma} for gamma in (0, -1, "x", float("nan"), float("inf"))]
    strange.append({"pairs": ["sibling", "tri-sibling"]})
    broken = [
        {n: content for n, content in files.items() if n != "kernel.npz"},
        {n: content for n, content in files.items() if n != "kernel.msgpack"},
        {**files, "kernel.npz": to_npz(arrays)},
        {**files, "kernel.msgpack": srsly.msgpack_dumps({})},
        *(
            {**files, "meta.json": json.dumps({**meta, "kernel": meta["kernel"] | told}).encode()}
            for told in strange
        ),
    ]
    for damaged in broken:
        with pytest.raises(ModelError, match="damaged"):
            SamplingParser.from_files(damaged)


# Tuning


@pytest.mark.parametrize(
    ("types", "factors"), [(ARCS, (0.0, 0.5, 1.0, 4.0)), (EVERY, (0.0, 1.0))], ids=KINDS["ids"]
)
def test_gamma_is_the_best_on_dev(types, factors):
    parser = with_kernel(types)
    dev = as_parsed(parser, treebank()[1])
    # The kernel's own gamma makes all right, if the unit is chosen so that it is in the grid.
    unit = tune_gamma(trained(), parser.kernel, dev, grid=(1.0,), n_threads=1)[1][0].gamma
    grid = [factor / unit for factor in factors]
    tuned, table = tune_gamma(trained(), parser.kernel, dev, grid=grid, n_threads=1)
    own = factors.index(1.0)
    assert [row.las for row in table].index(max(row.las for row in table)) == own
    assert table[own].las == pytest.approx(100.0, abs=0.5)
    assert table[0].las < 97.0
    assert tuned.kernel.gamma == pytest.approx(1.0)
    assert tuned.kernel.pairs == types[1:]


@pytest.mark.parametrize("types", **KINDS)
def test_each_gamma_is_judged_by_what_a_parser_with_it_parses(types):
    kernel, dev, told = with_kernel(types).kernel, treebank()[1][:15], []
    grid = (0.0, 0.5, 4.0)
    _, table = tune_gamma(
        trained(), kernel, dev, grid=grid, n_threads=1, progress=lambda *step: told.append(step)
    )
    for row in table:
        of_row = kernel.with_gamma(row.gamma) if row.gamma else None
        parses = replace(trained(), kernel=of_row).parse(dev, n_threads=1)
        right = labelled = 0
        for sentence, (heads, deprels) in zip(dev, parses, strict=True):
            for pair in zip(heads, deprels, sentence.heads, sentence.deprels, strict=True):
                right += pair[0] == pair[2]
                labelled += pair[0] == pair[2] and pair[1] == pair[3]
        words = sum(len(sentence) for sentence in dev)
        assert row.uas == pytest.approx(100 * right / words)
        assert row.las == pytest.approx(100 * labelled / words)
    assert len({(row.uas, row.las) for row in table}) == 3
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_there_is_no_kernel_where_none_helps():
    plain, kernel = trained(), with_kernel(ARCS).kernel
    dev = as_parsed(plain, treebank()[1])
    tuned, table = tune_gamma(plain, kernel, dev, grid=(0.0, 1.0), n_threads=1)
    assert table[0].uas == table[0].las == 100.0
    assert tuned.kernel is None


# The reranker's kernel, and the command


def test_parts_of_a_reranker_that_fit():
    kernel = with_kernel(EVERY).kernel
    reranker = reranker_of(kernel.schema, kernel.support)
    assert list(search_kernel(reranker).support.types) == list(EVERY)
    assert list(search_kernel(reranker, arcs_only=True).support.types) == [ARC]
    rng, three = np.random.default_rng(0), treebank()[0][:3]

    def other_of(*types, sentences=three):
        scales = dict.fromkeys(types, 1.0)
        support, _ = random_support(rng, kernel.schema, sentences, scales)
        return reranker_of(kernel.schema, support)

    for types, message in (
        (("sibling", "grandparent"), "compares no arcs; give a model trained with arc among its"),
        ((ARC, "tri-sibling"), r"compares tri-sibling parts, .* take its arcs alone \(arcs_only"),
    ):
        other = other_of(*types)
        with pytest.raises(UserError, match=message):
            search_kernel(other)
    assert search_kernel(other, arcs_only=True).pairs == ()
    # Without types of which nothing was learnt: a single word has no grandparent.
    other = other_of(*EVERY, sentences=[random_sentence(rng, 1)])
    assert list(other.support.types) == list(EVERY)
    assert list(search_kernel(other).support.types) == [ARC, "sibling"]
    # In whatever order a model has them.
    other = other_of("grandparent", ARC, "sibling")
    assert list(search_kernel(other).support.types) == list(EVERY)
    other.kernel_map = object()
    with pytest.raises(UserError, match=r"a hashed map in place of .* give the model that it was"):
        search_kernel(other)


def test_add_kernel_takes_all_parts_or_arcs_alone(tmp_path, monkeypatch):
    parser = with_kernel(EVERY)
    dev = as_parsed(parser, treebank()[1][:8])
    reranker = reranker_of(parser.kernel.schema, parser.kernel.support)
    monkeypatch.setattr(command, "open_model", lambda _: SimpleNamespace(reranker=reranker))
    monkeypatch.setattr(command, "load_treebank", lambda *_, **__: dev)
    trained().to_disk(tmp_path / "parser")
    trained(order=1).to_disk(tmp_path / "lower")
    for arcs_only in (False, True):
        told = command.add_kernel(
            tmp_path / "parser", tmp_path / "model", tmp_path / "dev.conllu", tmp_path / "new",
            arcs_only=arcs_only, overwrite=arcs_only, n_threads=1,
        )  # fmt: skip
        made = SamplingParser.from_disk(tmp_path / "new")
        assert told["gamma"] == made.kernel.gamma > 0
        assert told["kernel_parts"] == ([ARC] if arcs_only else list(EVERY))
        assert list(made.kernel.support.types) == told["kernel_parts"]
    where = (tmp_path / "lower", tmp_path / "model", tmp_path / "dev.conllu", tmp_path / "other")
    with pytest.raises(UserError, match=r"is of order 1, .* take its arcs alone"):
        command.add_kernel(*where, n_threads=1)
