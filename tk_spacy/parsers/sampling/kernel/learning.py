"""Learning the kernel with full search: its part of the sampling parser's training.

Source: Taub-Tabib et al. 2015, Algorithm 1 and footnote 5, whose list of candidates is here all
that the decoder can find.  The exclusive arcs of the gold tree and of the tree found become support
parts, by the same step as the hashed weights take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.part_types import ARC, part_type
from tk_spacy.features.schema import Schema
from tk_spacy.kernels.support_log import Mark, SupportLog
from tk_spacy.kernels.template_kernel import signed_kernel, slot_layout
from tk_spacy.parsers.sampling.kernel.model import Arcs, SearchKernel, arc_slots, bare
from tk_spacy.parsers.sampling.search.words import Corpus
from tk_spacy.utils.array_types import Float64, Int32

NOTHING_YET = Mark(0, (0,), 0)
NO_ARCS = (np.zeros((0, 4), dtype=np.int32), np.zeros(0))

LEVELLED = 128
"""Sentences whose remembered scores are brought up to date together."""


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """What the gold tree and another have to themselves, in the kernel.

    slots: int32[e, 4], arcs of one sentence; signs: int32[e], 1 for the gold tree's, -1 for the
        other's.  margin: by how much the gold tree outscores the other.  norm: squared, of the
        difference.
    """

    slots: Int32
    signs: Int32
    margin: float
    norm: float


class KernelLearner:
    """The kernel while it is learnt.

    schema: of corpus, the training sentences, with their node rows.
    scale: factor on the kernel beside the hashed features.
    """

    def __init__(self, schema: Schema, corpus: Corpus, *, scale: float) -> None:
        if corpus.nodes is None:
            raise ValueError("the corpus has no node rows, expected them")
        self._schema, self._corpus, self._nodes, self._scale = schema, corpus, corpus.nodes, scale
        kind = part_type(ARC)
        self._kinds = slot_layout(kind)
        self._skips = np.array(kind.skips(), dtype=np.int32)
        self._log = SupportLog((ARC,), self._nodes.shape[1], groups=schema.property_groups())
        self._updates = 0
        self._since = NOTHING_YET
        self._arcs: Arcs | None = None
        # Of each sentence the arcs of its last lattice and what they scored at the mark `_level`.
        self._level = NOTHING_YET
        self._seen: list[tuple[Int32, Float64]] = [NO_ARCS] * len(corpus)

    def begin_epoch(self, *, n_threads: int | None) -> None:
        """Bring the scores that are remembered up to the support as it is now.

        After that only what a batch's lattices did not hold before is scored by all of the support.
        """
        now = self._log.mark()
        for start in range(0, len(self._seen), LEVELLED):
            batch = range(start, min(start + LEVELLED, len(self._seen)))
            slots, known = self._remembered(batch)
            added = self._score(batch, slots, self._level, n_threads)
            self._remember(batch, slots, known + added)
        self._level = now

    def begin(self, batch: Sequence[int], arcs: Arcs, *, n_threads: int | None) -> Arcs:
        """Arcs of a batch (search_space.lattice_arcs) with the kernel's scores added to theirs.

        The sentences' differences are then told by what is added to the support in the meantime.
        """
        first, heads, labels, scores = arcs
        slots = arc_slots(first, heads, labels, self._corpus.lengths[batch])
        known = self._look_up(batch, slots)
        recent = self._score(batch, slots, self._level, n_threads)
        new = np.flatnonzero(np.isnan(known))
        known[new] = self._score(batch, slots[new], NOTHING_YET, n_threads) - recent[new]
        self._remember(batch, slots, known)
        own = known + recent
        self._since = self._log.mark()
        self._arcs = first, heads, labels, own
        return first, heads, labels, scores + own

    def _score(
        self, batch: Sequence[int], slots: Int32, since: Mark, n_threads: int | None
    ) -> Float64:
        """What the support since a mark scores arcs, which name flat rows of the batch."""
        out = np.zeros(len(slots))
        if len(slots):
            nodes = np.concatenate([self._nodes[self._corpus.rows(i)] for i in batch])
            self._log.add_scores([nodes], [[slots]], [[out]], since=since, n_threads=n_threads)
        return out

    def _remembered(self, batch: Sequence[int]) -> tuple[Int32, Float64]:
        """The arcs that are remembered of sentences, naming flat rows of these, and their scores.

        Of each word they stand by head and label.
        """
        slots = np.concatenate([self._seen[i][0] for i in batch])
        lengths = self._corpus.lengths[batch]
        moved = np.repeat(np.cumsum(lengths) - lengths, [len(self._seen[i][0]) for i in batch])
        slots[:, 0] += moved.astype(np.int32)
        slots[:, 3] += moved.astype(np.int32)
        return slots, np.concatenate([self._seen[i][1] for i in batch])

    def _remember(self, batch: Sequence[int], slots: Int32, scores: Float64) -> None:
        """Remember what arcs, which name flat rows of the batch, scored at the level."""
        order = np.argsort(_keys(slots), kind="stable")
        slots, scores = slots[order], scores[order]
        begin = 0
        for i in batch:
            end = begin + int(self._corpus.lengths[i])
            own = slice(*np.searchsorted(slots[:, 3], [begin, end]))
            local = slots[own] - np.array([begin, 0, 0, begin], dtype=np.int32)
            self._seen[i] = local, scores[own]
            begin = end

    def _look_up(self, batch: Sequence[int], slots: Int32) -> Float64:
        """What arcs scored at the level, NaN where nobody remembers: float64[a]."""
        there, scores = self._remembered(batch)
        out = np.full(len(slots), np.nan)
        if len(there):
            wanted, keys = _keys(slots), _keys(there)
            places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            known = keys[places] == wanted
            out[known] = scores[places[known]]
        return out

    def difference(
        self, i: int, at: int, gold: Int32, gold_labels: Int32, tree: Int32, labels: Int32
    ) -> Difference:
        """What sets the gold tree apart from one that was found among the batch's arcs.

        i: the sentence.  at: its first row in the batch.  The trees: int32[n + 2] each, heads and
        label ids.
        """
        words = np.flatnonzero((gold != tree) | (gold_labels != labels))
        heads = np.concatenate([gold[words], tree[words]])
        ids = np.concatenate([gold_labels[words], labels[words]])
        both = np.concatenate([words, words])
        slots = np.stack([heads, ids, both - heads, both], axis=1).astype(np.int32)
        signs = np.repeat(np.array([1, -1], dtype=np.int32), len(words))
        if not len(words):
            return Difference(slots, signs, 0.0, 0.0)
        scores = np.concatenate(
            [self._known(at, gold, gold_labels)[words], self._known(at, tree, labels)[words]]
        )
        nodes = self._nodes[self._corpus.rows(i)]
        self._log.add_scores([nodes], [[slots]], [[scores]], since=self._since, n_threads=1)
        norm = signed_kernel(nodes, slots, signs, self._kinds, self._skips)
        return Difference(slots, signs, float(signs @ scores), self._scale * norm)

    def _known(self, at: int, tree: Int32, labels: Int32) -> Float64:
        """The scores that a tree's arcs had at the batch's beginning: float64[n + 2]."""
        assert self._arcs is not None
        first, heads, ids, scores = self._arcs
        bounds = first[at : at + len(tree) + 1]
        words = np.repeat(np.arange(len(tree)), np.diff(bounds))
        arcs = slice(bounds[0], bounds[-1])
        there = (heads[arcs] == tree[words]) & (ids[arcs] == labels[words])
        out = np.zeros(len(tree))
        out[words[there]] = scores[arcs][there]
        return out

    def learn(self, i: int, difference: Difference, tau: float, step: int) -> None:
        """Take a step of that size with a sentence's difference.  step: of all, from 1."""
        weight = tau * self._scale
        self._log.append(
            self._nodes[self._corpus.rows(i)],
            (difference.slots,),
            (difference.signs,),
            weight=weight,
            # What the step lacks in a sum over all steps: it came after so many.
            averaged=weight * (step - 1),
            origin=(i, self._updates),
        )
        self._updates += 1

    def averaged(self, steps: int) -> SearchKernel | None:
        """The mean of the kernel as it stood after each step; None before the first update."""
        if not self._updates:
            return None
        support = bare(self._log.freeze(late=steps))
        return (
            SearchKernel(schema=self._schema, support=support, gamma=1.0) if len(support) else None
        )


def _keys(slots: Int32) -> NDArray[np.int64]:
    """A number for each arc, by word, then head, then label; ids of labels fit 16 bits."""
    word, head, label = (slots[:, column].astype(np.int64) for column in (3, 0, 1))
    return (word << 40) + (head << 16) + label
