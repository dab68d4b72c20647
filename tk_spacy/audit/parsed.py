"""What parsers that never saw a sentence make of it, against what is annotated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.audit.words import Words
from tk_spacy.ensemble.combiner.model import ArcCombiner
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.utils.array_types import Float32, Float64, Int32

FLOOR = 1e-4
"""Probability of an arc that no parser proposes."""
LEAST = -12.0
"""Log-probability of a head or label at least, however unlikely a parser finds it."""


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """What the parsers, and a combiner that did not learn from the sentence, say of n words.

    own: float32[n], the probability of what stands there.
    heads: int32[n], row of the likeliest head, -1 for the root.  labels: the relation with it.
    best_p: float32[n], the probability of both together.
    head_surprise, label_surprise: float32[n], minus the mean log-probability of the head, and of
        the label given the head, to the parsers that can tell of any arc; 0 where none can.
    """

    own: Float32
    heads: Int32
    labels: list[str]
    best_p: Float32
    head_surprise: Float32
    label_surprise: Float32

    @property
    def surprise(self) -> Float32:
        """Minus the logarithm of the probability of what stands there, float32[n]."""
        return -np.log(self.own)

    @property
    def margin(self) -> Float32:
        """Probability of the likeliest arc minus that of what stands there, float32[n]."""
        return self.best_p - self.own


def judge(
    words: Words,
    lists: Sequence[CandidateList],
    scores: Iterable[Sequence[Float64]] = (),
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Parsed:
    """The arcs that parsers propose, weighed by combiners that learn from other sentences.

    lists: for each sentence a list of parsers that did not learn from it.
    scores: of each parser that can tell, how likely every annotated arc is, float64[n, 2] for each
        sentence, see `kbest.sources.ArcScorer`.
    Raises UserError for fewer than two sentences.
    """
    n = len(words)
    own = np.full(n, FLOOR, dtype=np.float32)
    best_p = np.empty(n, dtype=np.float32)
    heads = np.empty(n, dtype=np.int32)
    labels: list[str] = []
    judged = ArcCombiner.judge_apart(words.sentences, lists, progress=progress)
    for number, (arcs, logs) in enumerate(judged):
        sentence, start = words.sentences[number], int(words.starts[number])
        rows = slice(start, start + len(sentence))
        names = lists[number].inventory
        annotated = names.encode(sentence.deprels, add=False)
        p = np.exp(logs)
        same = (arcs.heads == sentence.heads[arcs.words]) & (arcs.labels == annotated[arcs.words])
        own[start + arcs.words[same]] = np.maximum(p[same], FLOOR)
        best = [
            int(a + p[a:b].argmax()) for a, b in zip(arcs.starts, arcs.starts[1:], strict=False)
        ]
        best_p[rows] = np.maximum(p[best], FLOOR)
        heads[rows] = np.where(arcs.heads[best] > 0, arcs.heads[best] - 1 + start, -1)
        labels += names.decode(arcs.labels[best].tolist())
    of_heads, of_labels = _mean_surprise(n, scores)
    return Parsed(own, heads, labels, best_p, of_heads, of_labels)


def _mean_surprise(n: int, scores: Iterable[Sequence[Float64]]) -> tuple[Float32, Float32]:
    """Minus the mean over parsers of both columns, float32[n] each; 0 where none can tell."""
    tables = [np.concatenate(list(of_parser)) for of_parser in scores]
    if not tables:
        nothing = np.zeros(n, dtype=np.float32)
        return nothing, nothing
    table = np.maximum(np.stack(tables), LEAST)  # NaN stays
    known = ~np.isnan(table)
    total = np.where(known, -table, 0).sum(axis=0)
    heads, labels = (total / np.maximum(known.sum(axis=0), 1)).T
    return heads.astype(np.float32), labels.astype(np.float32)
