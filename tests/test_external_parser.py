"""Trees of other parsers in files as parsers, and beside a model's input."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from named_pipes import pipe
from test_cli import invoke
from train_refusals import assert_train_refuses
from trainings import (
    Recorder,
    list_files,
    lists_training,
    same_trees,
    sampling_training,
    stripped,
    treebank,
)
from tree_file_trainings import file_options, files_training, mixed_training, noisy, single, some
from typer.testing import CliRunner

from tk_spacy.cli.app import app
from tk_spacy.cli.training import parser_files
from tk_spacy.errors import CandidateError, UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.parsers.external import ExternalParser
from tk_spacy.treebank.conllu import load_treebank, write_conllu
from tk_spacy.workflows.files.batch import rerank_files
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.pipeline import train_pipeline


def test_file_parser_reads_and_describes_its_files() -> None:
    parts = {name: (treebank()[name], single()[name]) for name in ("train", "dev")}
    parser = ExternalParser.read("mine", parts)
    assert (parser.name, parser.source, parser.scored, parser.given) == (
        "file:mine",
        "mine",
        False,
        True,
    )
    assert parser.about() == {
        "files": {"train": "train.conllu", "dev": "dev.conllu"}, "scored": False,
    }  # fmt: skip
    gold, found = load_treebank(treebank()["dev"]), load_treebank(single()["dev"])
    right = sum(
        int((a.heads == b.heads).sum()) for a, b in zip(gold, found, strict=True)
    )  # fmt: skip
    assert dict(parser.uas)["dev"] == pytest.approx(100 * right / sum(map(len, gold)))
    assert list(parser.notes()) == []
    flattering = replace(parser, uas=(("train", 90.0), ("dev", 85.0)))
    assert "its parser seems to know train's trees" in next(flattering.notes())


def test_file_parser_finds_a_fold_of_its_sentences(tmp_path: Path) -> None:
    parts = {name: (treebank()[name], single()[name]) for name in ("train", "dev")}
    source = ExternalParser.read("mine", parts).open(tmp_path, inventory=LabelInventory())
    wanted = load_treebank(single()["train"])[40:50] + load_treebank(single()["dev"])[3:5]
    data = load_treebank(treebank()["train"])[40:50] + load_treebank(treebank()["dev"])[3:5]
    found = list(source.candidates(data, k=3))
    assert [t.heads[0].tolist() for t in found] == [s.heads.tolist() for s in wanted]
    with pytest.raises(CandidateError, match="no trees of file:mine for this sentence"):
        list(source.candidates([some("unknown")], k=3))


def test_file_parser_refuses_files_that_do_not_fit(tmp_path: Path) -> None:
    files = treebank()
    for source, parts, message in (
        ("mine", {"train": single()["dev"]}, "dev.conllu:"),
        ("mine", {"train": single()["train"], "dev": list_files()["dev"]}, "must all be k-best"),
        ("mine", {"train": tmp_path / "none"}, "none"),
        ("mine", {"train": stripped(files["train"], tmp_path / "bare")}, "bare:"),
        ("a b", {"train": single()["train"]}, "'a b' cannot name a parser"),
        ("sampling", {"train": single()["train"]}, "'sampling' cannot name a parser"),
    ):
        given = {name: (files[name], path) for name, path in parts.items()}
        with pytest.raises(UserError, match=message):
            ExternalParser.read(source, given)


def test_training_with_files_beside_a_parser(tmp_path: Path) -> None:
    path, report = mixed_training()
    assert list(report.betas) == ["sampling", "single", "combiner"]
    assert set(report.run_time.parsers) == {"sampling"}
    assert open_model(path).external_parsers == {"single": False}
    model = open_model(path)
    assert model.reranker.about["sources"] == ["sampling", "single"]
    given = {"single": single()["test"]}
    (result,) = rerank_files(
        path, [treebank()["test"]], tmp_path / "out.conllu", parser_files=given, n_threads=1
    )
    scores = result.to_dict()["scores"]
    rows = report.parts["test"].scores
    assert scores["parser"]["las"] == pytest.approx(rows["base parser"].las)
    assert any(row.las == pytest.approx(scores["final"]["las"]) for row in list(rows.values())[1:])
    shown = invoke("info", path)
    assert "trees from train.conllu, dev.conllu, test.conllu (one tree a" in shown.stdout
    # Trees of another quality change what is chosen.
    gold = {"single": treebank()["test"]}
    (better,) = rerank_files(
        path, [treebank()["test"]], tmp_path / "better.conllu", parser_files=gold, n_threads=1
    )
    assert better.to_dict()["scores"]["final"]["las"] > scores["final"]["las"] + 3


def test_a_pipeline_says_that_trees_in_files_are_missing() -> None:
    from tk_spacy.spacy_io.conversion import doc_from_sentence

    nlp = spacy.load(mixed_training()[0])
    assert nlp.component_names == ["tk_parser", "tk_reranker"]
    sentence = load_treebank(treebank()["test"])[0]
    with pytest.warns(UserWarning, match="learnt from the trees of single too, which are missing"):
        doc = nlp(doc_from_sentence(nlp.vocab, sentence))
    assert doc.has_annotation("DEP")


def test_training_with_files_alone(tmp_path: Path) -> None:
    path, report = files_training()
    assert list(report.betas) == ["lists", "single", "combiner"]
    assert open_model(path).component is None
    assert open_model(path).external_parsers == {"lists": True, "single": False}
    given = {"lists": list_files()["test"], "single": single()["test"]}
    (result,) = rerank_files(
        path, [treebank()["test"]], tmp_path / "a.conllu", parser_files=given, n_threads=1
    )
    final = result.to_dict()["scores"]["final"]["las"]
    rows = report.parts["test"].scores
    assert any(row.las == pytest.approx(final) for row in list(rows.values())[1:])
    # The order in which the user names them does not count.
    turned = dict(reversed(given.items()))
    bare = stripped(treebank()["test"], tmp_path / "bare.conllu")
    rerank_files(path, [bare], tmp_path / "b.conllu", parser_files=turned, n_threads=2)
    assert same_trees(tmp_path / "a.conllu", tmp_path / "b.conllu")


def test_jackknife_with_files_is_taken_over_until_they_change(tmp_path: Path) -> None:
    files = {
        name: shutil.copy(path, tmp_path / f"{name}.conllu") for name, path in single().items()
    }
    options = file_options(
        tmp_path / "model", "sampling", "file:single", workdir=tmp_path / "work", processes=2,
        parser_files={"single": {name: Path(path) for name, path in files.items()}},
    )  # fmt: skip
    report = train_pipeline(options)
    # In two processes as in one.
    assert report.betas == mixed_training()[1].betas
    recorder = Recorder()
    train_pipeline(replace(options, overwrite=True), progress=recorder)
    assert any("lists of fold 1, 2" in note for note in recorder.notes)
    rng = random.Random(1)
    write_conllu(
        Path(files["train"]), [noisy(s, rng, 0.5) for s in load_treebank(treebank()["train"])]
    )
    recorder = Recorder()
    train_pipeline(replace(options, overwrite=True), progress=recorder)
    assert any("sampling parser of fold 1, 2" in note for note in recorder.notes)
    assert not any("lists of fold" in note for note in recorder.notes)


def test_rerank_wants_the_trees_that_the_model_learnt_from(tmp_path: Path) -> None:
    path, test = mixed_training()[0], treebank()["test"]
    for given, source, message in (
        (
            {},
            test,
            "of single, so give it those of the input: single=FILE (--parser-file)",
        ),
        ({"single": single()["test"], "more": test}, test, "trees of more (of other parsers: sing"),
        ({"single": list_files()["test"]}, test, "has k-best lists, but the model was trained"),
        ({"single": single()["dev"]}, test, "dev.conllu"),
        ({"single": single()["test"]}, list_files()["test"], "has candidates already"),
    ):
        arguments = [part for name, f in given.items() for part in ("--view-file", f"{name}={f}")]
        result = invoke("rerank", path, source, "-o", tmp_path / "out.conllu", *arguments)
        assert result.exit_code == 1
        assert message in result.stderr
        assert not (tmp_path / "out.conllu").exists()
    result = invoke("rerank", path, test, "-o", tmp_path / "o", "--view-file", "single")
    assert "--parser-file single: write NAME=FILE" in result.stderr
    trees = shutil.copy(single()["test"], tmp_path / "trees.conllu")
    result = invoke("rerank", path, test, "-o", trees, "--view-file", f"single={trees}")
    assert "the output would replace these trees" in result.stderr
    assert Path(trees).read_bytes() == single()["test"].read_bytes()


@pytest.mark.parametrize(
    ("training", "names"), [(mixed_training, ("single",)), (files_training, ("lists", "single"))]
)
def test_kbest_takes_the_trees_that_the_model_learnt_from(
    training: Any, names: tuple[str, ...], tmp_path: Path
) -> None:
    path, test = training()[0], treebank()["test"]
    files = {"single": single()["test"], "lists": list_files()["test"]}
    given = [part for name in names for part in ("--view-file", f"{name}={files[name]}")]
    lists = tmp_path / "lists.conllu"
    refused = invoke("kbest", path, test, "-o", lists, *given[2:])
    assert refused.exit_code == 1
    assert f"was trained with trees of {names[0]}, so give it those" in refused.stderr
    result = invoke("kbest", path, test, "-o", lists, *given, "--k", 6)
    assert result.exit_code == 0, result.output
    pairs = list(read_kbest(lists, inventory=LabelInventory()))
    assert set(names) <= {name.split("+")[0] for name in pairs[0][1].sources}
    for trees, own in zip(pairs, load_treebank(files["single"]), strict=True):
        row = trees[1].bases["single"]
        assert trees[1].heads[row].tolist() == own.heads.tolist()
    # As good as what `rerank` makes itself.
    for source, more, target in ((test, given, "a"), (lists, [], "b")):
        done = invoke("rerank", path, source, "-o", tmp_path / target, *more, "--threads", 1)
        assert done.exit_code == 0, done.output
    assert same_trees(tmp_path / "a", tmp_path / "b")


def test_kbest_refuses_trees_for_other_models(tmp_path: Path) -> None:
    given = ("--view-file", f"single={single()['test']}")
    test, out = treebank()["test"], tmp_path / "out.conllu"
    result = invoke("kbest", sampling_training()[0], test, "-o", out, *given)
    assert result.exit_code == 1
    assert "was not trained with trees of single (of other parsers: none)" in result.stderr
    result = invoke("kbest", lists_training()[0], test, "-o", out)
    assert "the model has no parser of its own" in result.stderr
    assert not out.exists()


def test_rerank_reads_all_from_pipes(tmp_path: Path) -> None:
    path, test, trees = mixed_training()[0], treebank()["test"], single()["test"]
    given = ("--threads", 1, "--parser-file")
    done = invoke("rerank", path, test, "-o", tmp_path / "a", *given, f"single={trees}")
    assert done.exit_code == 0, done.output
    with (
        pipe(tmp_path / "test", test.read_bytes()) as data,
        pipe(tmp_path / "trees", trees.read_bytes()) as piped,
    ):
        done = invoke("rerank", path, data, "-o", tmp_path / "b", *given, f"single={piped}")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
    arguments = ["rerank", str(path), str(test), "-o", "-", "-q", *map(str, given), "single=-"]
    done = CliRunner().invoke(app, arguments, input=trees.read_bytes())
    assert done.exit_code == 0, done.output
    assert done.stdout_bytes == (tmp_path / "a").read_bytes()


def test_file_parser_refuses_pipes_that_are_read_again_in_each_fold(tmp_path: Path) -> None:
    for part in ("train", "dev"):
        with pipe(tmp_path / part, single()[part].read_bytes()) as path:
            parts = {"train": single()["train"], "dev": single()["dev"], part: path}
            given = {name: (treebank()[name], trees) for name, trees in parts.items()}
            with pytest.raises(UserError, match="a pipe or device, which can be read only once"):
                ExternalParser.read("mine", given)


def test_rerank_a_directory_with_a_directory_of_trees(tmp_path: Path) -> None:
    path = files_training()[0]
    for name in ("in/sub", "lists/sub", "single/sub"):
        (tmp_path / name).mkdir(parents=True)
    for part, place in {"dev": "a.conllu", "test": "sub/b.conllu"}.items():
        shutil.copy(treebank()[part], tmp_path / "in" / place)
        shutil.copy(list_files()[part], tmp_path / "lists" / place)
        shutil.copy(single()[part], tmp_path / "single" / place)
    arguments = [
        part for n in ("lists", "single") for part in ("--view-file", f"{n}={tmp_path / n}")
    ]
    out = tmp_path / "out"
    result = invoke("rerank", path, tmp_path / "in", "-o", out, *arguments, "--jobs", 2)
    assert result.exit_code == 0, result.output
    given = {"lists": list_files()["test"], "single": single()["test"]}
    alone = tmp_path / "alone.conllu"
    rerank_files(path, [treebank()["test"]], alone, parser_files=given, n_threads=1)
    assert (out / "sub" / "b.conllu").read_bytes() == alone.read_bytes()
    arguments[1] = f"lists={list_files()['test']}"
    result = invoke("rerank", path, tmp_path / "in", "-o", tmp_path / "out2", *arguments)
    assert "one file of trees for several inputs; give a directory" in result.stderr


# Commands


def test_cli_parser_files(tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / f"{name}.conllu").touch()
    assert parser_files(["a.train=x=y", "b.dev=z", f"c={tmp_path}"]) == {
        "a": {"train": Path("x=y")},
        "b": {"dev": Path("z")},
        "c": {"train": tmp_path / "train.conllu", "dev": tmp_path / "dev.conllu"},
    }
    for wrong in ("a", "a=nowhere", "a.all=x", ".train=x", "a.train="):
        with pytest.raises(
            UserError, match=r"write NAME.PART=FILE, where PART is train, dev, test"
        ):
            parser_files([wrong])
    with pytest.raises(UserError, match=r"c\.dev is given twice"):
        parser_files([f"c={tmp_path}", "c.dev=x"])


def test_cli_train_with_a_directory_of_trees(tmp_path: Path) -> None:
    files = treebank()
    result = invoke(
        "train", files["train"], "--dev", files["dev"], "--test", files["test"],
        "-o", tmp_path / "m", "--views", "file:lists,file:single",
        "--view-file", f"single={single()['train'].parent}",
        *(x for n, f in list_files().items() for x in ("--view-file", f"lists.{n}={f}")),
        "--k", 6, "--iterations", 3, "--bits", 12, "--manual-parts", "arc", "-q",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert open_model(tmp_path / "m").external_parsers == {"lists": True, "single": False}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--views sampling,file:x",
            "the parser file:x needs its trees of train: give them as parsers.files.x.train",
        ),
        ("--views sampling --view-file x.dev=d", "add file:x to the parsers"),
        ("--views file:a:b --view-file a:b.train=d", "'a:b' cannot name a parser"),
        ("--views sampling,file:x --view-file x.test=d", "x.test would have no effect"),
        (
            "--views other",
            "choose from sampling, spacy, biaffine, udpipe, transition, projective, file:NAME",
        ),
        (
            "--views file:x --view-file x.train={train} --view-file x.dev={dev}",
            "file:x has one tree a sentence, which leaves no choice",
        ),
    ],
)
def test_cli_train_refuses_parser_files(tmp_path: Path, arguments: str, message: str) -> None:
    given = arguments.format(**single()).split()
    assert_train_refuses(tmp_path, tuple(given), message)


def test_plan_warns_of_trees_that_know_the_gold(tmp_path: Path) -> None:
    files = {**single(), "train": treebank()["train"]}
    options = file_options(
        tmp_path / "m", "sampling", "file:single", parser_files={"single": files}
    )  # fmt: skip
    assert any("file:single has 100.0 UAS on train" in note for note in make_plan(options).notes)
