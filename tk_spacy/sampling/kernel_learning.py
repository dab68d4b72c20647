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

from tk_spacy.kernel import signed_kernel, slot_layout
from tk_spacy.part_types import part_type
from tk_spacy.properties import Schema
from tk_spacy.sampling.arc_kernel import ARC, ArcKernel, Arcs, arc_slots, bare
from tk_spacy.sampling.words import Corpus
from tk_spacy.support_log import Mark, SupportLog

Int32 = NDArray[np.int32]
Float64 = NDArray[np.float64]

NOTHING_YET = Mark(0, (0,), 0)


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

    def begin(self, batch: Sequence[int], arcs: Arcs, *, n_threads: int | None) -> Arcs:
        """Arcs of a batch (decoder.lattice_arcs) with the kernel's scores added to theirs.

        The sentences' differences are then told by what is added to the support in the meantime.
        """
        first, heads, labels, scores = arcs
        own = np.zeros(len(heads))
        slots = arc_slots(first, heads, labels, self._corpus.lengths[batch])
        nodes = np.concatenate([self._nodes[self._corpus.rows(i)] for i in batch])
        self._log.add_scores([nodes], [[slots]], [[own]], since=NOTHING_YET, n_threads=n_threads)
        self._since = self._log.mark()
        self._arcs = first, heads, labels, own
        return first, heads, labels, scores + own

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
        arcs = zip(both.tolist(), heads.tolist(), ids.tolist(), strict=True)
        scores = np.array([self._known(at + word, head, label) for word, head, label in arcs])
        nodes = self._nodes[self._corpus.rows(i)]
        self._log.add_scores([nodes], [[slots]], [[scores]], since=self._since, n_threads=1)
        norm = signed_kernel(nodes, slots, signs, self._kinds, self._skips)
        return Difference(slots, signs, float(signs @ scores), self._scale * norm)

    def _known(self, row: int, head: int, label: int) -> float:
        """The score that an arc of the batch had at its beginning."""
        assert self._arcs is not None
        first, heads, labels, scores = self._arcs
        arcs = slice(first[row], first[row + 1])
        (found,) = np.flatnonzero((heads[arcs] == head) & (labels[arcs] == label))
        return float(scores[arcs][found])

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

    def averaged(self, steps: int) -> ArcKernel | None:
        """The mean of the kernel as it stood after each step; None before the first update."""
        if not self._updates:
            return None
        support = bare(self._log.freeze(late=steps))
        return ArcKernel(schema=self._schema, support=support, gamma=1.0) if len(support) else None
