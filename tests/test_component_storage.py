"""The spaCy component travelling: disk, bytes, pickle, processes, DocBin."""

import copy
import json
import pickle
import subprocess
import sys

import pytest
import spacy
from pipelines import (
    component,
    new_docs,
    new_sentences,
    predictions,
    trained_model,
    trained_parser,
    trained_pipeline,
)
from spacy.tokens import DocBin
from spacy.util import load_model_from_config
from two_processes import run_in_two

from tk_spacy.errors import ModelError
from tk_spacy.pipeline.tk_reranker import TkReranker
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.conllu import write_conllu


@pytest.fixture(scope="module")
def nlp():
    return trained_pipeline()


@pytest.fixture(scope="module")
def expected(nlp):
    result = predictions(nlp(doc) for doc in new_docs(nlp, 10, sentences_each=2))
    assert any(record["changed"] for _, records in result for record in records)
    return result


def outcome(nlp):
    return predictions(nlp(doc) for doc in new_docs(nlp, 10, sentences_each=2))


def test_storage_disk(nlp, expected, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    assert outcome(loaded) == expected
    assert component(loaded).n_threads == 1
    changed = spacy.load(tmp_path / "pipeline", config={"components": {"tk_reranker": {"k": 2}}})
    assert component(changed).k == 2
    docs = list(changed.pipe(new_docs(changed, 5)))
    assert max(doc._.tk_reranker[0]["n_candidates"] for doc in docs) == 2


# Only spaCy is imported: the entry points of the installed package bring the rest.
LOAD = """
import json, sys, spacy
nlp = spacy.load(sys.argv[1])
corpus = spacy.registry.readers.get("tk_spacy.ConlluCorpus.v1")(sys.argv[2])
docs = [nlp(example.predicted) for example in corpus(nlp)]
print(json.dumps([[[t.head.i, t.dep_] for t in doc] for doc in docs]))
"""


def test_storage_loads_where_only_spacy_is_imported(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    sentences = new_sentences(8)
    write_conllu(tmp_path / "some.conllu", sentences)
    arguments = ["-W", "ignore", "-c", LOAD, tmp_path / "pipeline", tmp_path / "some.conllu"]
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
    docs = [nlp(doc_from_sentence(nlp.vocab, s)) for s in sentences]
    assert json.loads(run.stdout) == [[[t.head.i, t.dep_] for t in doc] for doc in docs]


def test_storage_bytes(nlp, expected):
    loaded = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert outcome(loaded) == expected


def test_storage_pickle_of_the_pipeline(nlp, expected):
    loaded = pickle.loads(pickle.dumps(nlp))
    assert outcome(loaded) == expected
    assert component(loaded).nlp is loaded


def test_storage_pickle_of_the_component_alone(nlp, expected):
    loaded = pickle.loads(pickle.dumps(component(nlp)))
    assert isinstance(loaded, TkReranker)
    parser = nlp.get_pipe("parser")
    docs = [loaded(parser(doc)) for doc in new_docs(nlp, 10, sentences_each=2)]
    assert predictions(docs) == expected


def test_storage_deepcopy(nlp, expected):
    assert outcome(copy.deepcopy(nlp)) == expected


def test_storage_of_an_untrained_component(tmp_path):
    nlp = trained_parser()
    nlp.add_pipe("tk_reranker")
    nlp.to_disk(tmp_path / "pipeline")
    assert component(spacy.load(tmp_path / "pipeline")).reranker is None
    loaded = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert component(loaded).reranker is None
    # A trained one leaves nothing behind where an untrained one is written over it.
    component(nlp).reranker = trained_model()
    component(nlp).to_disk(tmp_path / "one")
    assert component(spacy.load(tmp_path / "pipeline")).from_disk(tmp_path / "one").reranker
    component(nlp).reranker = None
    component(nlp).to_disk(tmp_path / "one")
    assert component(nlp).from_disk(tmp_path / "one").reranker is None


def test_storage_damaged(nlp, tmp_path):
    tk_reranker = component(trained_pipeline())
    with pytest.raises(ModelError, match="no tk-spacy reranker here"):
        tk_reranker.from_disk(tmp_path / "missing")
    component(nlp).to_disk(tmp_path / "model")
    (tmp_path / "model" / "support.npz").write_bytes(b"PK")
    with pytest.raises(ModelError, match="damaged or incomplete"):
        tk_reranker.from_disk(tmp_path / "model")
    with pytest.raises(ModelError, match="no tk-spacy reranker"):
        tk_reranker.from_bytes(b"\xc1")
    assert tk_reranker.reranker is not None  # what was there stays


def test_storage_docbin(nlp, expected):
    docs = [nlp(doc) for doc in new_docs(nlp, 10, sentences_each=2)]
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    loaded = predictions(DocBin().from_bytes(data).get_docs(nlp.vocab))
    # A DocBin makes tuples of all lists.
    assert [(tree, list(records)) for tree, records in loaded] == expected


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_storage_two_processes_after_openmp(nlp, tmp_path, method):
    documents, changed = run_in_two(nlp, "tk_reranker", new_sentences(14), tmp_path, method=method)
    assert documents == 14
    assert changed
