"""The main path as a library: what is trained, measured, saved and refused."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import spacy
from spacy.vocab import Vocab
from tiny_upstream import tiny_config
from trainings import (
    SETTINGS,
    list_files,
    lists_training,
    options,
    parser_options,
    parser_training,
    treebank,
    write_lists,
)

from tk_spacy.candidates import LabelInventory
from tk_spacy.errors import UserError
from tk_spacy.evaluation import evaluate
from tk_spacy.kbest_io import read_kbest
from tk_spacy.models import REPORT_JSON, REPORT_MARKDOWN, open_model
from tk_spacy.pipeline import train_pipeline
from tk_spacy.plan import make_plan
from tk_spacy.progress import Progress
from tk_spacy.proposals import seen_notes
from tk_spacy.report import SYSTEMS, TrainReport
from tk_spacy.settings import Settings
from tk_spacy.treebank import load_treebank
from tk_spacy.upstream.corpus import doc_from_sentence, sentence_from_doc


class Recorder(Progress):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []

    def begin(self, stage: str) -> None:
        self.begun.append(stage)

    def end(self, stage: str) -> None:
        self.ended.append(stage)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def test_pipeline_reports_all_systems_of_table_2() -> None:
    _, report = lists_training()
    assert set(report.parts) == {"dev", "test"}
    for name, part in report.parts.items():
        assert tuple(part.scores) == SYSTEMS
        gold = load_treebank(treebank()[name])
        assert (part.sentences, part.words) == (len(gold), sum(map(len, gold)))
        oracle = part.scores["oracle"]
        assert all(row.uas <= oracle.uas for row in part.scores.values())
        assert all(row.las <= oracle.las for row in part.scores.values())
        assert [test.metric for test in part.tests] == ["uas", "las"]
        for test in part.tests:
            assert test.score_a == getattr(part.scores["base parser"], test.metric)
            assert test.score_b == getattr(part.scores["final system"], test.metric)


def test_pipeline_base_parser_row_is_the_lists_base_tree(tmp_path: Path) -> None:
    gold = load_treebank(treebank()["dev"])
    pairs = list(read_kbest(list_files()["dev"], inventory=LabelInventory()))
    trees = [s.with_tree(t.heads[t.base], t.deprels(t.base)) for s, t in pairs]
    assert lists_training()[1].parts["dev"].scores["base parser"] == evaluate(gold, trees)


def test_pipeline_reports_table_3_and_the_cost_of_the_command() -> None:
    path, report = lists_training()
    run = report.run_time
    train = load_treebank(treebank()["train"])
    assert run.sentences == len(train)
    assert run.mean_length == pytest.approx(sum(map(len, train)) / len(train))
    assert run.support_parts == len(open_model(path).reranker.support) > 0
    assert run.tokens_per_second > 0
    assert 0 < run.training_seconds < run.total_seconds
    assert sum(run.stages.values()) <= run.total_seconds
    assert run.peak_bytes > 10 * 2**20
    assert run.threads == 1


def test_pipeline_saves_the_report_beside_the_model() -> None:
    path, report = lists_training()
    saved = TrainReport.from_dict(json.loads((path / REPORT_JSON).read_text(encoding="utf-8")))
    assert saved.parts == report.parts
    assert open_model(path).report == saved
    text = (path / REPORT_MARKDOWN).read_text(encoding="utf-8")
    assert "| final system |" in text
    assert "UD_Synthetic test" in text


def test_pipeline_from_ready_lists_makes_a_reranker_without_parser() -> None:
    path, _ = lists_training()
    model = open_model(path)
    assert model.component is None
    about = model.reranker.about
    assert about["treebank"]["train"]["sentences"] == 90
    assert about["upstream"] == {"trained": False, "pipeline": None, "folds": None}
    assert (about["views"], about["sources"]) == ({}, ["spacy"])
    assert about["candidates"]["files"]["dev"] == "dev.kbest.conllu"
    assert not path.with_name(f"{path.name}.work").exists()


def test_pipeline_gives_the_same_model_again_and_for_any_number_of_threads(
    tmp_path: Path,
) -> None:
    path, report = lists_training()
    again = train_pipeline(options(tmp_path / "model", threads=2))
    assert again.parts["dev"].scores == report.parts["dev"].scores
    for file in path.iterdir():
        if not file.name.startswith("report"):
            assert (tmp_path / "model" / file.name).read_bytes() == file.read_bytes()


def test_pipeline_tells_its_progress(tmp_path: Path) -> None:
    recorder = Recorder()
    train_pipeline(options(tmp_path / "model"), progress=recorder)
    assert recorder.begun == recorder.ended
    assert recorder.begun[0] == "reading the treebank"
    assert "training the kernel reranker" in recorder.begun
    assert recorder.warnings == []


@pytest.mark.parametrize(
    ("settings", "row"),
    [
        (replace(SETTINGS, kernel_parts=()), "base reranker"),
        (replace(SETTINGS, manual_parts=()), "kernel reranker"),
    ],
)
def test_pipeline_with_one_reranker_has_its_row_only(
    tmp_path: Path, settings: Settings, row: str
) -> None:
    report = train_pipeline(options(tmp_path / "model", settings=settings))
    rows = ("base parser", "first of the list", row, "final system", "oracle")
    assert tuple(report.parts["dev"].scores) == rows


def test_pipeline_without_test_part(tmp_path: Path) -> None:
    report = train_pipeline(options(tmp_path / "model", test=None, test_candidates=None))
    assert set(report.parts) == {"dev"}


def test_pipeline_replaces_a_model_only_when_told(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(lists_training()[0], model)
    before = (model / "meta.json").read_bytes()
    with pytest.raises(UserError, match="exists already; use --overwrite"):
        train_pipeline(options(model))
    assert (model / "meta.json").read_bytes() == before
    train_pipeline(options(model, overwrite=True, settings=replace(SETTINGS, iterations=1)))
    assert open_model(model).reranker.settings.iterations == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"]


def test_pipeline_never_replaces_what_is_no_model(tmp_path: Path) -> None:
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter1.tex").write_text("It was a dark and stormy night.")
    with pytest.raises(UserError, match="holds something other than a model"):
        train_pipeline(options(precious, overwrite=True))
    assert [p.name for p in precious.iterdir()] == ["chapter1.tex"]


def test_pipeline_leaves_an_old_model_alone_when_training_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    shutil.copytree(lists_training()[0], model)

    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr("tk_spacy.pipeline._save_model", fail)
    with pytest.raises(RuntimeError, match="on fire"):
        train_pipeline(options(model, overwrite=True))
    assert open_model(model).reranker.settings == SETTINGS
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_pipeline_refuses_dev_that_is_train(tmp_path: Path) -> None:
    train = treebank()["train"]
    copy = tmp_path / "copy.conllu"
    shutil.copy(train, copy)
    for dev in (train, copy):
        with pytest.raises(UserError, match="dev is the same as train"):
            train_pipeline(options(tmp_path / "model", dev=dev))


def test_pipeline_warns_of_dev_sentences_in_train(tmp_path: Path) -> None:
    dev = tmp_path / "dev.conllu"
    first = treebank()["train"].read_text(encoding="utf-8").split("\n\n")[:10]
    dev.write_text("\n\n".join(first) + "\n\n", encoding="utf-8")
    lists = write_lists(tmp_path / "k.conllu", load_treebank(dev))
    recorder = Recorder()
    train_pipeline(options(tmp_path / "model", dev=dev, dev_candidates=lists), progress=recorder)
    assert recorder.warnings == [
        "100% of the sentences of dev stand in train too: its scores flatter"
    ]


def test_pipeline_refuses_lists_of_different_parsers(tmp_path: Path) -> None:
    other = tmp_path / "other.conllu"
    text = list_files()["dev"].read_text(encoding="utf-8").replace("= spacy:", "= turbo:")
    other.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="scores 'spacy', the candidates of dev 'turbo'"):
        train_pipeline(options(tmp_path / "model", dev_candidates=other))


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
        ({"views": ("spacy",), "upstream": "some_model", "max_steps": 5}, "none is trained"),
        ({"views": ("turbo",)}, "unknown view 'turbo'; choose from sampling, spacy"),
        ({"views": ()}, "views are none"),
        ({"upstream": "some_model"}, "an upstream pipeline concerns the spacy view only"),
        ({"config": Path("some.cfg")}, "a config concerns the spacy view only"),
        ({"max_steps": 5}, "max_steps concerns the spacy view only, but the views are sampling"),
        ({"backward": False}, "no backward twin concerns the spacy view only"),
        ({"views": ("spacy",), "sampling": {"order": 2}}, "order concerns the sampling view only"),
        ({"test": None}, "no test treebank"),
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


def test_pipeline_writes_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    train_pipeline(options(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "meta.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_pipeline_refuses_places_before_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"cannot be written: .*File name too long"):
        make_plan(options(tmp_path / ("x" * 250)))
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
def test_pipeline_refuses_an_upstream_that_is_none(tmp_path: Path, name: str) -> None:
    upstream = str(treebank()["train"].parent) if name == "treebank" else name
    with pytest.raises(UserError, match=upstream):
        train_pipeline(parser_options(tmp_path / "model", upstream=upstream, max_steps=None))
    assert list(tmp_path.iterdir()) == []


def test_pipeline_refuses_an_upstream_without_parser(tmp_path: Path) -> None:
    spacy.blank("xx").to_disk(tmp_path / "blank")
    wanted = parser_options(tmp_path / "model", upstream=str(tmp_path / "blank"), max_steps=None)
    with pytest.raises(UserError, match="the pipeline has no dependency parser; it has: nothing"):
        train_pipeline(wanted)


def test_pipeline_refuses_a_config_that_spacy_cannot_build(tmp_path: Path) -> None:
    config = tiny_config(tmp_path / "bad.cfg", components__parser__factory="no_such_factory")
    with pytest.raises(UserError, match=r"bad\.cfg: spaCy cannot build this config"):
        train_pipeline(parser_options(tmp_path / "model", config=config))
    assert [p.name for p in tmp_path.iterdir()] == ["bad.cfg"]


def test_pipeline_warns_of_a_parser_that_knows_train(tmp_path: Path) -> None:
    plan = make_plan(options(tmp_path / "model"))
    lists = {name: part.lists or [] for name, part in plan.parts.items()}
    assert list(seen_notes(plan, lists)) == []
    train = zip(plan.parts["train"].sentences, lists["train"], strict=True)
    lists["train"] = [replace(trees, base=trees.oracle(sentence)) for sentence, trees in train]
    lists["dev"] = [replace(trees, base=len(trees) - 1) for trees in lists["dev"]]
    (note,) = seen_notes(plan, lists)
    assert "it seems to know train's trees" in note


# With parsers


@pytest.mark.slow
def test_pipeline_ends_with_a_directory_that_spacy_loads() -> None:
    path, report = parser_training()
    nlp = spacy.load(path)
    assert nlp.pipe_names == ["parser", "tk_reranker"]
    gold = load_treebank(treebank()["test"])
    docs = nlp.pipe(doc_from_sentence(nlp.vocab, sentence) for sentence in gold)
    scores = evaluate(gold, [sentence_from_doc(doc) for doc in docs])
    assert scores == report.parts["test"].scores["final system"]
    assert not path.with_name(f"{path.name}.work").exists()


@pytest.mark.slow
def test_pipeline_resumes_from_its_work_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config(tmp_path / "tiny.cfg")
    wanted = parser_options(
        tmp_path / "model", config=config, backward=False, workdir=tmp_path / "work"
    )

    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tk_spacy.pipeline._train_rerankers", stop)
        with pytest.raises(KeyboardInterrupt):
            train_pipeline(wanted)
    assert not (tmp_path / "model").exists()
    with monkeypatch.context() as patch:  # nothing is trained a second time
        patch.setattr("tk_spacy.views.spacy_view.train_upstream", stop)
        train_pipeline(wanted)
    assert spacy.load(tmp_path / "model").pipe_names == ["parser", "tk_reranker"]
    # A named work directory stays, with lists that another training can take.
    lists = {name: tmp_path / "work" / f"{name}.kbest.conllu" for name in treebank()}
    ready = options(
        tmp_path / "from-lists",
        candidates=lists["train"],
        dev_candidates=lists["dev"],
        test_candidates=lists["test"],
    )
    train_pipeline(ready)
    a, b = (open_model(tmp_path / name).reranker for name in ("model", "from-lists"))
    assert a.support.to_arrays().keys() == b.support.to_arrays().keys()
    assert (a.weights == b.weights).all()


@pytest.mark.slow
def test_pipeline_with_a_given_upstream(tmp_path: Path) -> None:
    upstream = str(parser_training()[0])
    nlp = spacy.load(upstream)
    nlp.remove_pipe("tk_reranker")
    nlp.to_disk(tmp_path / "upstream")
    recorder = Recorder()
    wanted = parser_options(tmp_path / "model", upstream=str(tmp_path / "upstream"), max_steps=None)
    report = train_pipeline(wanted, progress=recorder)
    assert len(recorder.warnings) == 1
    assert "right only if it was not trained on train.conllu" in recorder.warnings[0]
    base = parser_training()[1].parts["dev"].scores["base parser"]
    assert report.parts["dev"].scores["base parser"] == base
    assert spacy.load(tmp_path / "model").pipe_names == ["parser", "tk_reranker"]
