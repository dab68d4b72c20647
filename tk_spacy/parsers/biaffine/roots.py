"""Which relations the arc from the root may have, and which all other arcs.

UD calls the root's arc `root`, and no other.  A network that scores labels arc by arc does not know
that, and is wrong where a word is seldom a root: a sentence of one mark would be called `punct`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.treebank.conllu import Sentence


def root_labels_of(train: Sequence[Sentence], labels: Sequence[str]) -> tuple[str, ...]:
    """The relations of words with HEAD 0 in a treebank, where no other word has one of them.

    labels: those that a parser can give; none of the others count.  Empty where the treebank has
    another convention, or all labels would be the root's: then any arc may have any.
    """
    under_root, elsewhere = set[str](), set[str]()
    for sentence in train:
        for head, label in zip(sentence.heads.tolist(), sentence.deprels, strict=True):
            (elsewhere if head else under_root).add(label)
    kept = under_root.intersection(labels)
    if under_root & elsewhere or kept.issuperset(labels):
        return ()
    return tuple(sorted(kept))


@dataclass(frozen=True, slots=True, eq=False)
class RootLabels:
    """The labels that are kept to their places, as masks of what may not be.

    forbidden: uint8[2, labels], 1 for what an arc from the root may not have, and for what no other
        arc may have; nowhere 1 where nothing is restricted.
    """

    forbidden: NDArray[np.uint8]

    @classmethod
    def of(cls, labels: Sequence[str], root_labels: Sequence[str]) -> RootLabels:
        """Of a parser's labels; root_labels: as `root_labels_of` gives them."""
        is_root = np.isin(np.array(labels), np.array(root_labels, dtype=str))
        return cls(np.stack([~is_root & is_root.any(), is_root]).astype(np.uint8))
