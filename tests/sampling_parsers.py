"""Sampling parsers that several test modules use: with random weights, or trained in a second."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from tk_spacy.features.schema import FIRST_ID, Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.parsers.sampling.training import train_sampling_parser
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.synthetic import generate

NOTHING_PRUNED = {
    "max_heads": 1000,
    "prune_margin": 1e9,
    "label_margin": 1e9,
    "max_labels": 2,
    "arc_margin": 1e9,
}
QUICK = {"epochs": 2, "pruner_epochs": 1, "bits": 16, "pruner_bits": 14, "restarts": 5}
LABELS = ("root", "x", "y")
"""Of the sentences below: the first under the root alone, the others elsewhere."""


def random_tree(rng, n, *, single_root=True):
    """A random HEAD array, non-projective more often than not."""
    order = rng.permutation(n) + 1
    heads = np.zeros(n, dtype=np.int32)
    for i, word in enumerate(order[1:], start=1):
        heads[word - 1] = rng.choice(order[:i]) if single_root else rng.choice([0, *order[:i]])
    return heads


def random_sentence(rng, n):
    """A sentence of few values, with a random tree."""
    heads = random_tree(rng, n)
    feats = ["_", "Case=Nom", "Case=Acc|Number=Sing", "Number=Sing", "Case=Nom|Number=Plur"]
    tags = [str(tag) for tag in rng.choice(["NOUN", "VERB", "ADP"], size=n)]
    return Sentence.from_columns(
        forms=[str(v) for v in rng.choice(list("abcdef"), size=n)],
        lemmas=[str(v) for v in rng.choice(list("abcd"), size=n)],
        upos=tags,
        xpos=[tag[0] for tag in tags],
        feats=[str(v) for v in rng.choice(feats, size=n)],
        heads=heads,
        deprels=["root" if head == 0 else str(rng.choice(["x", "y"])) for head in heads],
    )


def random_parser(rng, sentences, *, scale=0.1, **settings):
    """A parser of these sentences with random weights; `root` is a label under the root alone."""
    chosen = SamplingSettings(**{"bits": 12, "pruner_bits": 10, **settings})
    schema = Schema.fit(sentences, labels=LABELS)
    places = np.zeros(FIRST_ID + len(schema.labels), dtype=np.uint8)
    for name in LABELS:
        places[schema.label_id(name)] = 1 if name == "root" else 2
    return SamplingParser(
        schema=schema,
        settings=chosen,
        weights=(scale * rng.normal(size=(1 << chosen.bits) + len(places))).astype(np.float32),
        pruner=(scale * rng.normal(size=1 << chosen.pruner_bits)).astype(np.float32),
        places=places,
    )


@functools.cache
def treebank():
    """Train and test sentences of the synthetic language."""
    sentences = list(generate(160, seed=4))
    return sentences[:120], sentences[120:]


@functools.cache
def trained(order=3, **settings):
    """A parser trained on `treebank`, in a second."""
    return train_sampling_parser(
        treebank()[0], settings=SamplingSettings(order=order, **{**QUICK, **settings}), n_threads=1
    )


def rows_of_words(corpus):
    """The flat rows of all words."""
    return [
        int(start) + m
        for start, length in zip(corpus.starts, corpus.lengths, strict=True)
        for m in range(1, length - 1)
    ]


def list_of(trees, parser):
    """A candidate list of (heads, label ids of the parser's schema), in their order, unchecked."""
    inventory = LabelInventory()
    table = inventory.encode(["_"] * FIRST_ID + list(parser.labels))
    return CandidateList(
        heads=np.array([heads for heads, _ in trees], dtype=np.int32),
        labels=table[np.array([labels for _, labels in trees], dtype=np.int32)],
        inventory=inventory,
        sources=("made",),
        scores=np.zeros((len(trees), 1)),
    )


def own_scores(parser, sentence, trees):
    """What the parser says that trees score, which need not be those that it finds."""
    return parser.score([sentence], [list_of(trees, parser)], n_threads=1)[0]


def with_settings(parser, **changes):
    """The same weights with other settings."""
    return SamplingParser(
        schema=parser.schema,
        settings=replace(parser.settings, **changes),
        weights=parser.weights,
        pruner=parser.pruner,
        places=parser.places,
    )


def is_projective(heads):
    """Whether no two arcs of a HEAD array cross."""
    arcs = [(min(h, m), max(h, m)) for m, h in enumerate(heads, start=1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def same(a, b):
    """Whether two results of `parse` or two lists are equal, scores included."""
    if isinstance(a, CandidateList):
        return (
            np.array_equal(a.heads, b.heads)
            and [a.deprels(j) for j in range(len(a))] == [b.deprels(j) for j in range(len(b))]
            and np.array_equal(a.scores, b.scores)
        )
    return np.array_equal(a[0], b[0]) and a[1] == b[1]
