"""A word's relation from all the rest of its tree: a log-linear model that never saw the sentence.

Where `rarity` counts a few fixed contexts, here many properties of the word, its head, its
dependents and its sisters vote, with weights learnt from the other sentences (a multinomial
logistic regression on binary features).  Since it reads the annotated tree around the word, it
estimates the pseudolikelihood of Besag 1975, p(relation | everything else): what an annotator
decides when all else is right.

Learning: AdaGrad (Duchi, Hazan and Singer 2011) on small batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tk_spacy.audit.backoff import Expected
from tk_spacy.audit.words import EDGE, FUNCTION_LABELS, Words, universal
from tk_spacy.utils.array_types import Float32, Int32, Int64

BATCH = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelModelSettings:
    """How it learns.

    folds: the sentences of one are judged by a model of all others.  epochs: passes over these.
    rate: of AdaGrad.  least: words that a feature is true of at least.
    """

    folds: int = 5
    epochs: int = 3
    rate: float = 0.1
    least: int = 2
    seed: int = 0


def features(words: Words) -> Iterator[list[str]]:
    """The features that are true of each word; none reads the word's own relation."""
    heads = words.heads.tolist()
    sides, distances = words.directions, words.distances
    before, after = words.beside(words.upos, -1), words.beside(words.upos, 1)
    children: list[list[int]] = [[] for _ in heads]
    for row, head in enumerate(heads):
        if head >= 0:
            children[head].append(row)

    def at(column: list[str], row: int) -> str:
        return EDGE if row < 0 else column[row]

    for row, head in enumerate(heads):
        tag, lemma, feats, side = words.upos[row], words.lemmas[row], words.feats[row], sides[row]
        head_tag, head_lemma = at(words.upos, head), at(words.lemmas, head)
        head_feats, head_label = at(words.feats, head), at(words.deprels, head)
        above = heads[head] if head >= 0 else -1
        place = f"{side}{distances[row]}"
        found = [
            "",
            f"t {tag}", f"l {lemma}", f"f {words.forms[row]}", f"x {words.xpos[row]}",
            f"m {tag} {feats}", f"s {tag} {words.forms[row][-3:]}",
            f"ht {head_tag}", f"hl {head_lemma}", f"hm {head_tag} {head_feats}",
            f"hr {head_label}", f"p {place}",
            f"t ht {side} {tag} {head_tag}", f"t ht p {place} {tag} {head_tag}",
            f"l hl {lemma} {head_lemma}", f"l ht {side} {lemma} {head_tag}",
            f"t hl {side} {tag} {head_lemma}", f"m ht {side} {feats} {tag} {head_tag}",
            f"m hl {feats} {head_lemma}", f"m hm {side} {feats} {head_feats} {head_tag}",
            f"t ht hr {tag} {head_tag} {head_label}", f"t hr {side} {tag} {head_label}",
            f"l hr {lemma} {head_label}", f"t ht gt {tag} {head_tag} {at(words.upos, above)}",
            f"b {tag} {before[row]}", f"a {tag} {after[row]}",
            f"b a {tag} {before[row]} {after[row]}",
            f"n {tag} {min(len(children[row]), 3)}",
        ]  # fmt: skip
        for child in children[row]:
            label = words.deprels[child]
            found += [f"c {label}", f"c {label} {tag} {head_tag}"]
            if universal(label) in FUNCTION_LABELS:
                mark = words.lemmas[child]
                found += [
                    f"k {mark} {head_tag}", f"k {mark} | {head_lemma}", f"k {mark} || {tag}",
                    f"k {mark} {lemma} {head_tag}",
                ]  # fmt: skip
        if head >= 0:
            sisters = [other for other in children[head] if other != row]
            for other in sisters:
                label = words.deprels[other]
                found += [
                    f"z {tag} {label}", f"z {side} {head_tag} {tag} {label}",
                    f"z | {head_lemma} {tag} {label}",
                ]  # fmt: skip
            left = [other for other in sisters if other < row]
            right = [other for other in sisters if other > row]
            found += [
                f"zl {words.deprels[left[-1]] if left else EDGE} {tag} {head_tag}",
                f"zr {words.deprels[right[0]] if right else EDGE} {tag} {head_tag}",
            ]
        yield found


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Features of n words as numbers: those of word i are columns[starts[i]:starts[i + 1]].

    starts: int64[n + 1].  columns: int32[starts[n]], 0..n_columns - 1; a word has one at least.
    """

    starts: Int64
    columns: Int32
    n_columns: int

    @classmethod
    def of(cls, words: Words, *, least: int) -> Sparse:
        """The features of words that are true of `least` words or more."""
        lists = [sorted(set(found)) for found in features(words)]
        counts = Counter(name for found in lists for name in found)
        numbers = {"": 0}  # true of all words, however rare
        for name, count in counts.items():
            if count >= least:
                numbers.setdefault(name, len(numbers))
        rows = [[numbers[name] for name in found if name in numbers] for found in lists]
        return cls(
            np.cumsum([0, *map(len, rows)], dtype=np.int64),
            np.fromiter((column for row in rows for column in row), dtype=np.int32),
            len(numbers),
        )

    def take(self, rows: Int64) -> tuple[Int32, Int64, Int64]:
        """Columns of some words in a row, where each begins, and how many it has."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        begins = np.cumsum(lengths) - lengths
        places = np.repeat(self.starts[rows] - begins, lengths) + np.arange(int(lengths.sum()))
        return self.columns[places], begins, lengths


def label_given_tree(
    words: Words,
    labels: Int32,
    *,
    n_labels: int,
    settings: LabelModelSettings = LabelModelSettings(),
) -> Expected:
    """The relation given the rest of the tree, by models that never saw the sentence.

    labels: int32[n], numbers of the relations.  The same input gives the same result.
    Where there are fewer sentences than folds, each sentence is a fold.
    """
    n = len(words)
    sparse = Sparse.of(words, least=settings.least)
    folds = max(2, min(settings.folds, len(words.sentences)))
    # Dealt in turn: neighbours were often annotated by one person, and should be in both parts.
    fold = words.sentence % folds
    expected = np.full((n, n_labels), 1 / n_labels, dtype=np.float32)
    for number in range(folds):
        seen, held_out = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        weights = learn(sparse, labels, seen, n_labels, settings)
        for start in range(0, len(held_out), 8 * BATCH):
            rows = held_out[start : start + 8 * BATCH]
            columns, begins, _ = sparse.take(rows)
            expected[rows] = _softmax(np.add.reduceat(weights[columns], begins, axis=0))
    best = expected.argmax(axis=1).astype(np.int32)
    every = np.arange(n)
    return Expected(
        own=expected[every, labels],
        best=best,
        best_p=expected[every, best],
        seen=np.full(n, n, dtype=np.int32),
    )


def learn(
    sparse: Sparse, labels: Int32, rows: Int64, n_labels: int, settings: LabelModelSettings
) -> Float32:
    """Weights float32[n_columns, n_labels] learnt from some words."""
    weights = np.zeros((sparse.n_columns, n_labels), dtype=np.float32)
    squares = np.full_like(weights, 1e-8)
    rng = np.random.default_rng(settings.seed)
    for _ in range(settings.epochs):
        shuffled = rng.permutation(rows)
        for start in range(0, len(shuffled), BATCH):
            batch = shuffled[start : start + BATCH]
            columns, begins, lengths = sparse.take(batch)
            error = _softmax(np.add.reduceat(weights[columns], begins, axis=0))
            error[np.arange(len(batch)), labels[batch]] -= 1
            # The gradient of a feature is the sum over its words, which a sort puts side by side.
            order = np.argsort(columns, kind="stable")
            changed, first = np.unique(columns[order], return_index=True)
            word = np.repeat(np.arange(len(batch)), lengths)[order]
            gradient = np.add.reduceat(error[word], first, axis=0)
            squares[changed] += gradient * gradient
            weights[changed] -= settings.rate * gradient / np.sqrt(squares[changed])
    return weights


def _softmax(scores: Float32) -> Float32:
    scores = scores - scores.max(axis=1, keepdims=True)
    exp = np.exp(scores)
    return exp / exp.sum(axis=1, keepdims=True)
