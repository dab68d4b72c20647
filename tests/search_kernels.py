"""Kernels of the search that several test modules use: random ones, and what trees score."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import reference
from sampling_parsers import trained, treebank

from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.features.parts import extract_parts, slot_rows
from tk_spacy.kernels.support_log import SupportLog
from tk_spacy.parsers.sampling.kernel.decoding import decode_with_kernel
from tk_spacy.parsers.sampling.kernel.model import ARC, PAIRS, SearchKernel, bare, no_slots
from tk_spacy.parsers.sampling.search.search_space import lattice_arcs
from tk_spacy.parsers.sampling.search.words import encode

ARCS = (ARC,)
EVERY = (ARC, *PAIRS)
KINDS = {"argvalues": [ARCS, EVERY], "ids": ["arcs", "pairs"]}
"""Of kernels, for pytest.mark.parametrize("types", **KINDS)."""
TRAINED_SCALES = {"arc": 0.003, "sibling": 2e-5, "grandparent": 2e-5}


def slots_of(heads, labels, name):
    """The parts of a tree, whose labels are ids, in slot form."""
    rows, _, members = extract_parts([heads], [labels], PART_TYPES[name])
    return slot_rows(rows[members], PART_TYPES[name])


def random_support(rng, schema, sentences, scales):
    """A support of the parts of gold trees, of the types that scales names, with random weights.

    With it goes what `plain_score` is told of it: for each sentence and type the parts' weights.
    """
    log = SupportLog(tuple(scales), len(schema.properties), groups=schema.property_groups())
    told = []
    for i, sentence in enumerate(sentences):
        nodes = schema.encode(sentence).nodes
        labels = [schema.label_id(name) for name in sentence.deprels]
        for name, scale in scales.items():
            own = slots_of(sentence.heads, labels, name)
            slots = tuple(own if other == name else no_slots(other) for other in scales)
            signs = tuple(rng.choice(np.array([-1, 1], dtype=np.int32), size=len(s)) for s in slots)
            weight = scale * float(rng.random())
            log.append(nodes, slots, signs, weight=weight, averaged=weight, origin=(i, i))
            told.append((sentence, name, weight * signs[list(scales).index(name)]))
    return log.freeze(), told


def random_kernel(rng, schema, sentences, scales, *, gamma=1.0):
    """A kernel of `random_support`, and what `plain_score` is told of it."""
    support, told = random_support(rng, schema, sentences, scales)
    return SearchKernel(schema=schema, support=bare(support, tuple(scales)), gamma=gamma), told


def arcs_alone(kernel):
    """A kernel without its pairs."""
    return SearchKernel(schema=kernel.schema, support=bare(kernel.support), gamma=kernel.gamma)


def plain_score(kernel, told, sentence, heads, deprels):
    """Gamma times the sum over a tree's parts and all support parts of weight times kernel.

    By strings: of the kernel itself only its gamma, its types and the schema's choices count.
    """
    schema = kernel.schema
    choices = {
        "pos_column": schema.pos_column,
        "use_cpos": schema.use_cpos,
        "morph": schema.morph,
        "use_lemma": schema.use_lemma,
    }

    def sets(given, heads, deprels, name):
        parts = reference.tree_parts([int(h) for h in heads], list(deprels), name)
        return [reference.slot_sets(given, part, name, **choices) for part in parts]

    total = 0.0
    own = {name: sets(sentence, heads, deprels, name) for name in kernel.support.types}
    for given, name, weights in told:
        if name in own:
            theirs = sets(given, given.heads, given.deprels, name)
            for a, weight in zip(theirs, weights, strict=True):
                total += weight * sum(reference.kernel_by_slots(a, b) for b in own[name])
    return kernel.gamma * total


@functools.cache
def with_kernel(types):
    """The trained parser with a kernel that changes its trees."""
    scales = {name: TRAINED_SCALES[name] for name in types}
    parser, rng = trained(), np.random.default_rng(3)
    kernel, _ = random_kernel(rng, parser.schema, treebank()[0][:40], scales)
    return replace(parser, kernel=kernel)


def searched(parser, sentences):
    """What a search with the parser's kernel is made of.

    The corpus, where its words are, its arcs with the kernel's scores, nodes and label table.
    """
    kernel = parser.kernel
    corpus = encode(parser.schema, sentences, seed=parser.settings.seed)
    where = (parser.scorer, corpus.fields, corpus.starts, corpus.lengths, np.arange(len(corpus)))
    nodes, table = kernel.nodes(sentences), kernel.label_table(parser.schema)
    arcs = kernel.added(lattice_arcs(*where, n_threads=1), corpus.lengths, nodes, table)
    return corpus, where, arcs, nodes, table


def decoded(parser, sentences, *, k=1, **options):
    """What decode_with_kernel returns, with the parser's own settings."""
    s = parser.settings
    corpus, _, arcs, nodes, table = searched(parser, sentences)
    return decode_with_kernel(
        parser.kernel, parser.scorer, corpus, arcs, nodes, table,
        k=k, exact=s.exact_starts, restarts=s.restarts, patience=s.patience,
        temperature=s.temperature, label_share=s.label_share, n_threads=1, **options,
    )  # fmt: skip
