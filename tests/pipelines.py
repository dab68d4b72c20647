"""A small trained pipeline with a reranker, and Docs for it; made once, handed out as copies."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import fix_random_seed, load_model_from_config
from thinc.api import Adam

from tk_spacy.features.schema import Schema
from tk_spacy.parsers.spacy_transition.source import SpacySource
from tk_spacy.pipeline.tk_reranker import TkReranker, add_reranker
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import train_reranker
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.synthetic import generate

K = 6
# Small enough to train in seconds, good enough to have sensible doubts.
EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 32,
    "attrs": ["NORM", "TAG", "POS", "MORPH"],
    "rows": [500, 200, 100, 500],
    "include_static_vectors": False,
}
ENCODE = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2",
    "width": 32,
    "depth": 1,
    "window_size": 1,
    "maxout_pieces": 2,
}
OWN_TOK2VEC = {"@architectures": "spacy.Tok2Vec.v2", "embed": EMBED, "encode": ENCODE}
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32, "upstream": "tok2vec"}


def parser_config(tok2vec: dict[str, Any]) -> dict[str, Any]:
    """Config of a small parser."""
    return {
        "min_action_freq": 1,
        "model": {
            "@architectures": "spacy.TransitionBasedParser.v2",
            "state_type": "parser",
            "extra_state_tokens": False,
            "hidden_width": 32,
            "maxout_pieces": 2,
            "use_upper": True,
            "nO": None,
            "tok2vec": tok2vec,
        },
    }


def blank_parser(*, shared_tok2vec: bool = False) -> Language:
    """An untrained pipeline with a parser, which may listen to a shared tok2vec."""
    nlp = spacy.blank("xx")
    if shared_tok2vec:
        nlp.add_pipe("tok2vec", config={"model": OWN_TOK2VEC})
    nlp.add_pipe("parser", config=parser_config(LISTENER if shared_tok2vec else OWN_TOK2VEC))
    return nlp


@functools.cache
def _trained(shared_tok2vec: bool) -> tuple[Any, bytes]:
    nlp = blank_parser(shared_tok2vec=shared_tok2vec)
    examples = list(read_examples(generate(200, seed=1), nlp))
    fix_random_seed(0)
    nlp.initialize(lambda: examples)
    optimizer = Adam(0.02)
    for epoch in range(4):
        random.Random(epoch).shuffle(examples)
        for start in range(0, len(examples), 16):
            nlp.update(examples[start : start + 16], sgd=optimizer, drop=0.1)
    return nlp.config, nlp.to_bytes()


def trained_parser(*, shared_tok2vec: bool = False) -> Language:
    """A pipeline with a trained parser and nothing else."""
    config, data = _trained(shared_tok2vec)
    return load_model_from_config(config).from_bytes(data)


@functools.cache
def trained_model() -> Reranker:
    """A reranker for the candidates of `trained_parser`."""
    sentences = list(generate(80, seed=4))
    source = SpacySource(trained_parser())
    lists = list(source.candidates(sentences, k=K))
    settings = Settings(bits=14, iterations=3)
    schema = Schema.fit(sentences, labels=source.inventory.names)
    return train_reranker(sentences, lists, settings, schema=schema, n_threads=1)[0]


def trained_pipeline(*, shared_tok2vec: bool = False, **config: Any) -> Language:
    """The trained parser and its reranker; config is the component's."""
    nlp = trained_parser(shared_tok2vec=shared_tok2vec)
    add_reranker(nlp, trained_model(), **{"k": K, "n_threads": 1, **config})
    return nlp


def component(nlp: Language) -> TkReranker:
    """The reranker of a pipeline."""
    found = nlp.get_pipe("tk_reranker")
    assert isinstance(found, TkReranker)
    return found


def new_sentences(n: int) -> list[Sentence]:
    """Sentences that nothing was trained on."""
    return list(generate(n, seed=9))


def new_docs(nlp: Language, n: int, *, sentences_each: int = 1) -> list[Doc]:
    """Unparsed Docs with gold tags and preset sentence starts."""
    single = [doc_from_sentence(nlp.vocab, s) for s in new_sentences(n * sentences_each)]
    return [
        Doc.from_docs(single[i : i + sentences_each]) for i in range(0, len(single), sentences_each)
    ]


def trees(docs: Iterable[Doc]) -> list[list[tuple[int, str]]]:
    """Heads and labels."""
    return [[(token.head.i, token.dep_) for token in doc] for doc in docs]


def predictions(docs: Iterable[Doc]) -> list[Any]:
    """Heads, labels and records, to compare routes by."""
    docs = list(docs)
    return list(zip(trees(docs), [doc._.tk_reranker for doc in docs], strict=True))
