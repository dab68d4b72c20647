"""Parsers of every kind in one model, twice and alone, with files, ready lists, and resumed."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from test_cli import invoke
from tiny_spacy import tiny_config
from trainings import Recorder, folder, parser_options, treebank
from tree_file_trainings import single

from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.workflows.files.batch import parse_files, rerank_files
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train.pipeline import train_pipeline

HAS_UDPIPE = importlib.util.find_spec("ufal") is not None
needs_udpipe = pytest.mark.skipif(not HAS_UDPIPE, reason="ufal.udpipe is not installed")

TINY: dict[str, dict[str, Any]] = {
    "sampling": {"epochs": 1, "order": 2, "pruner_epochs": 1, "bits": 14, "pruner_bits": 12},
    # Enough to learn that the root's label is root: a Doc can hold no other.
    "biaffine": {
        "epochs": 12, "steps": 0, "batch": 200, "rate": 0.02, "word_width": 16, "tag_width": 16,
        "width": 16, "layers": 1, "arc_width": 16, "label_width": 8,
    },
    "udpipe": {"iterations": 1, "hidden_layer": 10, "embedding_form": 5},
}  # fmt: skip
TWICE = (
    "biaffine", "sampling", "spacy", "biaffine:seed=1", "sampling:order=1",
    "spacy:seed=1:backward=true",
    *(("udpipe", "udpipe:seed=1") if HAS_UDPIPE else ()),
)  # fmt: skip


def tiny_options(output: Path, *parsers: str, **changes: Any) -> Any:
    """Options of a training with the least settings of every parser that is asked for."""
    asked = {name.split(":")[0] for name in parsers}
    own: dict[str, Any] = {"parser_settings": {n: TINY[n] for n in asked & TINY.keys()}}
    if "spacy" in asked:
        own |= {"config": tiny_config(folder() / "tiny.cfg"), "backward": False, "max_steps": 5}
    else:
        own["max_steps"] = None
    if "file:single" in parsers:
        own["parser_files"] = {"single": single()}
    return parser_options(output, parsers=parsers, **{**own, **changes})


@functools.cache
def twice_training() -> tuple[Path, TrainReport]:
    """A model with two parsers of each kind, and what its training kept."""
    path = folder() / "twice-model"
    return path, train_pipeline(tiny_options(path, *TWICE, workdir=folder() / "twice-work"))


def names(parsers: tuple[str, ...]) -> list[str]:
    return [
        name.replace(":", "-").replace("=true", "True").replace("=false", "False").replace("=", "")
        for name in parsers
    ]


def scores(parsers: tuple[str, ...]) -> list[str]:
    """What their scores are called: a spaCy parser with its twin has three."""
    found: list[str] = []
    for name, text in zip(names(parsers), parsers, strict=True):
        has_twin = "backward=true" in text
        found += [f"{name}+backward", name, f"{name}-backward"] if has_twin else [name]
    return found


def assert_whole(path: Path, report: TrainReport, parsers: tuple[str, ...], place: Path) -> None:
    """The model knows its parsers by name, and gives the report's trees in files and Docs."""
    own = [name for name in parsers if not name.startswith("file:")]
    told = open_model(path).reranker.provenance.sources
    assert set(told) == {name.replace("file-", "") for name in scores(parsers)}
    assert list(open_model(path).reranker.provenance.own_parsers) == names(tuple(own))
    gold = load_treebank(treebank()["test"])
    files = {"single": single()["test"]} if "file:single" in parsers else {}
    out = place / "rerank.conllu"
    rerank_files(path, [treebank()["test"]], out, parser_files=files, n_threads=1)
    assert evaluate(gold, load_treebank(out)) == report.parts["test"].scores["final system"]
    shown = invoke("info", path)
    assert shown.exit_code == 0, shown.output
    for name in names(tuple(own)):
        assert f"{name} parser" in shown.stdout
    parse_files(path, [treebank()["test"]], place / "parse.conllu", n_threads=1)
    assert len(load_treebank(place / "parse.conllu")) == len(gold)
    if files:
        return
    nlp = spacy.load(path)
    docs = nlp.pipe(doc_from_sentence(nlp.vocab, sentence) for sentence in gold)
    found = [sentence_from_doc(doc) for doc in docs]
    assert evaluate(gold, found) == report.parts["test"].scores["final system"]


def test_two_parsers_of_a_kind_keep_their_names(tmp_path: Path) -> None:
    path, report = twice_training()
    assert list(report.betas) == [*scores(TWICE), "combiner"]
    assert_whole(path, report, TWICE, tmp_path)


def test_two_parsers_of_a_kind_are_two_components() -> None:
    nlp = spacy.load(twice_training()[0])
    expected = [
        "parser", "tk_biaffine", "tk_parser", "tk_biaffine_seed1", "tk_parser_order1",
        "parser_seed1_backwardTrue", "parser_seed1_backwardTrue_backward",
    ]  # fmt: skip
    assert nlp.component_names[:7] == expected
    assert nlp.pipe_names == ["tk_biaffine", "tk_reranker"]
    first, second = nlp.get_pipe("tk_biaffine"), nlp.get_pipe("tk_biaffine_seed1")
    assert (first.parser.settings.seed, second.parser.settings.seed) == (0, 1)
    if HAS_UDPIPE:
        assert nlp.component_names[7:9] == ["tk_udpipe", "tk_udpipe_seed1"]


def test_two_parsers_of_a_kind_are_resumed(tmp_path: Path) -> None:
    path, _ = twice_training()
    progress = Recorder()
    new = tmp_path / "again"
    options = tiny_options(new, *TWICE, workdir=folder() / "twice-work")
    train_pipeline(options, progress=progress)
    (taken,) = [note for note in progress.notes if "parser of all of train" in note]
    assert all(name in taken for name in names(TWICE))
    for name in ("tk_biaffine_seed1", "tk_parser_order1", "tk_reranker"):
        for file in (path / name).iterdir():
            assert file.read_bytes() == (new / name / file.name).read_bytes()


def test_two_parsers_of_a_kind_are_compressed_and_listed(tmp_path: Path) -> None:
    path, _ = twice_training()
    result = invoke("compress", path, "-o", tmp_path / "small", "--keep", 20)
    assert result.exit_code == 0, result.output
    dev = treebank()["dev"]
    listed = invoke("kbest", tmp_path / "small", dev, "-o", tmp_path / "k.conllu", "--k", 6)
    assert listed.exit_code == 0, listed.output
    for _, trees in read_kbest(tmp_path / "k.conllu", inventory=LabelInventory()):
        assert list(trees.sources) == scores(TWICE)
        assert np.isfinite(trees.scores[:, 0]).all()
    again = invoke("rerank", tmp_path / "small", tmp_path / "k.conllu", "-o", tmp_path / "r.conllu")
    assert again.exit_code == 0, again.output


def test_two_parsers_of_a_kind_with_ready_lists(tmp_path: Path) -> None:
    """The parsers of all of train are taken over, the lists of train read: no fold is trained."""
    twice_training()
    work = folder() / "twice-work"
    options = tiny_options(
        tmp_path / "model", *TWICE, workdir=work, candidates=work / "train.kbest.conllu", k=6
    )
    report = train_pipeline(options)
    assert report.about["candidates"]["files"] == {"train": "train.kbest.conllu"}
    assert_whole(tmp_path / "model", report, TWICE, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parsers",
    [
        ("biaffine",),
        ("biaffine", "biaffine:seed=1", "file:single"),
        ("sampling", "biaffine", "biaffine:seed=1"),
        ("spacy", "biaffine", "biaffine:seed=1"),
        ("biaffine:seed=2", "spacy"),
        ("spacy:seed=1",),
        ("spacy:seed=1", "spacy", "file:single"),
        ("sampling:order=1", "spacy", "spacy:xpos=false", "spacy:seed=2:backward=true"),
        pytest.param(("udpipe", "udpipe:seed=1"), marks=needs_udpipe),
        pytest.param(("udpipe:iterations=2", "sampling:order=1"), marks=needs_udpipe),
        pytest.param(("udpipe", "udpipe:seed=1", "file:single", "spacy"), marks=needs_udpipe),
    ],
    ids=",".join,
)
def test_combinations_that_the_text_invites(parsers: tuple[str, ...], tmp_path: Path) -> None:
    report = train_pipeline(tiny_options(tmp_path / "model", *parsers))
    assert_whole(tmp_path / "model", report, parsers, tmp_path)


def test_every_parser_is_opened_by_its_own_name(tmp_path: Path) -> None:
    """What was opened had its kind's name, whatever it was called."""
    train = load_treebank(treebank()["train"])[:20]
    asked = [
        "biaffine:seed=1", "sampling:order=1", "spacy:seed=1",
        *(["udpipe:seed=3"] if HAS_UDPIPE else []),
    ]  # fmt: skip
    config = tiny_config(tmp_path / "tiny.cfg")
    for parser in make_parsers(asked, settings=TINY, config=config, max_steps=5, backward=False):
        place = tmp_path / parser.name
        place.mkdir()
        parser.train(train, [], place, n_threads=1, report=lambda done, of: None)
        opened = parser.open(place, inventory=LabelInventory(), n_threads=1)
        assert opened.names == parser.sources == (parser.name,)
        (trees,) = opened.candidates(train[:1], k=3)
        assert trees.sources == (parser.name,)
