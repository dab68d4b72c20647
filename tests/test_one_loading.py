"""A pipeline that tags and parses is loaded once, and does what it does when loaded twice."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from pipelines import LISTENER, new_sentences, trained_pipeline
from trainings import folder

from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.tagging.base import Tags
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.workflows.files.batch import parse_files, rerank_files
from tk_spacy.workflows.files.tagging import BATCH
from tk_spacy.workflows.kbest import kbest
from tk_spacy.workflows.model import open_tagger, pipeline_loader

TAGGER = {"@architectures": "spacy.Tagger.v2", "nO": None, "normalize": False, "tok2vec": LISTENER}


@functools.cache
def model() -> Path:
    """A reranker, its parser and a tagger, which listen to one tok2vec; the tagger only guesses."""
    path = folder() / "one-loading"
    nlp = trained_pipeline(shared_tok2vec=True)
    tagger: Any = nlp.add_pipe("morphologizer", config={"model": TAGGER}, before="parser")
    tagger.initialize(lambda: list(read_examples(new_sentences(5), nlp)), nlp=nlp)
    softmax = tagger.model.get_ref("softmax")
    shape = softmax.get_param("W").shape
    softmax.set_param("W", np.random.default_rng(0).normal(size=shape).astype(np.float32))
    nlp.to_disk(path)
    return path


def bare() -> list[Sentence]:
    return [Sentence.from_columns(forms=s.forms, sent_id=f"{i}") for i, s in enumerate(SENTENCES)]


SENTENCES = new_sentences(8)
COMMANDS = {
    "rerank": lambda source, out, **more: rerank_files(model(), [source], out, **more),
    "parse": lambda source, out, **more: parse_files(model(), [source], out, **more),
    "kbest": lambda source, out, **more: kbest(str(model()), source, out, **more),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipeline_is_loaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    tagger = open_tagger(model())
    assert tagger is not None
    tagged = [tags.put(s) for tags, s in zip(tagger.tag(bare()), bare(), strict=True)]
    assert len({tag for s in tagged for tag in s.upos}) > 1
    write_conllu(tmp_path / "bare.conllu", bare())
    write_conllu(tmp_path / "tagged.conllu", tagged)
    COMMANDS[command](tmp_path / "tagged.conllu", tmp_path / "expected.conllu", tags="gold")

    loaded: list[str] = []
    load = spacy.load

    def counted(name: Any, *args: Any, **more: Any) -> Any:
        loaded.append(str(name))
        return load(name, *args, **more)

    monkeypatch.setattr(spacy, "load", counted)
    COMMANDS[command](tmp_path / "bare.conllu", tmp_path / "found.conllu")
    assert loaded == [str(model())]
    found, expected = (load_treebank(tmp_path / f"{n}.conllu") for n in ("found", "expected"))
    assert [Tags.of(s) for s in found] == [Tags.of(s) for s in tagged]
    assert [s.heads.tolist() for s in found] == [s.heads.tolist() for s in expected]
    assert [s.comments for s in found] == [s.comments for s in expected]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_tagger_is_opened_once_for_all_batches_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    opened: list[Any] = []

    def counted(*args: Any, **more: Any) -> Any:
        opened.append(args)
        return open_tagger(*args, **more)

    for module in ("kbest", "files.batch"):
        monkeypatch.setattr(f"tk_spacy.workflows.{module}.open_tagger", counted)
    times = 2 * BATCH // len(SENTENCES) + 1
    write_conllu(tmp_path / "bare.conllu", bare() * times)
    COMMANDS[command](tmp_path / "bare.conllu", tmp_path / "found.conllu")
    assert len(opened) == 1


def test_a_loader_knows_a_path_in_any_writing() -> None:
    load = pipeline_loader()
    nlp = load(model())
    assert load(f"{model()}/") is nlp
    assert pipeline_loader()(model()) is not nlp
