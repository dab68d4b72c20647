"""The biaffine parser as a parser, as the component `tk_biaffine`, and in a trained pipeline."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
from biaffine_parsers import NEW, QUICK, SENTENCES, trained
from pipelines import trees
from spacy.language import Language
from spacy.tokens import Doc
from test_cli import invoke
from trainings import Recorder, treebank

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.source import BiaffineSource
from tk_spacy.parsers.biaffine.spec import BiaffineSpec
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.pipeline.loading import proposing_parsers
from tk_spacy.pipeline.sources import pipeline_sources
from tk_spacy.pipeline.tk_biaffine import TkBiaffine, add_biaffine
from tk_spacy.reranker.settings import Settings
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

SMALL = {name: value for name, value in QUICK.to_dict().items() if name != "seed"} | {"epochs": 2}


def pipeline() -> Language:
    nlp = spacy.blank("xx")
    add_biaffine(nlp, trained())
    return nlp


def component(nlp: Language) -> TkBiaffine:
    found = nlp.get_pipe("tk_biaffine")
    assert isinstance(found, TkBiaffine)
    return found


def docs_of(nlp: Language, sentences: list[Sentence] = NEW) -> list[Doc]:
    return [doc_from_sentence(nlp.vocab, sentence) for sentence in sentences]


# The parser


def test_biaffine_parser_trains_into_a_directory(tmp_path: Path) -> None:
    (parser,) = make_parsers(["biaffine"], seed=5, settings={"biaffine": SMALL})
    assert parser == BiaffineSpec.from_settings({**SMALL, "seed": 5})
    assert (parser.name, parser.sources, parser.given) == ("biaffine", ("biaffine",), False)
    steps: list[tuple[int, int]] = []
    parser.train(
        SENTENCES[:40], [], tmp_path, n_threads=2, report=lambda done, of: steps.append((done, of))
    )
    assert steps[-1] == (80, 80)
    source = parser.open(tmp_path, inventory=LabelInventory())
    (found,) = source.candidates(NEW[:1], k=4)
    (scores,) = source.score(NEW[:1], [found])
    np.testing.assert_allclose(found.scores, scores, atol=1e-4)


def test_biaffine_parser_s_keys_tell_training_from_search() -> None:
    parser = BiaffineSpec.from_settings(SMALL)
    searching = BiaffineSpec(settings=replace(parser.settings, label_share=0.5))
    assert searching.training_key() == parser.training_key()
    assert searching.search_key() != parser.search_key()
    longer = BiaffineSpec(settings=replace(parser.settings, epochs=3))
    assert longer.training_key() != parser.training_key()


# The component


def test_biaffine_component_sets_the_parser_s_trees() -> None:
    nlp = pipeline()
    parsed = trained().parse(NEW)
    for doc, (heads, deprels) in zip(nlp.pipe(docs_of(nlp)), parsed, strict=True):
        found = sentence_from_doc(doc)
        assert found.heads.tolist() == heads.tolist()
        assert found.deprels == deprels
    nlp(" \n")  # white space lacks nothing, and uses the one warning not up
    with pytest.warns(UserWarning, match=r"uses TAG, POS, MORPH, LEMMA, which a Doc lacks"):
        nlp("ba be bi")


def test_biaffine_component_s_model_reads_docs() -> None:
    """As models of spaCy's own components do."""
    nlp = pipeline()
    model = component(nlp).model
    assert model is not None
    np.testing.assert_array_equal(model.predict(docs_of(nlp)).arcs, model.predict(Batch(NEW)).arcs)


def test_biaffine_component_is_trained_by_initialize() -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("tk_biaffine", config={"settings": {**SMALL, "epochs": 5}})
    examples = list(read_examples(SENTENCES[:100], nlp))
    nlp.initialize(lambda: examples)
    parser = component(nlp).parser
    assert parser is not None
    assert parser.settings == replace(QUICK, epochs=5)
    assert set(component(nlp).labels) >= {"nsubj", "root"}
    scores = nlp.evaluate(list(read_examples(NEW, nlp)))
    assert 0.3 < scores["dep_las"] <= scores["dep_uas"] <= 1


def test_biaffine_component_travels(tmp_path: Path) -> None:
    nlp = pipeline()
    expected = trees(nlp.pipe(docs_of(nlp)))
    nlp.to_disk(tmp_path / "pipeline")
    for other in (spacy.load(tmp_path / "pipeline"), pickle.loads(pickle.dumps(nlp))):
        assert trees(other.pipe(docs_of(other))) == expected
    again = spacy.blank("xx")
    again.add_pipe("tk_biaffine")
    model = tmp_path / "pipeline" / "tk_biaffine"
    again.config["initialize"]["components"]["tk_biaffine"] = {"model": str(model)}
    again.initialize()
    assert component(again).to_bytes() == component(nlp).to_bytes()


def test_biaffine_component_proposes_trees() -> None:
    nlp = pipeline()
    names, reranker = proposing_parsers(nlp, where="here")
    assert (names, reranker) == (("tk_biaffine",), None)
    (source,) = pipeline_sources(nlp, names, inventory=LabelInventory())
    assert isinstance(source, BiaffineSource)
    assert source.parser is trained()


def test_biaffine_component_mistakes() -> None:
    nlp = spacy.blank("xx")
    with pytest.raises(UserError, match="tk_biaffine: unknown settings: speed"):
        nlp.add_pipe("tk_biaffine", config={"settings": {"speed": 9}})
    nlp.add_pipe("tk_biaffine")
    with pytest.raises(UserError, match=r"\[E109\].*'tk_biaffine'.*set the component's `parser`"):
        nlp("ba be")
    with pytest.raises(UserError, match=r"\[E109\].*'tk_biaffine'"):
        pipeline_sources(nlp, ["tk_biaffine"], inventory=LabelInventory())
    with pytest.raises(TypeError, match="parser is a str, expected a BiaffineParser or None"):
        component(nlp).parser = "x"  # type: ignore[assignment]


# A whole training


def test_pipeline_with_a_biaffine_parser(tmp_path: Path) -> None:
    paths = treebank()
    report = train_pipeline(
        TrainOptions(
            train=paths["train"], dev=paths["dev"], test=paths["test"], output=tmp_path / "model",
            parsers=("sampling", "biaffine"), tags="gold",
            parser_settings={"sampling": {"epochs": 1, "order": 1}, "biaffine": SMALL},
            folds=2, k=6, threads=1, processes=1, tuning_folds=1,
            settings=Settings(iterations=2, bits=12, manual_parts=("arc",)),
        ),
        progress=Recorder(),
    )  # fmt: skip
    nlp = spacy.load(tmp_path / "model")
    assert nlp.pipe_names == ["tk_parser", "tk_reranker"]
    assert nlp.disabled == ["tk_biaffine"]
    assert nlp.get_pipe("tk_reranker").sources == ("tk_parser", "tk_biaffine")
    gold = load_treebank(paths["test"])
    docs = nlp.pipe(doc_from_sentence(nlp.vocab, sentence) for sentence in gold)
    found = [sentence_from_doc(doc) for doc in docs]
    assert evaluate(gold, found) == report.parts["test"].scores["final system"]
    assert "biaffine" in report.betas


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--views", "spacy", "--biaffine-epochs", "3"],
            "biaffine.epochs concerns the biaffine parser only",
        ),
        (["--views", "biaffine,biaffine"], "name one or more different ones"),
    ],
)
def test_train_command_refuses_what_has_no_effect(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    paths = treebank()
    result = invoke(
        "train", paths["train"], "--dev", paths["dev"], "-o", tmp_path / "m", *arguments
    )
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "m").exists()


def test_cli_parse_with_a_biaffine_parser(tmp_path: Path) -> None:
    pipeline().to_disk(tmp_path / "model")
    write_conllu(tmp_path / "in.conllu", NEW)
    for name, more in (("a", ()), ("b", ("--k", 3)), ("c", ("--jobs", 2))):
        source = tmp_path / "in.conllu" if name != "c" else tmp_path / "in"
        if name == "c":
            source.mkdir()
            for part in ("x", "y"):
                write_conllu(source / f"{part}.conllu", NEW)
        result = invoke("parse", tmp_path / "model", source, "-o", tmp_path / name, *more)
        assert result.exit_code == 0, result.output
    expected = [(heads.tolist(), list(deprels)) for heads, deprels in trained().parse(NEW)]
    for path in ("a", "b", "c/x.conllu", "c/y.conllu"):
        found = [(s.heads.tolist(), list(s.deprels)) for s in load_treebank(tmp_path / path)]
        if path == "b":
            pairs = read_kbest(tmp_path / path, inventory=LabelInventory())
            found = [(t.heads[t.base].tolist(), list(t.deprels(t.base))) for _, t in pairs]
        assert found == expected
