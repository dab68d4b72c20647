"""Plain, slow twins of tk_spacy/sampling: all trees of short sentences, their parts one by one, and
passive-aggressive learning with explicit feature vectors.

They share with the fast code the declarations of the part types and the score of a single part.
"""

from __future__ import annotations

import functools
import math
from itertools import combinations, product

import numpy as np
from reference_spanning import is_tree

from tk_spacy.features.part_types import DEPENDENTS, PART_TYPES, ROLES
from tk_spacy.parsers.sampling.parser import PARTS_OF_ORDER
from tk_spacy.parsers.sampling.search.decoder import Scorer
from tk_spacy.parsers.sampling.search.tree_scores import crossing_scores, part_scores
from tk_spacy.parsers.sampling.search.words import encode

BOUNDARY_LABEL = 1


@functools.cache
def all_heads(n, *, single_root):
    """The HEAD array of every tree over n words."""
    every = product(range(n + 1), repeat=n)
    return [heads for heads in every if is_tree(heads, single_root=single_root)]


@functools.cache
def labelled_trees(n, root_labels, other_labels, *, single_root):
    """Every tree over n words with every choice of labels: a list of (heads, labels) tuples."""
    return [
        (heads, labels)
        for heads in all_heads(n, single_root=single_root)
        for labels in product(*(other_labels if head else root_labels for head in heads))
    ]


def part_rows(heads, labels, name):
    """The parts of a tree as 9-tuples (see parts.pyx), found by asking each word in turn."""
    n = len(heads)
    wanted = PART_TYPES[name].roles
    edges = {slot.role for slot in PART_TYPES[name].slots if slot.kind == "edge"}

    def head(word):
        return heads[word - 1]

    def sibling(word):
        h = head(word)
        between = [
            s
            for s in range(1, n + 1)
            if s != word and head(s) == h and min(h, word) < s < max(h, word)
        ]
        return max(between, key=lambda s: abs(s - h), default=n + 1)

    def label(word):
        return BOUNDARY_LABEL if word > n else labels[word - 1]

    rows = []
    for m in range(1, n + 1):
        place = {"m": m, "h": head(m)}
        if "g" in wanted:
            if not place["h"]:
                continue
            place["g"] = head(place["h"])
        if "s" in wanted:
            place["s"] = sibling(m)
        if "t" in wanted:
            if place["s"] > n:
                continue
            place["t"] = sibling(place["s"])
        rows.append(
            tuple(
                [place[role] if role in wanted else -1 for role in ROLES]
                + [label(place[role]) if role in edges else 0 for role in DEPENDENTS]
            )
        )
    return rows


def types_of(order):
    """Names of the part types with features, each with its number."""
    return [(list(PART_TYPES).index(name), name) for name in PARTS_OF_ORDER[order]]


def score_parts(scorer, fields, rows, kind):
    """The score of each part of one sentence, {row: score}."""
    rows = sorted(set(rows))
    scores = part_scores(
        scorer,
        fields,
        np.zeros(1, dtype=np.int32),
        np.array([len(fields)], dtype=np.int32),
        np.zeros(len(rows), dtype=np.int32),
        np.array(rows, dtype=np.int32).reshape(-1, len(ROLES) + len(DEPENDENTS)),
        kind,
        n_threads=1,
    )
    return dict(zip(rows, scores.tolist(), strict=True))


def crossing_pairs(heads):
    """The pairs of words whose arcs cross: just one end of the one lies inside the other."""
    arcs = {m: (min(h, m), max(h, m)) for m, h in enumerate(heads, start=1)}

    def inside(arc, node):
        return arc[0] < node < arc[1]

    return [
        (a, b)
        for a, b in combinations(arcs, 2)
        if len({*arcs[a], *arcs[b]}) == 4
        and inside(arcs[a], arcs[b][0]) != inside(arcs[a], arcs[b][1])
    ]


def crossing_total(scorer, fields, heads, labels, known):
    """What crossing arcs score: the sum over pairs, each pair scored where nothing else crosses."""
    scores = []
    for a, b in crossing_pairs(heads):
        pair = (a, heads[a - 1], labels[a - 1], b, heads[b - 1], labels[b - 1])
        if pair not in known:
            # Every other word depends on the one before it: such arcs cross nothing.
            alone = np.arange(len(heads), dtype=np.int32)[None]
            names = np.full_like(alone, labels[a - 1])
            for word in (a, b):
                alone[0, word - 1], names[0, word - 1] = heads[word - 1], labels[word - 1]
            out = np.zeros(1)
            crossing_scores(scorer, fields, alone, names, out)
            known[pair] = float(out[0])
        scores.append(known[pair])
    return math.fsum(scores)


def tree_scores(parser, sentence, trees):
    """The score of each (heads, labels) as the sum of its parts' scores; labels are ids."""
    fields = encode(parser.schema, [sentence]).fields
    totals = [[] for _ in trees]
    for kind, name in types_of(parser.settings.order):
        found = [part_rows(heads, labels, name) for heads, labels in trees]
        known = score_parts(parser._scorer, fields, [row for rows in found for row in rows], kind)
        for total, rows in zip(totals, found, strict=True):
            total += [known[row] for row in rows]
    if parser.settings.order > 1 and parser.settings.crossing:
        pairs = {}
        for total, (heads, labels) in zip(totals, trees, strict=True):
            total.append(crossing_total(parser._scorer, fields, heads, labels, pairs))
    return np.array([math.fsum(total) for total in totals])


class PlainLearner:
    """The learner with explicit feature vectors, which it finds out by scoring single parts with
    weights that are 1 in one cell and 0 elsewhere, and with a copy of the weights at each step."""

    def __init__(self, *, size, n_cells, order, C, morph_end, crossing=True):
        self.order = order
        self.crossing = crossing
        self.C = C
        self.weights = np.zeros(size + n_cells)
        self.history = []
        pruning = {"max_heads": 1, "prune_margin": 0.0, "max_labels": 1}
        margins = {"label_margin": 0.0, "arc_margin": 0.0}
        places = np.full(n_cells, 3, dtype=np.uint8)
        self.probes = [
            Scorer(
                row, np.zeros(2, dtype=np.float32), places,
                order=order, single_root=True, morph_end=morph_end, **pruning, **margins,
            )
            for row in np.eye(size + n_cells, dtype=np.float32)
        ]  # fmt: skip

    def features(self, fields, heads, labels):
        """The feature counts of a tree, whose arrays hold words 1..n only."""
        counts = np.zeros(len(self.weights))
        for kind, name in types_of(self.order):
            rows = part_rows(heads, labels, name)
            for cell, probe in enumerate(self.probes):
                known = score_parts(probe, fields, rows, kind)
                counts[cell] += sum(known[row] for row in rows)
        if self.order > 1 and self.crossing:
            for cell, probe in enumerate(self.probes):
                counts[cell] += crossing_total(probe, fields, heads, labels, {})
        return counts

    def update(self, fields, gold, other, loss):
        """One step; gold and other are (heads, labels).  Returns its size."""
        difference = self.features(fields, *gold) - self.features(fields, *other)
        norm, margin = difference @ difference, difference @ self.weights
        step = 0.0
        if norm > 0 and margin < loss:
            step = min(self.C, (loss - margin) / norm)
            self.weights = self.weights + step * difference
        self.history.append(self.weights)
        return step

    def averaged(self):
        """The mean of the weights after each step."""
        return np.mean(self.history, axis=0)
