from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tk_spacy.selection.basic import ArcLists
from tk_spacy.selection.combinations.slot_lists import SlotLists
from tk_spacy.utils.array_types import Int32

MAX_FEATURES: Final[int]

class Corpus:
    n_lists: int
    n_features: int
    has_trees: bool
    def __init__(
        self,
        lists: Sequence[ArcLists] | Sequence[SlotLists],
        n_features: int,
        *,
        trees: bool = True,
        slots: tuple[Int32, Int32, NDArray[np.uint8]] | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def same_trees(self, rows: Sequence[int] | Int32) -> list[NDArray[np.bool_]]: ...
    @property
    def lengths(self) -> Int32: ...

def linked(heads: NDArray[np.int32]) -> tuple[Int32, Int32]: ...
