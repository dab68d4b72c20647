"""UDPipe's parser as a component, and as a parser in a whole model."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from test_cli import invoke
from train_refusals import assert_train_refuses
from trainings import QUICK_SAMPLING, folder, parser_options, same_trees, stripped, treebank
from udpipe_parsers import NEW, QUICK, SENTENCES, needs_udpipe, parsed, parser

from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.parsers.udpipe.settings import UdpipeSettings
from tk_spacy.pipeline.loading import proposing_parsers
from tk_spacy.pipeline.tk_udpipe import TkUdpipe, add_udpipe
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.workflows.files.batch import rerank_files
from tk_spacy.workflows.train.pipeline import train_pipeline

# The component


@needs_udpipe
def test_udpipe_component_parses_and_survives_disk_and_bytes(tmp_path: Path) -> None:
    from tk_spacy.spacy_io.conversion import doc_from_sentence

    nlp = spacy.blank("xx")
    component = add_udpipe(nlp, parser())
    assert component.labels == parser().labels
    nlp.to_disk(tmp_path / "nlp")
    blank = spacy.blank("xx")
    blank.add_pipe("tk_udpipe")
    for pipeline in (nlp, spacy.load(tmp_path / "nlp"), blank.from_bytes(nlp.to_bytes())):
        for sentence, (heads, deprels) in zip(NEW, parsed(parser(), NEW), strict=True):
            doc = pipeline.get_pipe("tk_udpipe")(doc_from_sentence(pipeline.vocab, sentence))
            own = [0 if t.head.i == t.i else t.head.i + 1 for t in doc]
            assert own == heads
            assert [t.dep_.lower() for t in doc] == [d.lower() for d in deprels]
    with pytest.warns(UserWarning, match=r"the parser uses POS, MORPH, which a Doc lacks"):
        blank("ba be bi")
    assert proposing_parsers(nlp, where="here") == (("tk_udpipe",), None)
    untrained = spacy.blank("xx").add_pipe("tk_udpipe")
    with pytest.raises(UserError, match="tk_udpipe"):
        untrained.predict([])


@needs_udpipe
def test_udpipe_component_is_trained_from_examples(tmp_path: Path) -> None:
    from tk_spacy.spacy_io.corpus import read_examples

    nlp = spacy.blank("xx")
    component = nlp.add_pipe("tk_udpipe", config={"settings": QUICK})
    assert isinstance(component, TkUdpipe)
    examples = list(read_examples(SENTENCES, nlp))
    nlp.initialize(lambda: examples)
    assert component.parser is not None
    assert component.parser.settings == UdpipeSettings(**QUICK)
    nlp.to_disk(tmp_path / "nlp")
    other = spacy.blank("xx").add_pipe("tk_udpipe")
    other.initialize(list, model=tmp_path / "nlp")
    assert other.to_bytes() == component.to_bytes()
    with pytest.raises(UserError, match="tk_udpipe: unknown settings: depth"):
        spacy.blank("xx").add_pipe("tk_udpipe", config={"settings": {"depth": 1}})


# The parser in a model


@functools.cache
def udpipe_training() -> tuple[Path, TrainReport]:
    """A model with a sampling parser and a tiny UDPipe parser."""
    path = folder() / "udpipe-model"
    return path, train_pipeline(udpipe_options(path))


def udpipe_options(output: Path, **changes: Any) -> Any:
    own = {"parsers": ("sampling", "udpipe"), "sampling": QUICK_SAMPLING, "udpipe": QUICK}
    return parser_options(output, **{**own, "max_steps": None, **changes})


@needs_udpipe
def test_udpipe_parser_in_a_model(tmp_path: Path) -> None:
    path, report = udpipe_training()
    assert list(report.betas) == ["sampling", "udpipe", "combiner"]
    assert set(report.run_time.parsers) == {"sampling", "udpipe"}
    nlp = spacy.load(path)
    assert nlp.pipe_names == ["tk_parser", "tk_reranker"]
    assert nlp.component_names == ["tk_parser", "tk_udpipe", "tk_reranker"]
    # The scores in the report are those of the model that was written.
    bare = stripped(treebank()["test"], tmp_path / "bare.conllu")
    (result,) = rerank_files(path, [treebank()["test"]], tmp_path / "out", n_threads=1)
    final = result.to_dict()["scores"]["final"]
    wanted = list(report.parts["test"].scores.values())
    assert any(row.las == pytest.approx(final["las"]) for row in wanted)
    rerank_files(path, [bare], tmp_path / "again.conllu", n_threads=1)
    assert same_trees(tmp_path / "out", tmp_path / "again.conllu")
    # The component chooses what the command chooses.
    from tk_spacy.spacy_io.conversion import doc_from_sentence

    for sentence in load_treebank(tmp_path / "out")[:5]:
        doc = nlp(doc_from_sentence(nlp.vocab, sentence))
        assert [0 if t.head.i == t.i else t.head.i + 1 for t in doc] == sentence.heads.tolist()
    shown = invoke("info", path)
    assert "UDPipe, trained, projective, 2 iterations, 2 folds" in shown.stdout


@needs_udpipe
def test_udpipe_parser_is_resumed(tmp_path: Path) -> None:
    wanted = udpipe_options(tmp_path / "model", workdir=tmp_path / "work", processes=2)
    train_pipeline(wanted)
    kept = (tmp_path / "work" / "udpipe" / "parser.udpipe").read_bytes()
    component = tmp_path / "model" / "tk_udpipe" / "parser.udpipe"
    assert component.read_bytes() == kept
    # In processes as in this one.
    assert (udpipe_training()[0] / "tk_udpipe" / "parser.udpipe").read_bytes() == kept
    record = tmp_path / "work" / "udpipe" / "training.json"
    before = record.stat().st_mtime_ns
    train_pipeline(replace(wanted, overwrite=True))
    assert record.stat().st_mtime_ns == before
    assert json.loads(record.read_text())["seconds"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--views", "udpipe"), "the udpipe parser gives one tree a sentence"),
        (("--udpipe", "iterations=2"), "iterations concerns the udpipe parser only"),
        (("--views", "sampling,udpipe", "--udpipe", "x=2"), "parsers.udpipe.x is no setting"),
    ],
)
def test_cli_train_refuses_udpipe_options(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert_train_refuses(tmp_path, arguments, message)
