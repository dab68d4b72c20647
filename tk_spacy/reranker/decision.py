"""What the final tree is chosen from: a list, its final scores, and which trees may be chosen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.well_formed import Repair, needed_repairs, with_repairs
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.constraints import WordFacts
from tk_spacy.utils.array_types import Float64


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The choice among the candidates of a sentence.

    candidates: a completed list, with repaired trees where some were needed.  final: float64[k],
    the final scores.  eligible: bool[k], which trees may be chosen, one at least; the others have
    scores all the same.  repairs: the repaired trees of the list.
    """

    candidates: CandidateList
    final: Float64
    eligible: NDArray[np.bool_]
    repairs: Sequence[Repair] = ()

    @property
    def row(self) -> int:
        """Of the chosen tree; of equally good ones the first."""
        return int(np.where(self.eligible, self.final, -np.inf).argmax())

    def chosen(self, sentence: Sentence) -> Sentence:
        """The sentence with the chosen tree."""
        row = self.row
        return sentence.with_tree(self.candidates.heads[row], self.candidates.deprels(row))

    @property
    def order(self) -> list[int]:
        """All rows, best first, those that may be chosen before the others."""
        found: list[int] = np.lexsort((-self.final, ~self.eligible)).tolist()
        return found


def repaired_list(
    candidates: CandidateList, plain: Float64, words: WordFacts, kinds: Collection[str]
) -> tuple[CandidateList, list[Repair]]:
    """The list with repaired copies where the best tree needs it, which want scores anew.

    plain: final scores without penalties.  kinds: of constraints that matter.
    """
    repairs = needed_repairs(candidates, plain, words, kinds)
    return with_repairs(candidates, repairs, by_share=COMBINER), repairs
