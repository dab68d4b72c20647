"""`tk-spacy train` with a sampling parser, alone and beside a spaCy parser: models and commands."""

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
from test_cli import invoke
from train_refusals import assert_train_refuses
from trainings import (
    QUICK_SAMPLING,
    Recorder,
    list_files,
    parsers_training,
    same_trees,
    sampling_options,
    sampling_training,
    treebank,
)
from udpipe_parsers import needs_udpipe

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.report import COMBINER_ROW, SYSTEMS, VOTE, TrainReport, costs_table
from tk_spacy.kbest.candidates import SHORT_LIST, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.parsers.kinds import parser_line
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.parsers.sampling.parser import read_parser
from tk_spacy.parsers.sampling.spec import Counter
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.workflows.files.batch import parse_files, rerank_files
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train.pipeline import train_pipeline


def parsed_by_pipeline(path: Path, sentences: list[Sentence]) -> list[Sentence]:
    nlp = spacy.load(path)
    docs = nlp.pipe(doc_from_sentence(nlp.vocab, sentence) for sentence in sentences)
    return [sentence_from_doc(doc) for doc in docs]


def assert_consistent(path: Path, report: TrainReport, tmp_path: Path) -> None:
    """The report, `rerank` and the spaCy pipeline agree on test."""
    gold = load_treebank(treebank()["test"])
    scores = report.parts["test"].scores
    assert evaluate(gold, parsed_by_pipeline(path, gold)) == scores["final system"]
    (result,) = rerank_files(path, [treebank()["test"]], tmp_path / "out.conllu", n_threads=1)
    found = result.to_dict()["scores"]
    assert found["parser"]["las"] == scores["base parser"].las
    assert found["final"]["las"] == scores["final system"].las
    # The base parser's trees are the first of its lists, which are searched longer than one tree.
    k = spacy.load(path).get_pipe("tk_reranker").k
    lists = tmp_path / "lists.conllu"
    parse_files(path, [treebank()["test"]], lists, k=k, n_threads=1)
    if (
        len(report.run_time.parsers) == 1 or k > SHORT_LIST
    ):  # in company short lists are quicker made
        assert evaluate(gold, load_treebank(lists)) == scores["base parser"]
    (result,) = parse_files(path, [treebank()["test"]], tmp_path / "one.conllu", n_threads=1)
    trees = read_parser(path).parse(gold, n_threads=1)
    own = [sentence.with_tree(*tree) for sentence, tree in zip(gold, trees, strict=True)]
    assert result.to_dict()["scores"]["final"]["las"] == evaluate(gold, own).las


def test_sampling_model_needs_no_spacy_parser(tmp_path: Path) -> None:
    path, report = sampling_training()
    assert spacy.load(path).component_names == ["tk_parser", "tk_reranker"]
    alone = tuple(name for name in SYSTEMS if name not in (VOTE, COMBINER_ROW))
    assert tuple(report.parts["test"].scores) == alone
    assert list(report.betas) == ["sampling"]
    assert set(report.run_time.parsers) == {"sampling"}
    assert all(seconds > 0 for seconds in report.run_time.parsers["sampling"].values())
    about = open_model(path).reranker.about
    assert about["sources"] == ["sampling"]
    assert about["views"]["sampling"]["epochs"] == 2
    assert about["upstream"] == {"trained": True, "pipeline": None, "folds": 2}
    assert_consistent(path, report, tmp_path)


def test_sampling_model_takes_words_that_spacy_cannot(tmp_path: Path) -> None:
    # UPOS outside UD: a sampling parser does not mind, and `rerank` asks spaCy for nothing.
    path = tmp_path / "in.conllu"
    sentence = Sentence.from_columns(forms=["ba", "be"], upos=["Nn", "Vv"], sent_id="odd")
    write_conllu(path, [sentence])
    rerank_files(sampling_training()[0], [path], tmp_path / "out.conllu", n_threads=1)
    assert load_treebank(tmp_path / "out.conllu")[0].has_tree


def test_sampling_training_gives_the_same_model_again(tmp_path: Path) -> None:
    path, report = sampling_training()
    again = train_pipeline(sampling_options(tmp_path / "model", threads=2))
    assert again.parts["dev"].scores == report.parts["dev"].scores
    for name in ("tk_parser", "tk_reranker"):
        for file in (path / name).iterdir():
            assert (tmp_path / "model" / name / file.name).read_bytes() == file.read_bytes()


def test_sampling_training_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    wanted = sampling_options(tmp_path / "model", workdir=work)
    train_pipeline(wanted)
    with monkeypatch.context() as patch:  # nothing is trained a second time
        patch.setattr("tk_spacy.parsers.sampling.spec.train_sampling_parser", None)
        recorder = Recorder()
        train_pipeline(sampling_options(tmp_path / "again", workdir=work), progress=recorder)
    licence, estimated, *notes = recorder.notes
    assert licence.startswith("licence of the model: none")
    assert estimated.startswith("preset standard: about 10 seconds on 1 core")
    assert notes == [
        f"taken over from {work}: sampling parser of all of train",
        f"taken over from {work / 'folds'}: lists of fold 1, 2",
    ]
    changed = {**QUICK_SAMPLING, "epochs": 1}
    wanted = sampling_options(tmp_path / "new", workdir=work, sampling=changed)
    monkeypatch.setattr("tk_spacy.parsers.sampling.spec.train_sampling_parser", None)
    with pytest.raises(TypeError):  # other settings, another training
        train_pipeline(wanted)


@pytest.mark.slow
def test_both_parsers_in_one_model(tmp_path: Path) -> None:
    path, report = parsers_training()
    nlp = spacy.load(path)
    assert nlp.pipe_names == ["tk_parser", "tk_reranker"]
    assert nlp.component_names == ["parser", "tk_parser", "tk_reranker"]
    for part in report.parts.values():
        assert tuple(part.scores) == ("base parser", "spacy parser", *SYSTEMS[1:])
        assert [test.metric for test in part.vote_tests] == ["uas", "las"]
    assert list(report.betas) == ["sampling", "spacy", "combiner"]
    costs = {row[0]: row[1:] for row in costs_table(report).rows}
    assert costs.keys() == {"sampling parser", "spacy parser", "final system"}
    assert costs["spacy parser"][0] == report.parts["test"].scores["spacy parser"].las
    assert costs["final system"][-1] < min(costs[f"{n} parser"][-1] for n in ("sampling", "spacy"))
    assert set(report.run_time.parsers) == {"sampling", "spacy"}
    assert_consistent(path, report, tmp_path)
    # The sampling parser is the one that it is without a parser beside it.
    alone = sampling_training()[0]
    assert read_parser(path).to_bytes() == read_parser(alone).to_bytes()


@pytest.mark.slow
def test_two_sampling_parsers_in_one_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    report = train_pipeline(
        sampling_options(
            path, parsers=("sampling", "sampling:order=1:seed=3"), sampling={"epochs": 2}
        )
    )
    nlp = spacy.load(path)
    assert nlp.component_names == ["tk_parser", "tk_parser_order1_seed3", "tk_reranker"]
    assert nlp.disabled == ["tk_parser_order1_seed3"]
    name = "sampling-order1-seed3"
    assert list(report.betas) == ["sampling", name, "combiner"]
    assert {f"{name} parser", "plain vote", "arc combiner"} <= report.parts["test"].scores.keys()
    about = open_model(path).reranker.about["views"]
    assert [about[parser]["order"] for parser in ("sampling", name)] == [3, 1]
    assert_consistent(path, report, tmp_path)


@pytest.mark.slow
def test_both_parsers_in_kbest_files(tmp_path: Path) -> None:
    path, lists = parsers_training()[0], tmp_path / "k.conllu"
    result = invoke("kbest", path, treebank()["test"], "-o", lists, "--k", 6, "-q")
    assert result.exit_code == 0, result.output
    pairs = list(read_kbest(lists, inventory=LabelInventory()))
    assert {trees.sources for _, trees in pairs} == {("sampling", "spacy")}
    assert all("spacy" in trees.bases for _, trees in pairs)
    filled = np.mean([np.isfinite(trees.scores).mean() for _, trees in pairs])
    assert filled > 0.8
    rerank_files(path, [lists], tmp_path / "a.conllu", n_threads=1)
    rerank_files(path, [treebank()["test"]], tmp_path / "b.conllu", n_threads=1)
    assert same_trees(tmp_path / "a.conllu", tmp_path / "b.conllu")


def test_lists_of_one_set_of_parsers_are_refused_by_a_model_of_another(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="scores of spacy, but the model needs those of sampling"):
        rerank_files(sampling_training()[0], [list_files()["dev"]], tmp_path / "out", n_threads=1)
    wanted = sampling_options(tmp_path / "model", candidates=list_files()["train"])
    with pytest.raises(UserError, match="parsers have the scores 'sampling', the candidates of"):
        train_pipeline(wanted)
    text = list_files()["train"].read_text("utf-8")
    for name in ("sampling", "spacy+backward"):
        twin = tmp_path / "twin.conllu"
        twin.write_text(text.replace("= spacy:", f"= {name}:"), "utf-8")
        wanted = sampling_options(
            tmp_path / "model", parsers=("spacy",), sampling={}, backward=False, candidates=twin
        )
        with pytest.raises(UserError, match="have the scores 'spacy', the candidates of train '"):
            train_pipeline(wanted)


# Commands


def test_cli_kbest_and_info_of_a_sampling_model(tmp_path: Path) -> None:
    path = sampling_training()[0]
    result = invoke("kbest", path, treebank()["dev"], "-o", tmp_path / "k.conllu", "--json", "-q")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["trees_per_sentence"] > 2
    shown = invoke("info", path)
    assert shown.exit_code == 0, shown.output
    assert "sampling parser" in shown.stdout
    assert "trained, order 3, 2 epochs, 2 folds" in shown.stdout


def test_cli_names_the_model_whose_parser_is_gone(tmp_path: Path) -> None:
    nlp = spacy.load(sampling_training()[0])
    nlp.remove_pipe("tk_parser")
    nlp.to_disk(tmp_path / "model")
    out = tmp_path / "out.conllu"
    result = invoke("rerank", tmp_path / "model", treebank()["dev"], "-o", out)
    assert result.exit_code == 1
    message = f"Error: {tmp_path / 'model'}: tk_reranker: the pipeline has no component 'tk_parser'"
    assert message in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sampling:epochs=4", "trained, order 3, 4 epochs"),
        ("biaffine:epochs=4", "trained, 2 layers of width 128, 4 epochs"),
        pytest.param("udpipe", "UDPipe, trained, projective, 10 iterations", marks=needs_udpipe),
        ("spacy", "trained, config default, with right-to-left twin"),
    ],
)
def test_cli_info_knows_the_parsers_of_every_kind(name: str, expected: str) -> None:
    assert parser_line(name.split(":", maxsplit=1)[0], make_parsers([name])[0].about()) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--views", "turbo"), "unknown parser 'turbo'; choose from sampling, spacy"),
        (("--views", "none"), "parsers are none; name one or more different ones"),
        (
            ("--views", "sampling", "--no-backward"),
            "no backward twin concerns the spacy parser only",
        ),
        (("--views", "sampling", "--max-steps", 3), "max_steps concerns the spacy parser only"),
        (
            ("--views", "sampling", "--set", "parsers.spacy.config=a.cfg"),
            "config concerns the spacy parser only",
        ),
        (("--views", "spacy", "--order", 2), "order concerns the sampling parser only"),
        (("--upstream", "some", "--epochs", 2), "epochs concerns the sampling parser only"),
        (("--views", "sampling", "--upstream", "x"), "a spaCy pipeline concerns the spacy"),
    ],
)
def test_cli_train_options_of_a_parser_that_is_not_there(
    tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    assert_train_refuses(tmp_path, arguments, message)


def test_sampling_progress_is_one_count() -> None:
    from tk_spacy.parsers.sampling.training import EpochProgress

    seen: list[tuple[int, int]] = []
    count = Counter(lambda done, of: seen.append((done, of)))
    for stage, epochs in (("pruner", 2), ("parser", 3)):
        for epoch in range(1, epochs + 1):
            count(EpochProgress(stage, epoch, epochs, 10, 10))
    assert seen == [(10, 20), (20, 20), (30, 50), (40, 50), (50, 50)]
