"""The labels of lists as the ids of a table of one's own, such as a parser's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.utils.array_types import Int32


class LabelTables:
    """Takes the label ids of any list's inventory to others, by a table for each inventory.

    label_id: the other id of a label.
    """

    def __init__(self, label_id: Callable[[str], int]) -> None:
        self._label_id = label_id
        self._tables: WeakKeyDictionary[LabelInventory, Int32] = WeakKeyDictionary()

    def labels(self, trees: CandidateList) -> Int32:
        """The labels of a list's trees: int32[k, n]."""
        return self.of(trees.inventory)[trees.labels]

    def flat_labels(self, lists: Sequence[CandidateList]) -> Int32:
        """The labels of many lists, the words of one tree after the other: int32[cells]."""
        if all(trees.inventory is lists[0].inventory for trees in lists):
            flat = np.concatenate([trees.labels.ravel() for trees in lists])
            return self.of(lists[0].inventory)[flat]
        return np.concatenate([self.labels(trees).ravel() for trees in lists])

    def of(self, inventory: LabelInventory) -> Int32:
        """The other ids by those of an inventory: int32[labels that it has]."""
        table = self._tables.get(inventory)
        if table is None or len(table) < len(inventory):  # inventories only ever grow
            table = np.array(list(map(self._label_id, inventory.names)), dtype=np.int32)
            self._tables[inventory] = table
        return table
