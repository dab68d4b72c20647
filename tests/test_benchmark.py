"""The benchmark: its loop and its made-up data, what it reports, and how it ends."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from trainings import list_files, lists_training
from typer.testing import CliRunner

from tk_spacy.cli.app import app
from tk_spacy.errors import UserError
from tk_spacy.features.encoder import ListEncoder
from tk_spacy.features.part_types import part_type
from tk_spacy.features.schema import Schema
from tk_spacy.kernels.support import Support
from tk_spacy.kernels.template_kernel import kernel_matrix
from tk_spacy.treebank.conllu import write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.workflows.benchmark import timing as timing_module
from tk_spacy.workflows.benchmark.data import Arcs, ListMaker, SupportArcs, arcs_of, build_support
from tk_spacy.workflows.benchmark.loop_scoring import add_column_scores, add_pair_scores
from tk_spacy.workflows.benchmark.timing import (
    ALL_ARCS,
    COLD,
    COLUMNS,
    LOOP,
    TOLERANCE,
    WARM,
    Compiled,
    Loop,
)
from tk_spacy.workflows.model import open_model

FAST = ("--sizes", "40,300", "--threads", "1,2", "--repeat", "2", "--words", "60")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing_module, "LOOP_SECONDS", 0.02)
    monkeypatch.setattr(timing_module, "ALL_ARCS_SECONDS", 0.02)


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    path = tmp_path / "train.conllu"
    write_conllu(path, generate(30, seed=1))
    return path


def invoke(*arguments: object):
    return CliRunner().invoke(app, ["benchmark", *map(str, arguments)])


@cache
def problem():
    """Arcs of made-up lists, a support and the groups of properties."""
    sentences = list(generate(40, seed=2))
    rng = np.random.default_rng(3)
    schema = Schema.fit(sentences)
    maker = ListMaker(sentences, 25, rng)
    encoder = ListEncoder(schema, kernel_parts=("arc",), manual_parts=())
    arcs = arcs_of([encoder.encode(sentence, maker(sentence)) for sentence in sentences[:8]])
    support = build_support(
        sentences[8:], schema, 1500, maker=maker, rng=rng, update=lambda done, total: None
    )
    return arcs, support, schema.property_groups()


def expected(arcs: Arcs, support, weights):
    nodes, parts = arcs.together()
    matrix = kernel_matrix(
        part_type("arc"), nodes, parts, support.nodes, support.columns[[0, 1, 2, 4]].T,
        skips=support.skips,
    )  # fmt: skip
    return matrix @ weights


def test_benchmark_lists_are_trees_with_the_wanted_arcs() -> None:
    sentences = list(generate(150, seed=4))
    maker = ListMaker(sentences, 25, np.random.default_rng(5))
    lists = [maker(sentence) for sentence in sentences]  # which raises unless all are trees
    for sentence, trees in zip(sentences, lists, strict=True):
        assert trees.heads[0].tolist() == sentence.heads.tolist()
        assert trees.deprels(0) == sentence.deprels
        assert 2 <= len(trees) <= 25
    encoder = ListEncoder(Schema.fit(sentences), kernel_parts=("arc",), manual_parts=())
    arcs = arcs_of([encoder.encode(*pair) for pair in zip(sentences, lists, strict=True)])
    assert len(arcs) / sum(map(len, sentences)) == pytest.approx(2.3, abs=0.2)


def test_benchmark_lists_are_those_of_the_seed() -> None:
    sentences = list(generate(5, seed=4))

    def made(seed: int) -> list[list[list[int]]]:
        maker = ListMaker(sentences, 5, np.random.default_rng(seed))
        return [maker(sentence).heads.tolist() for sentence in sentences]

    assert made(1) == made(1) != made(2)


def test_benchmark_support_has_distinct_arcs_and_smaller_ones_begin_it() -> None:
    _, support, _ = problem()
    assert len(support) == 1500
    assert len({tuple(column) for column in support.columns.T.tolist()}) == 1500
    assert len({tuple(row) for row in support.nodes.tolist()}) == len(support.nodes)
    assert 0 < support.paired < 1500  # so few sentences have no more
    small = support.first(100)
    assert (len(small), small.paired) == (100, 0)
    for row in (0, 4):
        assert (small.nodes[small.columns[row]] == support.nodes[support.columns[row, :100]]).all()
    assert (small.columns[1:4] == support.columns[1:4, :100]).all()


def test_benchmark_treebank_too_small_for_the_support() -> None:
    sentences = list(generate(1, seed=6))
    rng = np.random.default_rng(0)
    with pytest.raises(UserError, match="distinct arcs, 1,000,000 are asked for"):
        build_support(
            sentences, Schema.fit(sentences), 1_000_000, maker=ListMaker(sentences, 25, rng),
            rng=rng, update=lambda done, total: None,
        )  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("skips", [(0, 0), (1, 0), (1, 1)])
@pytest.mark.parametrize("by_columns", [False, True])
def test_benchmark_loop_equals_slow_twin(
    threads: int, skips: tuple[int, int], by_columns: bool
) -> None:
    arcs, support, _ = problem()
    support.skips[[0, 2]] = skips
    try:
        # Whole numbers: double precision adds them up exactly, in any order.
        weights = np.round(100 * support.weights)
        whole = type(support)(support.nodes, support.columns, weights, support.skips)
        scores = Loop(whole, by_columns=by_columns).score(arcs, threads)
        assert scores.tolist() == expected(arcs, support, weights).tolist()
        sums = Loop(whole, by_columns=by_columns).score(arcs, threads, absolute=True)
        assert sums.tolist() == expected(arcs, support, np.abs(weights)).tolist()
    finally:
        support.skips[[0, 2]] = 0


@pytest.mark.parametrize("size", [1, 7, 9, 1023, 1025])
@pytest.mark.parametrize("by_columns", [False, True])
def test_benchmark_loop_takes_any_number_of_parts(size: int, by_columns: bool) -> None:
    arcs, support, _ = problem()
    few = support.first(size)
    weights = np.ones(size)
    made = type(few)(few.nodes, few.columns, weights, few.skips)
    scores = Loop(made, by_columns=by_columns).score(arcs, 1)
    assert scores.tolist() == expected(arcs, few, weights).tolist()


@pytest.mark.parametrize("add_loop_scores", [add_pair_scores, add_column_scores])
def test_benchmark_loop_no_label_and_no_distance_equal_nothing(add_loop_scores) -> None:
    nodes = np.ones((1, 1), dtype=np.int32)
    edges = np.zeros((3, 1), dtype=np.int32)
    out = np.zeros(1)
    parts = np.zeros((1, 4), dtype=np.int32)
    add_loop_scores(nodes, parts, nodes, nodes, edges, np.ones(1), out, skips=(0, 0))
    assert out.tolist() == [1.0]


@pytest.mark.parametrize("add_loop_scores", [add_pair_scores, add_column_scores])
def test_benchmark_loop_refuses_shapes_that_do_not_fit(add_loop_scores) -> None:
    nodes = np.ones((1, 2), dtype=np.int32)
    three = np.ones((3, 3), dtype=np.int32)
    edges = np.zeros((3, 1), dtype=np.int32)
    parts = np.zeros((1, 4), dtype=np.int32)
    with pytest.raises(ValueError, match=r"heads, modifiers and edges have shapes"):
        add_loop_scores(nodes, parts, three, three, edges, np.ones(1), np.zeros(1), skips=(0, 0))
    rows = nodes if add_loop_scores is add_pair_scores else nodes.T.copy()
    with pytest.raises(ValueError, match="out has shape"):
        add_loop_scores(nodes, parts, rows, rows, edges, np.ones(1), np.zeros(2), skips=(0, 0))


def test_benchmark_compiled_form_agrees_cold_and_warm() -> None:
    arcs, support, groups = problem()
    loop, compiled = Loop(support, by_columns=True), Compiled(support, groups)
    tolerated = TOLERANCE * loop.score(arcs, 1, absolute=True)
    bare = compiled.parts.nbytes
    for _ in range(2):
        assert (np.abs(loop.score(arcs, 1) - compiled.score(arcs, 2)) <= tolerated).all()
    kept = compiled.parts.nbytes
    assert kept > bare > support.columns.nbytes // 4
    compiled.forget()
    assert compiled.parts.nbytes == bare
    assert (np.abs(loop.score(arcs, 1) - compiled.score(arcs, 1)) <= tolerated).all()
    assert compiled.parts.nbytes == kept


def test_benchmark_reports_sizes_threads_and_ways(treebank: Path) -> None:
    result = invoke(treebank, *FAST, "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown["agrees"] is True
    assert shown["lists_made_up"] is shown["support_made_up"] is True
    assert shown["arcs_per_word"] == shown["arcs"] / shown["words"]
    rows = shown["rows"]
    assert [(row["size"], row["threads"]) for row in rows] == [(40, 1), (40, 2), (300, 1), (300, 2)]
    for row in rows:
        assert row["agrees"] is True
        assert 0 <= row["largest_error"] <= 1
        assert row["compile_seconds"] > 0
        assert row["bytes"] > 0
        assert list(row["ratios"]) == ["loop, pair by pair", "loop, by columns"]
        for ratio in row["ratios"].values():
            assert 0 < ratio["range"][0] <= ratio["median"] <= ratio["range"][1]
        assert list(row["timings"]) == [LOOP, COLUMNS, COLD, WARM, ALL_ARCS]
        for timing in row["timings"].values():
            low, high = timing["tokens_per_second_range"]
            assert 0 < low <= timing["tokens_per_second"] <= high
            assert len(timing["seconds"]) == 2
            assert timing["us_per_arc"] > 0
        assert row["timings"][COLD]["arcs"] == shown["arcs"]
        assert row["timings"][LOOP]["arcs"] <= shown["arcs"]
    assert [(item["threads"], item["way"]) for item in shown["growth"]] == [
        (threads, way) for threads in (1, 2) for way in (LOOP, COLUMNS, COLD, WARM, ALL_ARCS)
    ]
    assert all(isinstance(item["exponent"], float) for item in shown["growth"])


def test_benchmark_tables_say_what_is_made_up(treebank: Path) -> None:
    result = invoke(treebank, "--sizes", 40, *FAST[2:], "-q")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("MADE UP") == 2
    for text in (LOOP, COLD, WARM, ALL_ARCS, "tokens/s", "times faster", "MiB", "exponent"):
        assert text in result.stdout
    assert result.stderr == ""


def test_benchmark_says_when_words_are_paired(treebank: Path) -> None:
    result = invoke(treebank, "--sizes", 4000, *FAST[2:], "--json", "-q")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    (paired,) = shown["paired_at_random"]
    assert 0 < paired < 4000
    assert any(f"{paired:,} are words of one sentence" in note for note in shown["notes"])


def test_benchmark_fails_where_scores_differ(
    treebank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tampered(*arguments, **options):
        add_pair_scores(*arguments, **options)
        arguments[6][0] *= 1.001

    monkeypatch.setattr(timing_module, "add_pair_scores", tampered)
    result = invoke(treebank, *FAST, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["agrees"] is False
    assert "Error: with 40 support parts and 1 threads loop and compiled form differ" in (
        result.stderr
    )


def test_benchmark_fails_where_scores_are_no_numbers(
    treebank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tampered(*arguments, **options):
        arguments[6][0] = np.nan

    monkeypatch.setattr(timing_module, "add_column_scores", tampered)
    result = invoke(treebank, *FAST, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["rows"][0]["largest_error"] is None


def test_benchmark_scores_lists_of_another_file(treebank: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.conllu"
    write_conllu(other, generate(3, seed=8))
    lists = tmp_path / "kbest.conllu"
    lists.write_text(
        "# tk_candidate_1 = p:2 2:det 0:root\n# tk_candidate_2 = p:1 0:root 1:dep\n"
        "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n",
        encoding="utf-8",
    )
    shown = json.loads(invoke(treebank, "--text", other, *FAST, "--json").stdout)
    assert shown["files"]["text"] == str(other)
    assert shown["lists_made_up"] is True
    shown = json.loads(invoke(treebank, "--candidates", lists, *FAST, "--json").stdout)
    assert (shown["words"], shown["arcs"], shown["lists_made_up"]) == (2, 4, False)
    assert not any("lists are MADE UP" in note for note in shown["notes"])


def test_benchmark_takes_a_models_support_as_it_is() -> None:
    model, lists = lists_training()[0], list_files()["dev"]
    size = len(open_model(model).reranker.support.types["arc"])
    result = invoke("--model", model, "--candidates", lists, *FAST[2:], "--json", "-q")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert [row["size"] for row in shown["rows"]] == [size, size]
    assert shown["lists_made_up"] is shown["support_made_up"] is False
    assert [item["exponent"] for item in shown["growth"]] == [None] * 10


def test_benchmark_refuses_a_support_without_arcs() -> None:
    empty = Support(np.zeros((1, 1), dtype=np.int32), {}, {})
    with pytest.raises(UserError, match="compares no arcs"):
        SupportArcs.of(empty)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sizes", "1000,many"], "--sizes is '1000,many', expected numbers like"),
        (["--sizes", "9" * 5000], "9', expected numbers like"),
        (["--sizes", "0"], "expected numbers from 1 to"),
        (["--sizes", "none"], "--sizes is 'none'"),
        (["--threads", "0"], "--threads is '0'"),
        (["--plot", "speed.txt"], "expected a name ending in .png or .svg"),
        (["--plot", "missing/speed.png"], "make its directory first"),
        (["--text", "a", "--candidates", "b"], "give one of them"),
        (["--model", "m", "--sizes", "10"], "--sizes has no effect with --model"),
    ],
)
def test_benchmark_refuses_options(treebank: Path, options: list[str], message: str) -> None:
    result = invoke(treebank, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_benchmark_needs_something_to_score() -> None:
    result = invoke("-q")
    assert result.exit_code == 2
    assert "no treebank" in result.stderr


def test_benchmark_unreadable_file(tmp_path: Path) -> None:
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\ta\n", encoding="utf-8")
    result = invoke(broken, *FAST, "-q")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {broken}:1: ")


def test_benchmark_plot_without_matplotlib(treebank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = invoke(treebank, "--plot", "speed.png", "--json")
    assert result.exit_code == 2
    assert "pip install 'tk-spacy[plot]'" in json.loads(result.stdout)["error"]


@pytest.mark.parametrize("name", ["speed.png", "speed.svg"])
def test_benchmark_plot_is_written(treebank: Path, tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    result = invoke(treebank, *FAST, "--plot", tmp_path / name)
    assert result.exit_code == 0, result.output
    start = (tmp_path / name).read_bytes()[:5]
    assert start in (b"\x89PNG\r", b"<?xml")
