"""The labels of lists as the ids of a table of one's own, such as a parser's."""

from __future__ import annotations

from collections.abc import Callable
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
        return self.table(trees.inventory)[trees.labels]

    def table(self, inventory: LabelInventory) -> Int32:
        """The other id of each label of an inventory: int32[len(inventory)]."""
        table = self._tables.get(inventory)
        if table is None or len(table) < len(inventory):  # inventories only ever grow
            table = np.array(list(map(self._label_id, inventory.names)), dtype=np.int32)
            self._tables[inventory] = table
        return table
