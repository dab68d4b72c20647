"""The projective parser through `tk-spacy train`, as a component, and under `spacy train`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.cli.train import train as spacy_train
from test_cli import invoke
from test_kinds_together import assert_whole
from train_refusals import assert_train_refuses
from trainings import Recorder, folder, parser_options, treebank

from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.parsers.projective.parser import ProjectiveParser
from tk_spacy.parsers.projective.settings import ProjectiveSettings
from tk_spacy.parsers.projective.training import train_projective_parser
from tk_spacy.pipeline.tk_projective import TkProjective
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import load_treebank, write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.trees.crossing import crossing_arcs
from tk_spacy.workflows.train.pipeline import train_pipeline

QUICK = {"epochs": 2, "training_k": 3, "bits": 16, "label_bits": 16, "pruner_bits": 14}
SENTENCES = list(generate(60, seed=21))
NEW = list(generate(12, seed=22))
CONFIG = Path(__file__).parent.parent / "configs" / "sampling.cfg"
PARTS = ("train", "dev", "test")


# `tk-spacy train`


def projective_options(output: Path, *parsers: str, **changes: Any) -> Any:
    own = {"parser_settings": {"projective": QUICK}, "k": 10, "max_steps": None}
    return parser_options(output, parsers=parsers or ("projective",), **{**own, **changes})


@functools.cache
def training() -> tuple[Path, TrainReport]:
    """A model with a projective parser alone, and what its training kept."""
    path = folder() / "projective-model"
    return path, train_pipeline(projective_options(path, workdir=work()))


def work() -> Path:
    return folder() / "projective-work"


def kept_lists(path: Path) -> list[CandidateList]:
    return [trees for _, trees in read_kbest(path, inventory=LabelInventory())]


def test_projective_parser_in_a_model(tmp_path: Path) -> None:
    path, report = training()
    assert_whole(path, report, ("projective",), tmp_path)
    scores = report.parts["dev"].scores
    assert scores["base parser"].las < scores["oracle"].las


@pytest.mark.parametrize("part", PARTS)
def test_projective_parser_leaves_lists_of_all_parts(part: str) -> None:
    training()
    sentences = load_treebank(treebank()[part])
    lists = kept_lists(work() / f"{part}.kbest.conllu")
    assert len(lists) == len(sentences)
    assert np.mean([len(trees) for trees in lists]) > 8
    for sentence, trees in zip(sentences, lists, strict=True):
        assert trees.sources == ("projective",)
        assert 1 <= len(trees) <= 10
        assert trees.heads.shape[1] == len(sentence)
        assert (np.diff(trees.scores[:, 0]) <= 0).all()
        heads_and_labels = np.hstack([trees.heads, trees.labels])
        assert len(np.unique(heads_and_labels, axis=0)) == len(trees)


def test_projective_parser_s_lists_of_train_come_from_its_folds() -> None:
    """The whole parser knows train better than those that did not see the sentences."""
    training()
    train = load_treebank(treebank()["train"])
    right = [
        sum(int((t.heads[0] == s.heads).sum()) for s, t in zip(train, lists, strict=True))
        for lists in (
            kept_lists(work() / "train.kbest.conllu"),
            ProjectiveParser.from_disk(work() / "projective").kbest(
                train, k=10, inventory=LabelInventory()
            ),
        )
    ]
    assert right[0] < right[1]


def test_cli_kbest_gives_the_training_s_lists_again(tmp_path: Path) -> None:
    path, _ = training()
    out = tmp_path / "test.kbest.conllu"
    result = invoke("kbest", path, treebank()["test"], "-o", out, "--k", 10)
    assert result.exit_code == 0, result.output
    for a, b in zip(kept_lists(out), kept_lists(work() / "test.kbest.conllu"), strict=True):
        assert a.heads.tolist() == b.heads.tolist()
        assert [a.deprels(i) for i in range(len(a))] == [b.deprels(i) for i in range(len(b))]
        assert a.scores == pytest.approx(b.scores, abs=1e-4)


def test_projective_parser_is_resumed(tmp_path: Path) -> None:
    path, _ = training()
    progress = Recorder()
    new = tmp_path / "again"
    train_pipeline(projective_options(new, workdir=work()), progress=progress)
    assert any("projective parser of all of train" in note for note in progress.notes)
    for component in ("tk_projective", "tk_reranker"):
        for file in (path / component).iterdir():
            assert file.read_bytes() == (new / component / file.name).read_bytes()


def test_projective_parser_beside_another_one(tmp_path: Path) -> None:
    parsers = ("projective", "projective:batch=4:seed=1", "sampling")
    report = train_pipeline(
        projective_options(
            tmp_path / "model", *parsers,
            parser_settings={"projective": QUICK, "sampling": {"epochs": 1, "bits": 14}},
        )
    )  # fmt: skip
    assert_whole(tmp_path / "model", report, parsers, tmp_path)
    assert "tk_projective_batch4_seed1" in spacy.load(tmp_path / "model").component_names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--parsers", "projective:epochs=0"), "epochs is 0; it must be from 1 to 1000"),
        (("--parsers", "projective:order=2"), "unknown settings: order; choose from epochs,"),
        (
            ("--parsers", "projective", "--set", "parsers.projective.least=2"),
            "least is 2",
        ),
        (
            ("--parsers", "sampling", "--set", "parsers.projective.epochs=2"),
            "concerns the projective parser only",
        ),
    ],
)
def test_cli_train_refuses_projective_options(
    arguments: tuple[object, ...], message: str, tmp_path: Path
) -> None:
    assert_train_refuses(tmp_path, arguments, message)


def test_cli_train_refuses_marked_labels_before_any_work(tmp_path: Path) -> None:
    """As `tk-spacy projectivize` writes them: the parser makes trees projective by itself."""
    train = tmp_path / "train.conllu"
    sentences = load_treebank(treebank()["train"])
    marked = sentences[3].with_tree(sentences[3].heads, ("dep↑", *sentences[3].deprels[1:]))
    write_conllu(train, [*sentences[:3], marked, *sentences[4:]])
    result = invoke(
        "train", train, "--dev", treebank()["dev"], "-o", tmp_path / "m", "--parsers", "projective"
    )
    assert result.exit_code == 1
    line = load_treebank(train)[3].line
    assert f"{train}:{line}: DEPREL of word 1 is 'dep↑', but" in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == [train]


# `spacy train`


@functools.cache
def trained() -> ProjectiveParser:
    return train_projective_parser(SENTENCES, settings=ProjectiveSettings(**QUICK))


def test_projective_parser_keeps_how_many_heads_it_found_in_each_epoch() -> None:
    curve = trained().about["curve"]
    assert curve["of"] == "training words given their head, %"
    assert len(curve["values"]) == QUICK["epochs"]
    assert 0 < curve["values"][0] < curve["values"][-1] <= 100
    # Of one sentence read again and again all are found in the end, and before the first update
    # those that the search finds with weights of 0.
    one = train_projective_parser(
        SENTENCES[:1], settings=ProjectiveSettings(**{**QUICK, "epochs": 8, "cost": 0.0})
    )
    first, *_, last = one.about["curve"]["values"]
    words = len(SENTENCES[0])
    assert first * words / 100 == pytest.approx(round(first * words / 100), abs=0.01)
    assert first < last == 100


def test_projective_component_is_trained_by_initialize() -> None:
    nlp = spacy.blank("xx")
    component = nlp.add_pipe("tk_projective", config={"settings": QUICK})
    assert isinstance(component, TkProjective)
    examples = list(read_examples(SENTENCES, nlp))
    optimizer = nlp.initialize(lambda: examples)
    assert component.parser.to_bytes() == trained().to_bytes()
    assert nlp.update(examples[:2], sgd=optimizer) == {"tk_projective": 0.0}
    scores = nlp.evaluate(list(read_examples(NEW, nlp)))
    assert 0.4 < scores["dep_las"] <= scores["dep_uas"] <= 1


def test_projective_component_loads_a_model(tmp_path: Path) -> None:
    trained().to_disk(tmp_path / "parser")
    for settings in ({}, {"training_k": 3}):
        nlp = spacy.blank("xx")
        component = nlp.add_pipe("tk_projective", config={"settings": settings})
        component.initialize(list, model=tmp_path / "parser")
        assert component.to_bytes() == trained().to_bytes()
    other = spacy.blank("xx").add_pipe("tk_projective", config={"settings": {"max_heads": 2}})
    with pytest.raises(UserError, match="max_heads is 2, but the parser that is loaded was traine"):
        other.initialize(list, model=tmp_path / "parser")


def test_projective_component_mistakes() -> None:
    with pytest.raises(UserError, match="tk_projective: unknown settings: depth"):
        spacy.blank("xx").add_pipe("tk_projective", config={"settings": {"depth": 1}})
    untrained = spacy.blank("xx").add_pipe("tk_projective")
    with pytest.raises(UserError, match="tk_projective"):
        untrained.predict([])


def projective_config(path: Path) -> Path:
    """The config of the sampling parser and a reranker, with a projective parser instead."""
    text = CONFIG.read_text(encoding="utf-8").replace("tk_parser", "tk_projective")
    for old, new in (
        ('factory = "tk_projective"\nn_threads = null', 'factory = "tk_projective"'),
        ("order = 3\nepochs = 8", "\n".join(f"{name} = {value}" for name, value in QUICK.items())),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path


def test_projective_component_under_spacy_train(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_conllu(tmp_path / "train.conllu", SENTENCES)
    write_conllu(tmp_path / "dev.conllu", NEW)
    reranker = {"folds": 2, "processes": 1, "settings": {"bits": 12, "iterations": 2}}
    changes: dict[str, Any] = {
        f"initialize.components.tk_reranker.{name}": value for name, value in reranker.items()
    }
    changes |= {f"paths.{part}": str(tmp_path / f"{part}.conllu") for part in ("train", "dev")}
    changes["components.tk_reranker.k"] = 10
    config = projective_config(tmp_path / "projective.cfg")
    spacy_train(config, tmp_path / "out", overrides=changes)
    assert "DEP_LAS" in capsys.readouterr().out
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.pipe_names == ["tk_projective", "tk_reranker"]
    assert nlp.get_pipe("tk_projective").to_bytes() == trained().to_bytes()
    docs = list(nlp.pipe(doc_from_sentence(nlp.vocab, sentence) for sentence in NEW))
    for doc in docs:
        (record,) = doc._.tk_reranker
        assert 1 < record["n_candidates"] <= 10


def test_projective_component_sets_crossing_arcs() -> None:
    """What the labels tell of lifted arcs is undone before a Doc sees the tree."""
    (crossed,) = [s for s in generate(200, seed=31) if any(crossing_arcs(s.heads))][:1]
    nlp = spacy.blank("xx")
    component = nlp.add_pipe("tk_projective", config={"settings": {**QUICK, "epochs": 20}})
    component.initialize(lambda: read_examples([crossed] * 5, nlp))
    found = sentence_from_doc(component(doc_from_sentence(nlp.vocab, crossed)))
    assert found.heads.tolist() == crossed.heads.tolist()
    assert found.deprels == crossed.deprels
