"""What the main path refuses, in one line and before it trains anything."""

import os
import shutil
from pathlib import Path

import pytest
import spacy
from named_pipes import pipe
from spacy.vocab import Vocab
from tiny_spacy import tiny_config
from trainings import (
    list_files,
    lists_training,
    options,
    parser_options,
    treebank,
)

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.pipeline import train_pipeline

ALONE = {"parsers": ("sampling",)}


def test_pipeline_never_replaces_what_is_no_model(tmp_path: Path) -> None:
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter1.tex").write_text("It was a dark and stormy night.")
    with pytest.raises(UserError, match="holds something other than a model"):
        train_pipeline(options(precious, overwrite=True))
    assert [p.name for p in precious.iterdir()] == ["chapter1.tex"]


def test_pipeline_refuses_dev_that_is_train(tmp_path: Path) -> None:
    train = treebank()["train"]
    copy = tmp_path / "copy.conllu"
    shutil.copy(train, copy)
    for dev in (train, copy):
        with pytest.raises(UserError, match="dev is the same as train"):
            train_pipeline(options(tmp_path / "model", dev=dev))


def test_pipeline_refuses_lists_of_different_parsers(tmp_path: Path) -> None:
    other = tmp_path / "other.conllu"
    text = list_files()["dev"].read_text(encoding="utf-8").replace("= spacy:", "= turbo:")
    other.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="scores 'spacy', the candidates of dev 'turbo'"):
        train_pipeline(options(tmp_path / "model", dev_candidates=other))


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_pipeline_refuses_lists_without_alternatives(tmp_path: Path, part: str) -> None:
    pairs = read_kbest(list_files()[part], inventory=LabelInventory(), k=1)
    write_kbest(tmp_path / "single.conllu", pairs)
    option = "candidates" if part == "train" else f"{part}_candidates"
    wanted = options(tmp_path / "model", **{option: tmp_path / "single.conllu"})
    with pytest.raises(UserError, match=r"single\.conllu: no list has more than one tree, so the"):
        make_plan(wanted)


def test_pipeline_reads_lists_from_pipes(tmp_path: Path) -> None:
    files = list_files()
    with (
        pipe(tmp_path / "train", files["train"].read_bytes()) as train,
        pipe(tmp_path / "dev", files["dev"].read_bytes()) as dev,
    ):
        plan = make_plan(options(tmp_path / "model", candidates=train, dev_candidates=dev))
    for name in ("train", "dev"):
        read = read_kbest(files[name], inventory=LabelInventory())
        lists = plan.parts[name].lists
        assert lists is not None
        assert [t.scores.tolist() for t in lists] == [t.scores.tolist() for _, t in read]


def test_pipeline_refuses_lists_that_lack_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no candidates for sentence synthetic-dev-1"):
        train_pipeline(options(tmp_path / "model", dev_candidates=list_files()["test"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 1}, "k is 1"),
        ({"folds": 1}, "folds is 1"),
        ({"search": "deep"}, "search is 'deep'; choose from discrepancy, beam, both"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**32}, "it must be from 0 to 4294967295"),
        (
            {"parsers": ("spacy",), "spacy_pipeline": "some_model", "max_steps": 5},
            "none is trained",
        ),
        ({"parsers": ("turbo",)}, "unknown parser 'turbo'; choose from sampling, spacy"),
        ({"parsers": ()}, "parsers are none"),
        (
            {**ALONE, "spacy_pipeline": "some_model"},
            "a spaCy pipeline concerns the spacy parser only",
        ),
        ({**ALONE, "config": Path("some.cfg")}, "a config concerns the spacy parser only"),
        (
            {**ALONE, "max_steps": 5},
            "max_steps concerns the spacy parser only, but the parsers are sa",
        ),
        ({**ALONE, "backward": False}, "no backward twin concerns the spacy parser only"),
        ({**ALONE, "search": "beam"}, "search by beam concerns the spacy parser only"),
        (
            {"parsers": ("spacy",), "sampling": {"order": 2}},
            "order concerns the sampling parser only",
        ),
        ({"test": None}, "no test treebank"),
        (
            {"parsers": ("spacy",)},
            "parsers would have no effect: candidates are given for all parts",
        ),
        ({"biaffine": {"epochs": 3}}, "epochs would have no effect: candidates are given for all"),
        ({"folds": 3}, "folds would have no effect: .* no parser is trained or asked; leave it"),
        ({"processes": 1}, "processes would have no effect"),
        ({"asked": frozenset({"output", "parsers"})}, "parsers would have no effect"),
        (
            {"candidates": None, "parsers": ("spacy",), "spacy_pipeline": "m", "folds": 3},
            "is given, so no",
        ),
        ({"dev_candidates": None, "folds": 3}, "for train, so there is no jackknife"),
        ({"parsers": ("spacy",), "spacy_pipeline": "m", "folds": 3}, "folds would have no effect"),
        (
            {"parsers": ("spacy",), "spacy_pipeline": "m", "backward": False},
            "backward would have no",
        ),
        (
            {"parsers": ("sampling", "spacy"), "spacy_pipeline": "m"},
            "the sampling parser cannot be used",
        ),
    ],
)
def test_pipeline_refuses_options_that_make_no_sense(
    tmp_path: Path, changes: dict, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        options(tmp_path / "model", **changes)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_pipeline_refuses_an_output_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(UserError, match="cannot be written"):
        train_pipeline(options(tmp_path / "model"))


def test_pipeline_refuses_places_before_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for length in (256, 252):  # of the model, and of its work directory
        with pytest.raises(UserError, match=r"x+(\.work)?: cannot be written: File name too long;"):
            make_plan(options(tmp_path / ("x" * length)))
    (tmp_path / "mount").mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda path: path.name == "mount")
    with pytest.raises(UserError, match="a mount point cannot be replaced"):
        make_plan(options(tmp_path / "mount"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="a pipe or device"):
        make_plan(options(tmp_path / "model", train=tmp_path / "pipe"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mount", "pipe"]


def test_pipeline_refuses_a_work_directory_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="no work directory of a training"):
        train_pipeline(options(tmp_path / "model", workdir=tmp_path / "work"))


def test_pipeline_refuses_an_output_that_holds_its_input(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(lists_training()[0], model)
    lists = shutil.copy(list_files()["dev"], model / "dev.conllu")
    for changes in ({"dev_candidates": Path(lists)}, {"workdir": model / "work"}):
        with pytest.raises(UserError, match="lies in the output"):
            train_pipeline(options(model, overwrite=True, **changes))
    assert Path(lists).exists()


@pytest.mark.parametrize(("old", "new"), [("\tVERB\t", "\tV\t"), ("Number=Sing", "Singular")])
def test_pipeline_refuses_columns_that_spacy_cannot_take(
    tmp_path: Path, old: str, new: str
) -> None:
    # In test, which is parsed last of all: found first nevertheless.
    bad = tmp_path / "bad.conllu"
    text = treebank()["test"].read_text(encoding="utf-8").replace(old, new)
    bad.write_text(text, encoding="utf-8")
    try:
        for sentence in load_treebank(bad):
            doc_from_sentence(Vocab(), sentence)
    except ValueError:
        with pytest.raises(UserError, match=r"bad\.conllu:\d+: "):
            train_pipeline(parser_options(tmp_path / "model", test=bad))
        assert [path.name for path in tmp_path.iterdir()] == ["bad.conllu"]


def test_pipeline_refuses_too_many_folds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="90 sentences are too few for 46 folds"):
        train_pipeline(parser_options(tmp_path / "model", folds=46))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["no_such_package", "treebank"])
def test_pipeline_refuses_an_spacy_parser_that_is_none(tmp_path: Path, name: str) -> None:
    spacy_pipeline = str(treebank()["train"].parent) if name == "treebank" else name
    with pytest.raises(UserError, match=spacy_pipeline):
        train_pipeline(
            parser_options(tmp_path / "model", spacy_pipeline=spacy_pipeline, max_steps=None)
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["tk_reranker", "tk_parser"])
def test_pipeline_refuses_an_spacy_parser_with_what_it_would_add(tmp_path: Path, name: str) -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("parser").add_label("nsubj")
    nlp.initialize()
    nlp.add_pipe(name)
    nlp.to_disk(tmp_path / "given")
    wanted = parser_options(
        tmp_path / "model", spacy_pipeline=str(tmp_path / "given"), max_steps=None
    )
    with pytest.raises(UserError, match=f"given: has a component '{name}' already"):
        make_plan(wanted)


def test_pipeline_refuses_an_spacy_parser_without_parser(tmp_path: Path) -> None:
    spacy.blank("xx").to_disk(tmp_path / "blank")
    wanted = parser_options(
        tmp_path / "model", spacy_pipeline=str(tmp_path / "blank"), max_steps=None
    )
    with pytest.raises(UserError, match="the pipeline has no dependency parser; it has: nothing"):
        train_pipeline(wanted)


def test_pipeline_refuses_a_config_that_spacy_cannot_build(tmp_path: Path) -> None:
    config = tiny_config(tmp_path / "bad.cfg", components__parser__factory="no_such_factory")
    with pytest.raises(UserError, match=r"bad\.cfg: spaCy cannot build this config"):
        train_pipeline(parser_options(tmp_path / "model", config=config))
    assert [p.name for p in tmp_path.iterdir()] == ["bad.cfg"]
