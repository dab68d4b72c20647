from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tk_spacy.features.part_types import PartType
from tk_spacy.trees.tree_rows import CheckedTrees
from tk_spacy.utils.array_types import Int32

_Found = tuple[Int32, Int32, NDArray[np.int64], Int32]

@final
class ListTrees:
    def __init__(
        self,
        trees: Sequence[CheckedTrees],
        labels: Sequence[ArrayLike],
        tables: Sequence[Int32],
    ) -> None: ...
    @property
    def n_lists(self) -> int: ...
    def parts(self, part_type: PartType, *, contested: bool = False) -> _Found: ...
    def frames(self, fields: ArrayLike, *, contested: bool = False) -> _Found: ...
    def spans(self, *, contested: bool = False) -> _Found: ...
