"""Trees of other parsers in files: matched to sentences, as views, and beside a model's input."""

from __future__ import annotations

import functools
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from test_cli import invoke
from trainings import (
    QUICK_SAMPLING,
    Recorder,
    folder,
    list_files,
    lists_training,
    parser_options,
    same_trees,
    sampling_training,
    stripped,
    treebank,
)

from tk_spacy.batch import rerank_files
from tk_spacy.candidates import CandidateError, CandidateList, LabelInventory
from tk_spacy.cli.training import view_files
from tk_spacy.errors import UserError
from tk_spacy.kbest_reading import read_kbest
from tk_spacy.kbest_writing import write_kbest
from tk_spacy.models import open_model
from tk_spacy.pipeline import train_pipeline
from tk_spacy.plan import make_plan
from tk_spacy.report import TrainReport
from tk_spacy.tree_files import TreeFile, TreeFileSource, matched
from tk_spacy.treebank import Sentence, check_tree, load_treebank, write_conllu
from tk_spacy.views.file_view import FileView
from tk_spacy.views.merging import MergedSource


def noisy(sentence: Sentence, rng: random.Random, share: float) -> Sentence:
    """The sentence as a parser with many errors would parse it."""
    heads = sentence.heads.tolist()
    for word in range(len(heads)):
        if heads[word] and rng.random() < share:
            changed = [*heads[:word], rng.randint(1, len(heads)), *heads[word + 1 :]]
            heads = changed if check_tree(changed) is None else heads
    return sentence.with_tree(heads, sentence.deprels)


@functools.cache
def single() -> dict[str, Path]:
    """Files with one tree for each sentence of the treebank's parts."""
    place = folder() / "single"
    place.mkdir()
    rng = random.Random(5)
    for name, path in treebank().items():
        parsed = [noisy(sentence, rng, 0.25) for sentence in load_treebank(path)]
        write_conllu(place / f"{name}.conllu", parsed)
    return {name: place / f"{name}.conllu" for name in treebank()}


def file_options(output: Path, *views: str, **changes: Any) -> Any:
    """Options of a training with the views "single" and "lists" in files."""
    files = {"single": single(), "lists": list_files()}
    given = {name: files[name] for name in files if f"file:{name}" in views}
    own = {"views": views, "view_files": given, "max_steps": None}
    if "sampling" in views:
        own["sampling"] = QUICK_SAMPLING
    else:
        own |= {"folds": 5, "processes": None}
    return parser_options(output, **{**own, **changes})


@functools.cache
def mixed_training() -> tuple[Path, TrainReport]:
    """A model with a sampling parser and a view of single trees."""
    path = folder() / "mixed-model"
    return path, train_pipeline(file_options(path, "sampling", "file:single"))


@functools.cache
def files_training() -> tuple[Path, TrainReport]:
    """A model of files alone."""
    path = folder() / "files-model"
    return path, train_pipeline(file_options(path, "file:lists", "file:single"))


# Matching


def some(*words: str, heads: Sequence[int] | None = None, sent_id: str | None = None) -> Sentence:
    chain = list(range(len(words))) if heads is None else heads
    return Sentence.from_columns(
        forms=words, heads=chain, deprels=["root"] * len(words), sent_id=sent_id, single_root=False
    )


def taken(path: Path, data: Sequence[Sentence], inventory: LabelInventory | None = None) -> list:
    file = TreeFile(path, inventory=inventory or LabelInventory(), source="x")
    return [trees for _, trees in matched(file, data)]


def written(path: Path, *sentences: Sentence) -> Path:
    write_conllu(path, sentences)
    return path


def test_trees_are_matched_by_sent_id(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t", *(some("w", n, heads=[0, 1], sent_id=n) for n in "cab"),
    )  # fmt: skip
    lists = taken(path, [some("w", n, sent_id=n) for n in "abc"])
    assert [trees.heads.tolist() for trees in lists] == [[[0, 1]]] * 3
    assert [trees.sources for trees in lists] == [("x",)] * 3
    with pytest.raises(CandidateError, match="no trees for sentence z"):
        taken(path, [some("w", sent_id="z")])
    with pytest.raises(CandidateError, match="sentence a has 2 words here, but 1 in the data"):
        taken(path, [some("w", sent_id="a")])
    with pytest.raises(CandidateError, match="begins with 'w' here, but with 'x' in the data"):
        taken(path, [some("x", "y", sent_id="a")])


@pytest.mark.parametrize(("file_ids", "data_ids"), [("", "abc"), ("abc", ""), ("", "")])
def test_trees_are_matched_by_order_without_sent_ids(
    tmp_path: Path, file_ids: str, data_ids: str
) -> None:
    heads = [[0, 1], [2, 0], [0, 1]]
    ids = [list(given) or [None] * 3 for given in (file_ids, data_ids)]
    trees = [some("w", "v", heads=h, sent_id=i) for h, i in zip(heads, ids[0], strict=True)]
    path = written(tmp_path / "t", *trees)
    data = [some("w", "v", sent_id=i) for i in ids[1]]
    assert [t.heads[0].tolist() for t in taken(path, data)] == heads
    with pytest.raises(CandidateError, match="no trees for sentence"):
        taken(path, [*data, data[0]])
    with pytest.raises(CandidateError, match="more sentences than the data's 2"):
        taken(path, data[:2])


def test_trees_with_several_roots_are_repaired(tmp_path: Path) -> None:
    path = written(tmp_path / "t", some("a", "b", "c", heads=[0, 0, 2]))
    (trees,) = taken(path, [some("a", "b", "c")])
    assert trees.heads.tolist() == [[0, 1, 2]]
    assert trees.deprels(0) == ("root", "parataxis", "root")


# Scores


def test_single_trees_score_by_agreement(tmp_path: Path) -> None:
    inventory = LabelInventory()
    path = written(tmp_path / "t", some("a", "b", "c", heads=[0, 1, 1]))
    data = [some("a", "b", "c")]
    file = TreeFile(path, inventory=inventory, source="x")
    source = TreeFileSource("x", file.take, scored=file.scored)
    assert not file.scored
    assert [t.scores.tolist() for t in source.candidates(data, k=3)] == [[[0.0]]]
    other = CandidateList.build(
        [([0, 1, 2], ["root"] * 3, 1.0), ([0, 1, 1], ["root", "root", "obj"], 0.0),
         ([0, 1, 1], ["root"] * 3, -1.0)],
        inventory=inventory, sources=("y",),
    )  # fmt: skip
    assert source.score(data, [other])[0].tolist() == [[-1.0], [-1.0], [0.0]]


def test_lists_keep_their_scores_and_score_no_other_tree(tmp_path: Path) -> None:
    inventory = LabelInventory()
    data = [some("a", "b", "c", sent_id="1")]
    trees = [([0, 1, 2], -2.0), ([0, 1, 1], -3.5), ([2, 0, 2], -7.0)]
    own = CandidateList.build(
        [(heads, ["root"] * 3, (score, 9.0)) for heads, score in trees],
        inventory=inventory, sources=("some", "more"), base=1,
    )  # fmt: skip
    write_kbest(tmp_path / "t", [(data[0], own)])
    file = TreeFile(tmp_path / "t", inventory=inventory, source="x")
    source = TreeFileSource("x", file.take, scored=file.scored)
    (cut,) = source.candidates(data, k=2)
    assert cut.scores.tolist() == [[-2.0], [-3.5]]
    assert cut.base == 1
    assert cut.sources == ("x",)
    other = CandidateList.build(
        [([2, 0, 2], ["root"] * 3, 1.0), ([2, 0, 1], ["root"] * 3, 0.0)],
        inventory=inventory, sources=("y",),
    )  # fmt: skip
    # The third one, too, which did not fit into the list.
    np.testing.assert_array_equal(source.score(data, [other])[0], [[-7.0], [np.nan]])


def test_lists_of_files_merge_like_those_of_parsers() -> None:
    inventory = LabelInventory()
    sentences = load_treebank(treebank()["dev"])
    sources = []
    for name, files in (("lists", list_files()), ("single", single())):
        file = TreeFile(files["dev"], inventory=inventory, source=name)
        sources.append(TreeFileSource(name, file.take, scored=file.scored))
    single_trees = load_treebank(single()["dev"])
    lists = list(MergedSource(sources).candidates(sentences, k=10))
    plain = read_kbest(list_files()["dev"], inventory=inventory)
    for trees, sentence, (_, own) in zip(lists, single_trees, plain, strict=True):
        assert trees.sources == ("lists", "single")
        row = trees.bases["single"]
        assert trees.heads[row].tolist() == sentence.heads.tolist()
        assert trees.scores[row, 1] == 0.0
        assert not np.isnan(trees.scores[:, 1]).any()
        assert set(own.scores[:, 0]) == {s for s in trees.scores[:, 0] if not np.isnan(s)}


# Views


def test_file_view_reads_and_describes_its_files() -> None:
    parts = {name: (treebank()[name], single()[name]) for name in ("train", "dev")}
    view = FileView.read("mine", parts)
    assert (view.name, view.source, view.scored, view.given) == ("file:mine", "mine", False, True)
    assert view.about() == {
        "files": {"train": "train.conllu", "dev": "dev.conllu"}, "scored": False,
    }  # fmt: skip
    gold, found = load_treebank(treebank()["dev"]), load_treebank(single()["dev"])
    right = sum(
        int((a.heads == b.heads).sum()) for a, b in zip(gold, found, strict=True)
    )  # fmt: skip
    assert dict(view.uas)["dev"] == pytest.approx(100 * right / sum(map(len, gold)))
    assert list(view.notes()) == []
    flattering = replace(view, uas=(("train", 90.0), ("dev", 85.0)))
    assert "its parser seems to know train's trees" in next(flattering.notes())


def test_file_view_finds_a_fold_of_its_sentences(tmp_path: Path) -> None:
    parts = {name: (treebank()[name], single()[name]) for name in ("train", "dev")}
    source = FileView.read("mine", parts).open(tmp_path, inventory=LabelInventory())
    wanted = load_treebank(single()["train"])[40:50] + load_treebank(single()["dev"])[3:5]
    data = load_treebank(treebank()["train"])[40:50] + load_treebank(treebank()["dev"])[3:5]
    found = list(source.candidates(data, k=3))
    assert [t.heads[0].tolist() for t in found] == [s.heads.tolist() for s in wanted]
    with pytest.raises(CandidateError, match="no trees of file:mine for this sentence"):
        list(source.candidates([some("unknown")], k=3))


def test_file_view_refuses_files_that_do_not_fit(tmp_path: Path) -> None:
    files = treebank()
    for source, parts, message in (
        ("mine", {"train": single()["dev"]}, "dev.conllu:"),
        ("mine", {"train": single()["train"], "dev": list_files()["dev"]}, "must all be k-best"),
        ("mine", {"train": tmp_path / "none"}, "none"),
        ("mine", {"train": stripped(files["train"], tmp_path / "bare")}, "bare:"),
        ("a b", {"train": single()["train"]}, "'a b' cannot name a view"),
        ("sampling", {"train": single()["train"]}, "'sampling' cannot name a view"),
    ):
        given = {name: (files[name], path) for name, path in parts.items()}
        with pytest.raises(UserError, match=message):
            FileView.read(source, given)


def test_training_with_files_beside_a_parser(tmp_path: Path) -> None:
    path, report = mixed_training()
    assert list(report.betas) == ["sampling", "single", "combiner"]
    assert set(report.run_time.views) == {"sampling"}
    assert open_model(path).file_views == {"single": False}
    model = open_model(path)
    assert model.reranker.about["sources"] == ["sampling", "single"]
    given = {"single": single()["test"]}
    (result,) = rerank_files(
        path, [treebank()["test"]], tmp_path / "out.conllu", view_files=given, n_threads=1
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
        path, [treebank()["test"]], tmp_path / "better.conllu", view_files=gold, n_threads=1
    )
    assert better.to_dict()["scores"]["final"]["las"] > scores["final"]["las"] + 3


def test_a_pipeline_says_that_trees_in_files_are_missing() -> None:
    from tk_spacy.upstream.corpus import doc_from_sentence

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
    assert open_model(path).file_views == {"lists": True, "single": False}
    given = {"lists": list_files()["test"], "single": single()["test"]}
    (result,) = rerank_files(
        path, [treebank()["test"]], tmp_path / "a.conllu", view_files=given, n_threads=1
    )
    final = result.to_dict()["scores"]["final"]["las"]
    rows = report.parts["test"].scores
    assert any(row.las == pytest.approx(final) for row in list(rows.values())[1:])
    # The order in which the user names them does not count.
    turned = dict(reversed(given.items()))
    bare = stripped(treebank()["test"], tmp_path / "bare.conllu")
    rerank_files(path, [bare], tmp_path / "b.conllu", view_files=turned, n_threads=2)
    assert same_trees(tmp_path / "a.conllu", tmp_path / "b.conllu")


def test_jackknife_with_files_is_taken_over_until_they_change(tmp_path: Path) -> None:
    files = {
        name: shutil.copy(path, tmp_path / f"{name}.conllu") for name, path in single().items()
    }
    options = file_options(
        tmp_path / "model", "sampling", "file:single", workdir=tmp_path / "work", processes=2,
        view_files={"single": {name: Path(path) for name, path in files.items()}},
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
        ({}, test, "was trained with trees of single, so give it those of the input: --view-file"),
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
    assert "--view-file single: write NAME=FILE" in result.stderr
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
    rerank_files(path, [treebank()["test"]], alone, view_files=given, n_threads=1)
    assert (out / "sub" / "b.conllu").read_bytes() == alone.read_bytes()
    arguments[1] = f"lists={list_files()['test']}"
    result = invoke("rerank", path, tmp_path / "in", "-o", tmp_path / "out2", *arguments)
    assert "one file of trees for several inputs; give a directory" in result.stderr


# Commands


def test_cli_view_files(tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / f"{name}.conllu").touch()
    assert view_files(["a.train=x=y", "b.dev=z", f"c={tmp_path}"]) == {
        "a": {"train": Path("x=y")},
        "b": {"dev": Path("z")},
        "c": {"train": tmp_path / "train.conllu", "dev": tmp_path / "dev.conllu"},
    }
    for wrong in ("a", "a=nowhere", "a.all=x", ".train=x", "a.train="):
        with pytest.raises(
            UserError, match=r"write NAME.PART=FILE, where PART is train, dev, test"
        ):
            view_files([wrong])
    with pytest.raises(UserError, match=r"c\.dev is given twice"):
        view_files([f"c={tmp_path}", "c.dev=x"])


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
    assert open_model(tmp_path / "m").file_views == {"lists": True, "single": False}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--views sampling,file:x",
            "the view file:x needs its trees of train: give --view-file x.",
        ),
        ("--views sampling --view-file x.dev=d", "add file:x to the views"),
        ("--views file:a:b --view-file a:b.train=d", "'a:b' cannot name a view"),
        ("--views sampling,file:x --view-file x.test=d", "x.test would have no effect"),
        ("--views other", "choose from sampling, spacy, biaffine, udpipe, file:NAME"),
        (
            "--views file:x --view-file x.train={train} --view-file x.dev={dev}",
            "file:x has one tree a sentence, which leaves no choice",
        ),
    ],
)
def test_cli_train_refuses_view_files(tmp_path: Path, arguments: str, message: str) -> None:
    files = treebank()
    given = arguments.format(**single()).split()
    result = invoke("train", files["train"], "--dev", files["dev"], "-o", tmp_path / "m", *given)
    assert result.exit_code == 1
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_plan_warns_of_trees_that_know_the_gold(tmp_path: Path) -> None:
    files = {**single(), "train": treebank()["train"]}
    options = file_options(
        tmp_path / "m", "sampling", "file:single", view_files={"single": files}
    )  # fmt: skip
    assert any("file:single has 100.0 UAS on train" in note for note in make_plan(options).notes)
