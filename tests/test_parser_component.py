"""The spaCy component `tk_parser`: what it sets in a Doc, how it is trained and stored."""

import copy
import functools
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from pipelines import trees
from spacy.cli.train import train as spacy_train
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config
from trainings import QUICK_SAMPLING
from two_processes import run_in_two

from tk_spacy.errors import ModelError, UserError
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.parsers.sampling.training import train_sampling_parser
from tk_spacy.pipeline.tk_parser import TkParser, add_parser
from tk_spacy.pipeline.tk_reranker import TkReranker
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.synthetic import generate

SETTINGS = SamplingSettings(**QUICK_SAMPLING)
SENTENCES = list(generate(60, seed=21))
NEW = list(generate(12, seed=22))


@functools.cache
def trained() -> SamplingParser:
    return train_sampling_parser(SENTENCES, settings=SETTINGS, n_threads=1)


def pipeline() -> Language:
    nlp = spacy.blank("xx")
    add_parser(nlp, trained(), n_threads=1)
    return nlp


def component(nlp: Language) -> TkParser:
    found = nlp.get_pipe("tk_parser")
    assert isinstance(found, TkParser)
    return found


@pytest.fixture(scope="module")
def nlp() -> Language:
    return pipeline()


def docs_of(nlp: Language, sentences: list[Sentence] = NEW) -> list[Doc]:
    return [doc_from_sentence(nlp.vocab, sentence) for sentence in sentences]


def test_parser_component_sets_the_parser_s_trees(nlp: Language) -> None:
    parsed = trained().parse(NEW, n_threads=1)
    for doc, (heads, deprels) in zip(nlp.pipe(docs_of(nlp)), parsed, strict=True):
        found = sentence_from_doc(doc)
        assert found.heads.tolist() == heads.tolist()
        assert found.deprels == deprels
        assert [t.dep_ for t in doc if t.head.i == t.i] == ["ROOT"]
        assert len(list(doc.sents)) == 1
        assert doc.has_annotation("DEP")
    assert trees(map(nlp, docs_of(nlp))) == trees(nlp.pipe(docs_of(nlp), batch_size=5))


def test_parser_component_parses_sentence_by_sentence(nlp: Language) -> None:
    alone = trees(map(nlp, docs_of(nlp)))
    together = nlp(Doc.from_docs(docs_of(nlp)))
    assert [len(sentence) for sentence in together.sents] == [len(s) for s in NEW]
    for sentence, (expected,) in zip(together.sents, [[t] for t in alone], strict=True):
        assert [(t.head.i - sentence.start, t.dep_) for t in sentence] == expected
    # An older parse is replaced, its sentence boundaries stay.
    assert trees([nlp(together)]) == trees([together])


def test_parser_component_without_boundaries_takes_the_doc_as_one_sentence(nlp: Language) -> None:
    doc = Doc(nlp.vocab, words=[word for s in NEW[:2] for word in s.forms])
    assert not doc.has_annotation("SENT_START")
    other = pipeline()
    with (
        pytest.warns(UserWarning, match=r"the parser uses .*MORPH, which a Doc lacks"),
        pytest.warns(UserWarning, match=r"no sentence bounds, but '\.' inside"),
    ):
        assert len(list(other(doc).sents)) == 1
    other.add_pipe("sentencizer", before="tk_parser")  # the warning is given once
    assert [len(s) for s in other("ba be . bi bo .").sents] == [3, 3]


def test_parser_component_warns_once_of_a_sentence_end_inside_a_doc_without_bounds() -> None:
    nlp = spacy.blank("xx")
    add_parser(nlp, trained())
    words = "a b . c d .".split()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for starts in ([True, *[False] * 5], None, None):
            nlp(Doc(nlp.vocab, words=words, sent_starts=starts))
    said = [str(item.message) for item in caught if "bounds" in str(item.message)]
    assert said == [
        "tk_parser: a Doc of 6 words has no sentence bounds, but '.' inside: it is parsed as one "
        "sentence; set them as Doc(..., sent_starts=...), or put a component that does (senter, "
        "sentencizer) before it in the pipeline"
    ]


def test_parser_component_keeps_many_boundaries_in_crossing_trees(
    nlp: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = np.array([3, 4, 0, 3], dtype=np.int32), ("a", "b", "root", "c")
    monkeypatch.setattr(SamplingParser, "parse", lambda *_, **__: iter([heads, heads]))
    doc = Doc(nlp.vocab, words=list("abcdefgh"), sent_starts=[i in (0, 4) for i in range(8)])
    with pytest.warns(UserWarning, match="which a Doc lacks"):
        pipeline()(doc)
    assert [s.start for s in doc.sents] == [0, 4]
    assert [t.head.i for t in doc] == [2, 3, 2, 2, 6, 7, 6, 6]
    assert [t.dep_ for t in doc][:4] == ["a", "b", "ROOT", "c"]


def test_parser_component_leaves_white_space_out(nlp: Language) -> None:
    (sentence,) = NEW[:1]
    plain = docs_of(nlp, [sentence])[0]
    words = ["\n", *sentence.forms[:2], "  ", *sentence.forms[2:]]
    spaced = Doc(nlp.vocab, words=words, sent_starts=[i == 0 for i in range(len(words))])
    places = [i for i, token in enumerate(spaced) if not token.is_space]
    for token, i in zip(plain, places, strict=True):
        spaced[i].tag_, spaced[i].pos_, spaced[i].lemma_ = token.tag_, token.pos_, token.lemma_
        spaced[i].set_morph(str(token.morph))
    nlp(spaced)
    nlp(plain)
    assert [places.index(spaced[i].head.i) for i in places] == [t.head.i for t in plain]
    assert [spaced[i].dep_ for i in places] == [t.dep_ for t in plain]
    assert (spaced[0].head.i, spaced[3].head.i) == (1, 2)
    assert (spaced[0].dep_, spaced[3].dep_) == ("dep", "dep")
    nlp = pipeline()
    blank = nlp(Doc(nlp.vocab, words=["\n", " "]))  # which lacks nothing: no warning
    assert [(t.head.i, t.dep_) for t in blank] == [(0, "ROOT"), (0, "dep")]


def test_parser_component_leaves_an_empty_doc(nlp: Language) -> None:
    assert len(nlp("")) == 0
    docs = [nlp.make_doc(""), *docs_of(nlp, NEW[:1]), nlp.make_doc("")]
    assert [len(doc) for doc in nlp.pipe(docs)] == [0, len(NEW[0]), 0]


def test_parser_component_changes_nothing_else(nlp: Language) -> None:
    (doc,) = docs_of(nlp, NEW[:1])
    attributes = ["ORTH", "SPACY", "TAG", "POS", "MORPH", "LEMMA", "SENT_START"]
    before = doc.to_array(attributes)
    np.testing.assert_array_equal(nlp(doc).to_array(attributes), before)


def test_parser_component_untrained() -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("tk_parser")
    with pytest.raises(UserError, match=r"\[E109\].*'tk_parser'.*or set the component's `parser`"):
        nlp("ba be")
    assert component(nlp).labels == ()
    with pytest.raises(TypeError, match="parser is a str, expected a SamplingParser or None"):
        component(nlp).parser = "model"


def test_parser_component_error_handler_gets_the_docs_that_fail() -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("tk_parser")
    failed = []
    component(nlp).set_error_handler(lambda name, _, docs, error: failed.append((name, len(docs))))
    assert list(nlp.pipe(docs_of(nlp, NEW[:3]), batch_size=2)) == []
    assert failed == [("tk_parser", 2), ("tk_parser", 1)]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"n_threads": 0}, "tk_parser: n_threads is 0; it must be 1 or more"),
        ({"settings": {"speed": 9}}, "tk_parser: unknown settings: speed"),
        ({"settings": {"order": 7}}, "tk_parser: order is 7; it must be from 1 to 3"),
    ],
)
def test_parser_component_wrong_config(config: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        spacy.blank("xx").add_pipe("tk_parser", config=config)


# Training


def test_parser_component_is_trained_by_initialize() -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("tk_parser", config={"settings": QUICK_SAMPLING, "n_threads": 1})
    examples = list(read_examples(SENTENCES, nlp))
    optimizer = nlp.initialize(lambda: examples)
    assert component(nlp).parser.settings == SETTINGS
    assert set(component(nlp).labels) >= {"nsubj", "root"}
    before = component(nlp).to_bytes()
    assert nlp.update(examples[:2], sgd=optimizer) == {"tk_parser": 0.0}
    assert component(nlp).to_bytes() == before
    assert trees(nlp.pipe(docs_of(nlp))) == trees(pipeline().pipe(docs_of(nlp)))
    scores = nlp.evaluate(list(read_examples(NEW, nlp)))
    assert 0.5 < scores["dep_las"] <= scores["dep_uas"] <= 1
    assert "nsubj" in scores["dep_las_per_type"]


def test_parser_component_training_without_trees() -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("tk_parser")
    with pytest.raises(UserError, match="the training examples hold no dependency tree"):
        nlp.initialize(lambda: [Example.from_dict(nlp.make_doc("ba be"), {})])


def test_parser_component_loads_a_model(tmp_path) -> None:
    trained().to_disk(tmp_path / "parser")
    pipeline().to_disk(tmp_path / "pipeline")
    for path in (tmp_path / "parser", tmp_path / "pipeline"):
        nlp = spacy.blank("xx")
        nlp.add_pipe("tk_parser")
        nlp.config["initialize"]["components"]["tk_parser"] = {"model": str(path)}
        nlp.initialize()
        assert component(nlp).to_bytes() == trained().to_bytes()
    with pytest.raises(UserError, match=r"missing: no tk-spacy sampling parser here"):
        component(pipeline()).initialize(list, model=tmp_path / "missing")


def test_parser_component_loads_a_model_of_another_name(tmp_path) -> None:
    nlp = spacy.blank("xx")
    add_parser(nlp, trained(), name="first")
    nlp.to_disk(tmp_path / "one")
    again = component(pipeline())
    again.parser = None
    again.initialize(list, model=tmp_path / "one")
    assert again.to_bytes() == trained().to_bytes()
    add_parser(nlp, trained(), name="second")
    nlp.to_disk(tmp_path / "two")
    with pytest.raises(UserError, match=r"'tk_parser', but several with .* \(first, second\)"):
        again.initialize(list, model=tmp_path / "two")
    spacy.blank("xx").to_disk(tmp_path / "none")
    with pytest.raises(UserError, match="'tk_parser', or any other with a tk-spacy sampling"):
        again.initialize(list, model=tmp_path / "none")


def test_parser_component_searches_a_loaded_parser_as_told(tmp_path) -> None:
    trained().to_disk(tmp_path / "one")
    own = trained().settings
    nlp = spacy.blank("xx")
    told = nlp.add_pipe("tk_parser", config={"settings": {"restarts": 7, "order": own.order}})
    assert isinstance(told, TkParser)
    told.initialize(list, model=tmp_path / "one")
    assert told.parser is not None
    assert (told.parser.settings.restarts, own.restarts) == (7, 5)
    other = nlp.add_pipe("tk_parser", name="other", config={"settings": {"order": 4 - own.order}})
    assert isinstance(other, TkParser)
    with pytest.raises(UserError, match=r"was trained with .*; leave it out"):
        other.initialize(list, model=tmp_path / "one")


# Storage


def test_parser_component_travels(nlp: Language, tmp_path) -> None:
    expected = trees(nlp.pipe(docs_of(nlp)))
    nlp.to_disk(tmp_path / "pipeline")
    for other in (
        spacy.load(tmp_path / "pipeline"),
        load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()),
        pickle.loads(pickle.dumps(nlp)),
        copy.deepcopy(nlp),
    ):
        assert component(other).n_threads == 1
        assert trees(other.pipe(docs_of(other))) == expected
    assert not [path for path in (tmp_path / "pipeline").rglob("*") if path.suffix == ".pkl"]


def test_parser_component_untrained_travels(tmp_path) -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("tk_parser")
    nlp.to_disk(tmp_path / "pipeline")
    assert component(spacy.load(tmp_path / "pipeline")).parser is None
    assert component(load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())).parser is None


def test_parser_component_damaged(tmp_path) -> None:
    pipeline().to_disk(tmp_path / "pipeline")
    meta = tmp_path / "pipeline" / "tk_parser" / "meta.json"
    meta.write_text("{")
    with pytest.raises(ModelError, match="damaged or incomplete"):
        spacy.load(tmp_path / "pipeline")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_parser_component_in_two_processes_after_openmp(nlp: Language, tmp_path, method) -> None:
    assert run_in_two(nlp, "tk_parser", NEW, tmp_path, method=method) == (12, 0)


def test_parser_component_import_is_light() -> None:
    code = (
        "import sys, spacy; spacy.blank('xx'); assert 'tk_spacy.pipeline.tk_parser' in sys.modules;"
        "heavy = ('tk_spacy.parsers.sampling.', 'tk_spacy.treebank', 'conllu');"
        "light = 'tk_spacy.parsers.sampling.kind';"  # what the registry reads of each parser
        "print([m for m in sys.modules if m.startswith(heavy) and m != light])"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


# With a reranker


def test_parser_component_under_spacy_train(tmp_path, capsys) -> None:
    write_conllu(tmp_path / "train.conllu", SENTENCES)
    write_conllu(tmp_path / "dev.conllu", NEW)
    changes = {f"components.tk_parser.settings.{k}": v for k, v in QUICK_SAMPLING.items()}
    reranker = {"folds": 2, "processes": 1, "settings": {"bits": 12, "iterations": 2}}
    changes |= {f"initialize.components.tk_reranker.{k}": v for k, v in reranker.items()}
    paths = {f"paths.{part}": str(tmp_path / f"{part}.conllu") for part in ("train", "dev")}
    config = Path(__file__).parent.parent / "configs" / "sampling.cfg"
    spacy_train(config, tmp_path / "out", overrides={**paths, **changes})
    assert "DEP_LAS" in capsys.readouterr().out
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.pipe_names == ["tk_parser", "tk_reranker"]
    assert component(nlp).to_bytes() == trained().to_bytes()
    assert all(doc._.tk_reranker for doc in nlp.pipe(docs_of(nlp)))


def test_parser_component_gives_candidates_to_a_reranker() -> None:
    nlp = pipeline()
    found = nlp.add_pipe("tk_reranker", config={"source": "tk_parser", "k": 5, "n_threads": 1})
    assert isinstance(found, TkReranker)
    quick = {"bits": 12, "iterations": 2}
    examples = list(read_examples(SENTENCES, nlp))
    component(nlp).settings = dict(QUICK_SAMPLING)
    found.initialize(lambda: examples, nlp=nlp, folds=2, settings=quick)
    assert found.reranker.about["sources"] == ["sampling"]
    docs = list(nlp.pipe(docs_of(nlp)))
    parsed = trees(pipeline().pipe(docs_of(nlp)))
    for doc, own in zip(docs, parsed, strict=True):
        (record,) = doc._.tk_reranker
        assert 1 < record["n_candidates"] <= 5
        assert record["changed"] == (trees([doc]) != [own])
