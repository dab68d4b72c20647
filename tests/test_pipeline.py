"""The main path as a library: what is trained, measured and saved."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import spacy
from tiny_spacy import tiny_config
from trainings import (
    SETTINGS,
    Recorder,
    list_files,
    lists_training,
    options,
    parser_options,
    parser_training,
    treebank,
    write_lists,
)

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.report import COMBINER_ROW, SYSTEMS, VOTE, TrainReport
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.reranker.settings import Settings
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.workflows.model import REPORT_JSON, REPORT_MARKDOWN, open_model
from tk_spacy.workflows.train.candidate_lists import seen_notes
from tk_spacy.workflows.train.inputs import make_plan
from tk_spacy.workflows.train.pipeline import train_pipeline


def test_pipeline_reports_all_systems_of_table_2() -> None:
    _, report = lists_training()
    assert set(report.parts) == {"dev", "test"}
    for name, part in report.parts.items():
        # Of a single parser there is nothing to vote between.
        assert tuple(part.scores) == tuple(s for s in SYSTEMS if s not in (VOTE, COMBINER_ROW))
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
    scores = lists_training()[1].parts["dev"].scores
    assert scores["base parser"] == evaluate(gold, trees)
    first = [s.with_tree(t.heads[0], t.deprels(0)) for s, t in pairs]
    assert scores["first of the list"] == evaluate(gold, first)
    # The two differ, and from every other system.
    assert len({(row.uas, row.las) for row in scores.values()} - {(100.0, 100.0)}) >= 3
    assert scores["base parser"].las < scores["first of the list"].las


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
    # What the made-up treebank really has; no other.
    (warning,) = recorder.warnings
    assert "1 label that training lacks, parataxis, on 1 of 415 words" in warning


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
    with pytest.raises(UserError, match=r"exists already; replaced only on demand \(overwrite\)"):
        train_pipeline(options(model))
    assert (model / "meta.json").read_bytes() == before
    train_pipeline(options(model, overwrite=True, settings=replace(SETTINGS, iterations=1)))
    assert open_model(model).reranker.settings.iterations == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"]


def test_pipeline_leaves_an_old_model_alone_when_training_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    shutil.copytree(lists_training()[0], model)

    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr("tk_spacy.workflows.train.pipeline._save_model", fail)
    with pytest.raises(RuntimeError, match="on fire"):
        train_pipeline(options(model, overwrite=True))
    assert open_model(model).reranker.settings == SETTINGS
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


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


def test_pipeline_warns_of_attributes_that_it_leaves_out(tmp_path: Path) -> None:
    train = tmp_path / "train.conllu"
    feats = "|".join(f"A{i:03}=1" for i in range(300))
    text = treebank()["train"].read_text(encoding="utf-8")
    train.write_text(text.replace("Number=Sing", f"{feats}|Number=Sing", 1), encoding="utf-8")
    notes = make_plan(options(tmp_path / "model", train=train)).notes
    (note,) = [note for note in notes if note.startswith("FEATS have 3")]
    assert note.endswith("the 200 most frequent ones are used, the others are not")


def test_pipeline_writes_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    train_pipeline(options(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "meta.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


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
        patch.setattr("tk_spacy.workflows.train.pipeline._train_rerankers", stop)
        with pytest.raises(KeyboardInterrupt):
            train_pipeline(wanted)
    assert not (tmp_path / "model").exists()
    with monkeypatch.context() as patch:  # nothing is trained a second time
        patch.setattr("tk_spacy.parsers.spacy_transition.spec.train_spacy_parser", stop)
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
def test_pipeline_with_a_given_spacy_parser(tmp_path: Path) -> None:
    spacy_pipeline = str(parser_training()[0])
    nlp = spacy.load(spacy_pipeline)
    nlp.remove_pipe("tk_reranker")
    nlp.to_disk(tmp_path / "upstream")
    recorder = Recorder()
    wanted = parser_options(
        tmp_path / "model", spacy_pipeline=str(tmp_path / "upstream"), max_steps=None
    )
    report = train_pipeline(wanted, progress=recorder)
    # The first one is of the made-up dev, which has a label that train lacks.
    assert len(recorder.warnings) == 2
    assert "right only if it was not trained on train.conllu" in recorder.warnings[1]
    base = parser_training()[1].parts["dev"].scores["base parser"]
    assert report.parts["dev"].scores["base parser"] == base
    assert spacy.load(tmp_path / "model").pipe_names == ["parser", "tk_reranker"]
