"""Words that break a rule of Universal Dependencies, as its validator has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.audit.words import Words
from tk_spacy.evaluation.well_formed import own_violations
from tk_spacy.utils.array_types import Float32


@dataclass(frozen=True, slots=True, eq=False)
class Broken:
    """What rules n words break, see `trees.constraints`.

    blamed: bool[n] of each kind of violation that occurs: the words of which one has the wrong head
    or relation, as all subjects of a verb that has two.
    """

    n: int
    blamed: dict[str, NDArray[np.bool_]]

    @property
    def column(self) -> Float32:
        """1 for a word that is to blame for any, else 0: float32[n]."""
        found = np.zeros(self.n, dtype=np.float32)
        for where in self.blamed.values():
            found[where] = 1
        return found

    def of(self, row: int) -> list[str]:
        """The kinds that a word may be to blame for."""
        return [kind for kind, where in self.blamed.items() if where[row]]


def broken_rules(words: Words) -> Broken:
    """The rules that all words break."""
    blamed: dict[str, NDArray[np.bool_]] = {}
    for sentence, start in zip(words.sentences, words.starts.tolist(), strict=False):
        for kind, where in own_violations(sentence).blamed.items():
            column = blamed.setdefault(kind, np.zeros(len(words), dtype=np.bool_))
            column[start : start + len(sentence)] = where[0]
    return Broken(len(words), blamed)
