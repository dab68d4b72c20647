"""Components that `add_pipe(source=...)` takes from another pipeline: whose parser do they ask?"""

import copy
import functools
import pickle

import pytest
import spacy
from pipelines import component, new_docs, predictions, trained_model, trained_parser
from spacy.language import Language
from spacy.util import load_model_from_config
from test_parser_component import trained as sampling_parser
from trainings import QUICK_SAMPLING

from tk_spacy.errors import UserError
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.parsers.sampling.training import train_sampling_parser
from tk_spacy.pipeline.tk_biaffine import add_biaffine
from tk_spacy.pipeline.tk_parser import add_parser
from tk_spacy.pipeline.tk_reranker import add_reranker
from tk_spacy.pipeline.tk_udpipe import add_udpipe
from tk_spacy.treebank.synthetic import generate

# The reranker is one for spaCy's parser; how well it chooses is no matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* the model knows scores of spacy only")

K = 6


@functools.cache
def other_parser():
    """Another sampling parser: what it finds differs from what the first one finds."""
    settings = SamplingSettings(**QUICK_SAMPLING)
    return train_sampling_parser(list(generate(25, seed=33)), settings=settings, n_threads=1)


def with_parser(parser) -> Language:
    nlp = spacy.blank("xx")
    add_parser(nlp, parser, n_threads=1)
    return nlp


def with_reranker(nlp: Language) -> Language:
    add_reranker(nlp, trained_model(), source="tk_parser", k=K, n_threads=1)
    return nlp


def outcome(nlp: Language):
    return predictions(nlp(doc) for doc in new_docs(nlp, 8, sentences_each=2))


@functools.cache
def expected(first: bool):
    """Made by a component that never was in another pipeline."""
    return outcome(with_reranker(with_parser(sampling_parser() if first else other_parser())))


def lend(target: Language, **place) -> Language:
    """The target with the reranker of a pipeline that has the first parser."""
    source = with_reranker(with_parser(sampling_parser()))
    target.add_pipe("tk_reranker", source=source, **place)
    target.source = source  # keeps it alive
    return target


def on_disk(nlp, folder):
    nlp.to_disk(folder / "pipeline")
    return spacy.load(folder / "pipeline")


WAYS = {
    "memory": lambda nlp, _: nlp,
    "disk": on_disk,
    "bytes": lambda nlp, _: load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()),
    "pickle": lambda nlp, _: pickle.loads(pickle.dumps(nlp)),
    "deepcopy": lambda nlp, _: copy.deepcopy(nlp),
}


@pytest.mark.parametrize("way", list(WAYS))
def test_sourcing_asks_the_new_pipeline_s_parser_on_every_way(way, tmp_path):
    assert expected(True) != expected(False)  # or this shows nothing
    nlp = lend(with_parser(other_parser()))
    assert component(nlp).nlp is nlp
    assert outcome(WAYS[way](nlp, tmp_path)) == expected(False)


def test_sourcing_leaves_the_old_pipeline_its_own_parser(tmp_path):
    nlp = lend(with_parser(other_parser()))
    for _ in range(2):  # one after the other, both work
        assert outcome(nlp.source) == expected(True)
        assert outcome(nlp) == expected(False)
    nlp.source.add_pipe("sentencizer", first=True)  # sets all names of the old one anew
    assert outcome(nlp) == expected(False)
    for copied in (pickle.loads(pickle.dumps(nlp.source)), on_disk(nlp.source, tmp_path)):
        copied.remove_pipe("sentencizer")
        assert outcome(copied) == expected(True)


@pytest.mark.parametrize("place", [{"last": True}, {"name": "chooser"}, {"after": "tk_parser"}])
def test_sourcing_under_another_name_or_place(place):
    nlp = lend(with_parser(other_parser()), **place)
    assert outcome(nlp) == expected(False)
    name = place.get("name", "tk_reranker")
    nlp.rename_pipe(name, "again")
    assert nlp.get_pipe("again").name == "again"
    assert outcome(nlp) == expected(False)


def test_sourcing_into_two_processes():
    nlp = lend(with_parser(other_parser()))
    docs = nlp.pipe(new_docs(nlp, 8, sentences_each=2), n_process=2, batch_size=3)
    assert predictions(docs) == expected(False)


def test_sourcing_of_what_is_disabled_or_selected():
    nlp = with_parser(other_parser())
    nlp.disable_pipe("tk_parser")
    lend(nlp)
    with pytest.warns(UserWarning, match="a Doc has no parse to rerank"):
        nlp(new_docs(nlp, 1)[0])
    nlp.enable_pipe("tk_parser")
    assert outcome(nlp) == expected(False)
    with nlp.select_pipes(enable=["tk_parser", "tk_reranker"]):
        assert outcome(nlp) == expected(False)
    nlp.rename_pipe("tk_parser", "mine")
    with pytest.raises(UserError, match=r"no component 'tk_parser' .*it has: mine, tk_reranker"):
        outcome(nlp)


def test_sourcing_by_a_config(tmp_path):
    with_reranker(with_parser(sampling_parser())).to_disk(tmp_path / "source")
    with_parser(other_parser()).to_disk(tmp_path / "other")
    config = {
        "nlp": {"lang": "xx", "pipeline": ["tk_parser", "tk_reranker"]},
        "components": {
            "tk_parser": {"source": str(tmp_path / "other")},
            "tk_reranker": {"source": str(tmp_path / "source")},
        },
    }
    nlp = load_model_from_config(config, auto_fill=True)
    assert component(nlp).nlp is nlp
    assert outcome(nlp) == expected(False)
    config["nlp"]["pipeline"] = ["tk_reranker"]
    with pytest.raises(UserError, match=r"tk_reranker: the pipeline has no component 'tk_parser'"):
        load_model_from_config(config, auto_fill=True)


def test_sourcing_fails_at_once_where_the_parser_is_missing():
    source = with_reranker(with_parser(sampling_parser()))
    nlp = spacy.blank("xx")
    with pytest.raises(UserError, match=r"again: the pipeline has no component 'tk_parser' .*none"):
        nlp.add_pipe("tk_reranker", source=source, name="again")
    assert nlp.component_names == []
    assert component(source).name == "tk_reranker"
    nlp.add_pipe("sentencizer", name="tk_parser")
    with pytest.raises(UserError, match="source 'tk_parser' is a Sentencizer, but must be a"):
        nlp.add_pipe("tk_reranker", source=source)


def test_sourcing_needs_the_twin_that_the_model_learnt_from():
    source = trained_parser()
    source.add_pipe("parser", source=trained_parser(), name="parser_backward")
    source.disable_pipe("parser_backward")
    model = copy.copy(trained_model())
    object.__setattr__(model, "about", {"backward": True})
    add_reranker(source, model, k=K)
    with pytest.raises(UserError, match="the pipeline has no component 'parser_backward'"):
        trained_parser().add_pipe("tk_reranker", source=source)


def test_sourcing_needs_the_tok2vec_that_the_parser_listens_to():
    source = trained_parser(shared_tok2vec=True)
    add_reranker(source, trained_model(), k=K, n_threads=1)
    before = outcome(source)
    nlp = spacy.blank("xx")
    nlp.add_pipe("parser", source=trained_parser(shared_tok2vec=True))
    with pytest.raises(
        UserError, match=r"'parser' listens to .*tok2vec.* which the pipeline lacks"
    ):
        nlp.add_pipe("tk_reranker", source=source)
    own = trained_parser(shared_tok2vec=True)
    own.replace_listeners("tok2vec", "parser", ["model.tok2vec"])
    nlp = spacy.blank("xx")
    nlp.add_pipe("parser", source=own)
    nlp.add_pipe("tk_reranker", source=source)
    assert outcome(nlp) == before


@pytest.mark.parametrize("add", [add_parser, add_biaffine, add_udpipe])
def test_sourcing_of_each_parser_gives_it_its_new_pipeline(add):
    source, nlp = spacy.blank("xx"), spacy.blank("xx")
    name = add(source).name
    nlp.add_pipe(name, source=source, name="mine")
    found = nlp.get_pipe("mine")
    assert (found.nlp, found.name) == (nlp, "mine")
    assert pickle.loads(pickle.dumps(found)).name == "mine"
