"""`tk-spacy compress`: pruned and hashed models, and the curve."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_cli import invoke
from test_hashed_kernel import arcs, exact_scores, trained
from test_learning import ALL
from trainings import (
    list_files,
    lists_training,
    parsers_training,
    sampling_training,
    stripped,
    treebank,
)

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.features.part_types import part_type
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kernels.pruning import contributions, norms, prune, slot_form
from tk_spacy.kernels.template_kernel import kernel_matrix, slot_layout
from tk_spacy.reranker.compression import COMPRESSED, encode, hashed, pruned
from tk_spacy.reranker.interpolation import Combination
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.workflows.compression_curve import EXACT, measure, without_kernel
from tk_spacy.workflows.model import open_model


@pytest.mark.parametrize("skip", [(), ("h",)])
def test_pruning_norm_is_the_length_of_a_parts_term(skip) -> None:
    reranker, _ = trained(parts=ALL, skip=skip)
    support = reranker.support
    for name, found in norms(support).items():
        parts = slot_form(support.types[name], slot_layout(part_type(name)))[:40]
        matrix = kernel_matrix(
            part_type(name), support.nodes, parts, support.nodes, parts, skips=support.skips[name]
        )
        expected = np.abs(support.types[name].weights[:40]) * np.sqrt(np.diag(matrix))
        np.testing.assert_allclose(found[:40], expected)


def test_pruning_contribution_is_a_root_mean_square() -> None:
    reranker, pairs = trained()
    nodes, slots = arcs(reranker, pairs)
    parts = reranker.support.types["arc"]
    form = slot_form(parts, slot_layout(part_type("arc")))
    matrix = kernel_matrix(part_type("arc"), reranker.support.nodes, form, nodes, slots)
    expected = np.sqrt(((matrix * parts.weights[:, None]) ** 2).mean(axis=1))
    found = contributions(reranker.support, encode(reranker, pairs))["arc"]
    np.testing.assert_allclose(found, expected)


def test_pruning_keeps_the_parts_of_the_most_influence() -> None:
    reranker, pairs = trained(parts=ALL)
    support = reranker.support
    influence = norms(support)
    kept = prune(support, 100, influence)
    least = min(v.min() for v in norms(kept).values() if len(v))
    assert len(kept) == 100
    assert sum(int((v > least).sum()) for v in influence.values()) < 100
    for name, parts in kept.types.items():
        # Origins still name their part: their weights add up to its own.
        total = np.zeros(len(parts))
        np.add.at(total, parts.origins[:, 0], parts.origin_weights)
        np.testing.assert_allclose(total, parts.weights)
        assert set(parts.weights.tolist()) <= set(support.types[name].weights.tolist())
    with pytest.raises(ValueError, match="keep is -1"):
        prune(support, -1, influence)
    arc, _ = trained()
    nodes, slots = arcs(arc, pairs)
    whole, _ = exact_scores(arc.support, nodes, slots)
    errors = []
    for keep in (100, 200, 300):
        some, _ = exact_scores(pruned(arc, keep).support, nodes, slots)
        errors.append(np.abs(some - whole).mean())
    assert errors[0] > errors[1] > errors[2] > 0


def test_compression_says_what_was_done() -> None:
    reranker, pairs = trained()
    before = len(reranker.support)
    once = pruned(reranker, 100, lists=pairs)
    twice = hashed(once, 12)
    assert twice.about[COMPRESSED] == [
        {"keep": 100, "by": "contribution", "support_parts_before": {"arc": before}},
        {"hash_bits": 12, "support_parts_before": {"arc": 100}},
    ]


def test_compression_allows_for_the_spread_of_the_scores() -> None:
    reranker, pairs = trained()
    before = Combination({"r": 1.0}, {"r": 2.0}, 3.0)
    whole = replace(reranker, combination=before)
    made = pruned(whole, 30, lists=pairs)
    spread = [np.mean([s.std() for s in m.batch_scores(pairs)]) for m in (whole, made)]
    assert spread[1] != pytest.approx(spread[0], rel=0.05)
    assert made.combination is not None
    assert made.combination.reranker_scale == pytest.approx(3.0 * spread[1] / spread[0])
    assert (made.combination.betas, made.combination.scales) == (before.betas, before.scales)
    assert pruned(whole, 30).combination == before


def test_compression_refuses_what_cannot_be_compressed() -> None:
    reranker, _ = trained()
    size = len(reranker.support)
    for keep in (0, size):
        with pytest.raises(UserError, match=f"{keep:,} support parts to keep, of {size:,}"):
            pruned(reranker, keep)
    with pytest.raises(UserError, match="has a hashed map in place of its support parts"):
        pruned(hashed(reranker, 10), 5)
    with pytest.raises(UserError, match="no support parts: there is nothing to compress"):
        hashed(replace(reranker, support=prune(reranker.support, 0, norms(reranker.support))), 10)


def test_compression_without_the_kernel_scores_by_the_rest() -> None:
    reranker = open_model(lists_training()[0]).reranker
    bare = without_kernel(reranker)
    assert bare.settings.kernel_parts == ()
    assert not len(bare.support)
    assert bare.weights is not None


@pytest.mark.slow
def test_compression_curve_of_a_model_with_a_combiner() -> None:
    model = open_model(parsers_training()[0])
    reranker, inventory = model.reranker, LabelInventory()
    assert reranker.combiner is not None
    gold = load_treebank(treebank()["dev"])
    opened = model.open_parsers(inventory, n_threads=1)
    sources, k = opened.sources, opened.k
    lists = list(model.in_order(sources, n_threads=1).candidates(gold, k=k))
    pairs = list(zip(gold, lists, strict=True))
    (point,) = measure({"exact": (EXACT, 1, reranker)}, gold, pairs, repeat=1, n_threads=1)
    chosen = [
        sentence.with_tree(trees.heads[best], trees.deprels(best))
        for sentence, trees, best in reranker.choices(zip(gold, lists, strict=True), n_threads=1)
    ]
    scores = evaluate(gold, chosen)
    assert (point.final_uas, point.final_las) == (scores.uas, scores.las)
    # Influences are measured on the same trees.
    completed = [(sentence, reranker.completed(sentence, trees)) for sentence, trees in pairs]
    assert any(len(a) > len(b) for (_, a), (_, b) in zip(completed, pairs, strict=True))
    few = [pruned(reranker, 100, lists=given).to_files() for given in (pairs, completed)]
    assert few[0] == few[1]


@pytest.mark.parametrize("option", [("--keep", 50), ("--hash-bits", 16)])
def test_cli_compress_a_reranker(tmp_path: Path, option) -> None:
    out = tmp_path / "small"
    result = invoke("compress", lists_training()[0], "-o", out, *option, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    model = open_model(out)
    assert facts["after"]["support_parts"] == len(model.reranker.support)
    assert facts["after"]["hash_bits"] == (16 if option[0] == "--hash-bits" else None)
    assert model.report is None
    done = invoke("rerank", out, list_files()["test"], "-o", tmp_path / "a.conllu", "--threads", 1)
    assert done.exit_code == 0, done.output
    shown = invoke("info", out)
    assert shown.exit_code == 0
    assert "from support parts" in shown.stdout
    assert ("a hashed map of 16 bits" in shown.stdout) == (option[0] == "--hash-bits")


def test_cli_compress_a_pipeline(tmp_path: Path) -> None:
    import spacy

    from tk_spacy.spacy_io.conversion import doc_from_sentence

    whole, out = sampling_training()[0], tmp_path / "fast"
    result = invoke("compress", whole, "-o", out, "--hash-bits", 18)
    assert result.exit_code == 0, result.output
    assert {p.name for p in whole.iterdir()} - {p.name for p in out.iterdir()} == {
        "report.html",
        "report.json",
        "report.md",
        "training.cfg",
    }
    bare = stripped(treebank()["test"], tmp_path / "bare.conllu")
    done = invoke("rerank", out, bare, "-o", tmp_path / "a.conllu", "--threads", 1)
    assert done.exit_code == 0, done.output
    nlp = spacy.load(out)
    trees = load_treebank(tmp_path / "a.conllu")[:5]
    docs = list(nlp.pipe(doc_from_sentence(nlp.vocab, s) for s in trees))
    for sentence, doc in zip(trees, docs, strict=True):
        heads = [0 if t.head == t else t.head.i + 1 for t in doc]
        assert heads == sentence.heads.tolist()
    nlp.to_disk(tmp_path / "copy")
    assert open_model(tmp_path / "copy").reranker.kernel_map is not None
    # Nothing in the model that it was made of has changed.
    assert open_model(whole).reranker.kernel_map is None


def test_cli_compress_curve(tmp_path: Path) -> None:
    model, lists, dev = lists_training()[0], list_files()["dev"], treebank()["dev"]
    small = tmp_path / "small"
    assert invoke("compress", model, "-o", small, "--keep", 40).exit_code == 0
    result = invoke(
        "compress", model, "--curve", lists, "--dev", dev, "--keep", "20,40", "--hash-bits", "20",
        "--beside", small, "--repeat", 1, "--threads", 1, "--json", "--influence", lists,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    points = json.loads(result.stdout)["points"]
    assert [p["way"] for p in points] == [
        "exact", "pruned", "pruned", "hashed", "another model", "no kernel",
    ]  # fmt: skip
    assert points[0]["bytes"] > points[2]["bytes"] > points[1]["bytes"]
    assert all(p["tokens_per_second"] > 0 for p in points)
    # The exact form scores as the training's report says.
    scores = lists_training()[1].parts["dev"].scores
    assert points[0]["las"] == pytest.approx(scores["kernel reranker"].las)
    assert points[0]["final_uas"] == pytest.approx(scores["final system"].uas)
    table = invoke(
        "compress", model, "--curve", lists, "--dev", dev, "--hash-bits", "12", "--repeat", 1
    )
    assert "hashed to 12 bits" in table.stdout
    assert "pruned" not in table.stdout


def test_cli_compress_draws_a_curve(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / "curve.svg"
    result = invoke(
        "compress", lists_training()[0], "--curve", list_files()["dev"], "--dev",
        treebank()["dev"], "--keep", "20,40", "--repeat", 1, "--plot", plot, "-q",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "<svg" in plot.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "no --output"),
        (("-o", "x"), 2, "give either --keep or --hash-bits"),
        (("-o", "x", "--keep", 5, "--hash-bits", 12), 2, "give either"),
        (("-o", "x", "--keep", "5,6"), 2, "--keep has several numbers, which only --curve takes"),
        (("-o", "x", "--keep", "0"), 2, "expected numbers from 1"),
        (("-o", "x", "--hash-bits", "a"), 2, "expected numbers like"),
        (("-o", "x", "--hash-bits", 40), 1, "40 bits; a hashed map takes from 8 to 28"),
        (("-o", "x", "--keep", 999999), 1, "999,999 support parts to keep, of"),
        (("-o", "x", "--keep", 5, "--dev", "y"), 2, "belong to --curve"),
        (("-o", "x", "--curve", "y"), 2, "--curve writes no model"),
        (("--curve", "y"), 2, "--curve needs --dev"),
        (("-o", "x", "--hash-bits", 12, "--influence", "y"), 2, "it has no effect here"),
    ],
)
def test_cli_compress_refuses(tmp_path, monkeypatch, arguments, code, message) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("compress", lists_training()[0], *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())


def test_cli_compress_does_not_overwrite_unasked(tmp_path: Path) -> None:
    model = Path(shutil.copytree(lists_training()[0], tmp_path / "model"))
    out = tmp_path / "out"
    first = invoke("compress", model, "-o", out, "--keep", 30)
    assert first.exit_code == 0, first.output
    again = invoke("compress", model, "-o", out, "--keep", 20)
    assert again.exit_code == 1
    assert "exists already; replaced only on demand (--overwrite)" in again.stderr
    assert len(open_model(out).reranker.support) == 30
    assert invoke("compress", model, "-o", out, "--keep", 20, "--overwrite").exit_code == 0
    assert len(open_model(out).reranker.support) == 20
    itself = invoke("compress", model, "-o", model, "--keep", 20, "--overwrite")
    assert "the model itself" in itself.stderr


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("model/new", "model/new: lies in the model"),
        ("model/meta.json", "meta.json: lies in the model"),
        ("", "lies in the output"),
        ("-", "-: a model is a directory, which cannot go to standard output; give its name"),
        ("file", "file: a file stands where the model directory is to be written"),
    ],
)
def test_cli_compress_keeps_its_input_and_other_things(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, message: str
) -> None:
    around = tmp_path / "around"
    model = Path(shutil.copytree(lists_training()[0], around / "model"))
    shutil.copy(model / "meta.json", around)  # so that it looks like a model, too
    (around / "file").write_text("mine")
    before = {path: path.read_bytes() for path in around.rglob("*") if path.is_file()}
    monkeypatch.chdir(tmp_path)
    place = output if output == "-" else around / output
    result = invoke("compress", model, "-o", place, "--keep", 20, "--overwrite")
    assert result.exit_code == 1, result.output
    assert message in " ".join(result.stderr.split())
    assert before == {path: path.read_bytes() for path in around.rglob("*") if path.is_file()}
    assert list(tmp_path.iterdir()) == [around]
