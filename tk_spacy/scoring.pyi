from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tk_spacy.blocks import Block
from tk_spacy.node_groups import NodeGroups
from tk_spacy.row_keeper import RowKeeper

Int32 = NDArray[np.int32]
Float64 = NDArray[np.float64]

LARGEST_BYTE: Final[int]
LARGEST_SHORT: Final[int]

def fits_bytes(n_properties: int) -> bool: ...

class CompiledParts:
    blocks: list[Block]
    keeper: RowKeeper
    groups: NodeGroups
    kinds: Int32
    def __init__(
        self,
        kinds: Int32,
        skips: Int32,
        groups: NodeGroups,
        frequent: Sequence[Int32],
        limit: int,
    ) -> None: ...
    def append(self, columns: Int32, weights: Float64, ids: Int32, singles: Int32) -> None: ...
    def add_scores(
        self,
        ids: Int32,
        singles: Int32,
        parts: Int32,
        out: Float64,
        *,
        first: int = ...,
        n_threads: int | None = ...,
    ) -> None: ...

class Runs: ...
